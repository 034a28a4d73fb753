package plannersim

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// City generates a world: a depot, a warehouse near it that stocks everything, two
// to four warehouses farther out that stock some products, thirty hospitals in
// five clusters, all drones at the depot. Each seed gives another city.
func City(drones int, seed uint64) (*fleetsim.World, error) {
	base, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: drones, Seed: seed})
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(seed, 4711))
	depot := domain.Depot{ID: "DEPOT", Name: "Depot", Position: domain.Position{Lat: 20 + 30*random.Float64(), Lon: 100 * random.Float64()}}
	around := func(center domain.Position, fromKm, toKm float64) domain.Position {
		km, angle := fromKm+(toKm-fromKm)*random.Float64(), 2*math.Pi*random.Float64()
		const kmPerDegree = 111.2
		return domain.Position{
			Lat: center.Lat + km*math.Sin(angle)/kmPerDegree,
			Lon: center.Lon + km*math.Cos(angle)/kmPerDegree/math.Cos(center.Lat*math.Pi/180),
		}
	}
	all := []string{"BLOOD", "MEDICINE", "VACCINE", "MEDICAL_DEVICE"}
	w := &fleetsim.World{Depots: []domain.Depot{depot}, Warehouses: []domain.Warehouse{
		{ID: "WH-0", Position: around(depot.Position, 0.5, 2.5), ProductTypes: all, ColdStorage: true},
	}}
	for i := range 2 + random.IntN(3) {
		stock := []string{all[random.IntN(len(all))], "MEDICINE"}
		w.Warehouses = append(w.Warehouses, domain.Warehouse{
			ID: domain.WarehouseID(fmt.Sprintf("WH-%d", i+1)), Position: around(depot.Position, 3, 7), ProductTypes: stock, ColdStorage: random.IntN(2) == 0,
		})
	}
	for i := range 5 {
		// Near enough that a drone with the charge to leave can return from any.
		cluster := around(depot.Position, 1, 6.5)
		for j := range 6 {
			w.Hospitals = append(w.Hospitals, fleetsim.Hospital{ID: fmt.Sprintf("HOSP-%d-%d", i, j), Position: around(cluster, 0, 1.2)})
		}
	}
	for _, d := range base.Drones {
		d.Position, d.HomeDepotID = depot.Position, depot.ID
		w.Drones = append(w.Drones, d)
	}
	return w, nil
}
