package dispatch

import (
	"fmt"
	"testing"

	"github.com/dronefleet/dronefleet/solver"
)

// F-OPT-03: a cycle asks about each drone for each order before it searches. The way
// from a drone to a warehouse is measured once for all of them, or nothing would be
// left of its time.
func TestEarliest_MeasuresAWayOnce(t *testing.T) {
	p := scattered(30, 1e-6)
	f := flightsOf(p)
	f.earliest(&p.Orders[0], p.Drones)
	if len(f.reach) != len(p.Drones) {
		t.Fatalf("%d places are known of %d drones", len(f.reach), len(p.Drones))
	}
	for _, reach := range f.reach {
		for i := range reach {
			reach[i] = 0 // whoever measures again finds another way
		}
	}
	o := &p.Orders[1]
	nearest := never
	for _, w := range p.Warehouses {
		nearest = min(nearest, flightTime(&p.Drones[0], metres(w.At, o.Delivery)))
	}
	if soonest, _ := f.earliest(o, p.Drones); soonest != nearest+f.params.PickupService {
		t.Errorf("an order arrives after %s, want %s: what is known of the ways counts", soonest, nearest+f.params.PickupService)
	}
}

// BenchmarkEarliest compares drones at one place with drones that are a decimetre
// apart.
func BenchmarkEarliest(b *testing.B) {
	for name, apart := range map[string]float64{"one-place": 0, "apart": 1e-6} {
		b.Run(name, func(b *testing.B) {
			p := scattered(300, apart)
			for b.Loop() {
				f := flightsOf(p)
				for i := range p.Orders {
					f.earliest(&p.Orders[i], p.Drones)
				}
			}
		})
	}
}

// scattered is a problem whose drones are so many degrees apart.
func scattered(drones int, apart float64) *solver.Problem {
	p := &solver.Problem{Depots: []solver.Depot{{ID: "D", At: solver.Location{Lat: 48.85, Lon: 2.35}}}}
	for i := range 40 {
		at := solver.Location{Lat: 48.80 + float64(i)/400, Lon: 2.35}
		p.Warehouses = append(p.Warehouses, solver.Warehouse{ID: fmt.Sprint(i), At: at, ProductTypes: []string{"BLOOD"}})
	}
	for i := range drones {
		at := solver.Location{Lat: 48.85 + float64(i)*apart, Lon: 2.35}
		p.Drones = append(p.Drones, solver.Drone{ID: fmt.Sprint(i), HomeDepotID: "D", At: at, BatteryPercent: 90})
	}
	for i := range 200 {
		at := solver.Location{Lat: 48.85, Lon: 2.30 + float64(i)/2000}
		p.Orders = append(p.Orders, solver.Order{ID: fmt.Sprint(i), ProductType: "BLOOD", Delivery: at})
	}
	return p
}
