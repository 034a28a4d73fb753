package fleetsim

import (
	"fmt"
	"math/rand/v2"

	"github.com/dronefleet/dronefleet/domain"
)

// WorldConfig chooses a world.
type WorldConfig struct {
	Drones int    // size of the fleet, 1 to 100,000; default 40
	Seed   uint64 // repeats the world's choices
}

const (
	defaultDrones = 40
	maxDrones     = 100_000
)

// World is everything that exists before the first message.
type World struct {
	Depots     []domain.Depot
	Warehouses []domain.Warehouse
	Hospitals  []Hospital
	// Drones are at their starting positions, with status UNKNOWN because none
	// has reported yet.
	Drones []domain.Drone
}

// The reference drone: 80 % of its charge carries it 32 km, 38 min at cruise.
const (
	// ConsumptionPerKm is in percent of a full charge.
	ConsumptionPerKm  = 2.5
	batteryMah        = 16_000
	maxFlightMinutes  = 38
	payloadCapacityKg = 5
)

// NewWorld places a fleet around the reference places.
func NewWorld(cfg WorldConfig) (*World, error) {
	if cfg.Drones == 0 {
		cfg.Drones = defaultDrones
	}
	if cfg.Drones < 1 || cfg.Drones > maxDrones {
		return nil, fmt.Errorf("drones is %d; give 1 to %d", cfg.Drones, maxDrones)
	}
	depot := parisDepot
	depot.Capacity = cfg.Drones
	w := &World{
		Depots:     []domain.Depot{depot},
		Warehouses: []domain.Warehouse{warehouseNorth, warehouseSouth},
		Hospitals:  hospitals,
	}
	random := randomFor(cfg.Seed, streamWorld)
	pads := startingPads()
	for i := range cfg.Drones {
		w.Drones = append(w.Drones, domain.Drone{
			ID:                   domain.DroneID(fmt.Sprintf("DRONE-%03d", i+1)),
			ShortName:            fmt.Sprintf("D%d", i+1),
			Status:               domain.DroneUnknown,
			Position:             pads[i%len(pads)],
			Battery:              82 + 18*random.Float64(),
			HomeDepotID:          depot.ID,
			BatteryCapacityMah:   batteryMah,
			ConsumptionPerKm:     ConsumptionPerKm,
			MaxFlightTimeMinutes: maxFlightMinutes,
			PayloadCapacityKg:    payloadCapacityKg,
		})
	}
	return w, nil
}

// startingPads lists the starting positions, used in turn. The first few are where
// the opening orders are picked up, so that even a small fleet delivers soon.
func startingPads() []domain.Position {
	depot, north, south := parisDepot.Position, warehouseNorth.Position, warehouseSouth.Position
	pads := []domain.Position{
		hospital("HOSP-COCHIN").Position, hospital("HOSP-ROTHSCHILD").Position, south, depot, north,
		hospital("HOSP-SAINT-ANTOINE").Position, hospital("HOSP-COCHIN").Position, depot, south, depot,
	}
	for range 3 {
		pads = append(pads, depot, depot, north, depot, depot, depot, south, depot, depot, depot)
	}
	return pads
}

// hospital finds a hospital by id; it panics if there is none.
func hospital(id string) Hospital {
	for _, h := range hospitals {
		if h.ID == id {
			return h
		}
	}
	panic("fleetsim: no hospital " + id)
}

// Independent random streams, so that a larger fleet does not change the orders of
// the same seed.
const (
	streamWorld uint64 = iota + 1
	streamOrders
	streamClocks
)

func randomFor(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
