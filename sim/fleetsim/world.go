package fleetsim

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dronefleet/dronefleet/domain"
)

// WorldConfig chooses a world.
type WorldConfig struct {
	Drones int    // size of the fleet, at most 100,000
	Seed   uint64 // repeats the world's choices
	// IDPrefix begins the id of every drone; fleets that share a store need different
	// ones. Default "DRONE".
	IDPrefix string
	// Depots and Warehouses replace the reference places, and bring hospitals of their
	// own where the reference ones are out of reach.
	Depots     []domain.Depot
	Warehouses []domain.Warehouse
	Hospitals  int // the most of them; 0 for all
	// ChargingSlots, if positive, is how many drones can charge at once at each of the
	// reference depots; 0 for as many as there are.
	ChargingSlots int
	ChargeRate    float64 // of the drones, percent of a full charge a minute; 0 for the usual
	// Payload has every second drone use more charge the more it carries: each kilogram adds
	// ConsumptionPerKmKg.
	Payload bool
}

const (
	maxDrones = 100_000
	// emptyCapacity is the capacity of the reference depot in a world without drones.
	emptyCapacity = 40
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
	ConsumptionPerKm = 2.5
	// ConsumptionPerKmKg is what a kilogram aboard adds to that, in a world where payload
	// counts: 4 %, 20 % with all that a drone can carry.
	ConsumptionPerKmKg = 0.1
	batteryMah         = 16_000
	maxFlightMinutes   = 38
	payloadCapacityKg  = 5
)

// NewWorld places a fleet around the reference places.
func NewWorld(cfg WorldConfig) (*World, error) {
	if cfg.Drones < 0 || cfg.Drones > maxDrones {
		return nil, fmt.Errorf("drones is %d; give 0 to %d", cfg.Drones, maxDrones)
	}
	if cfg.ChargingSlots < 0 {
		return nil, fmt.Errorf("charging slots is %d; give 1 or more, or 0 for no limit", cfg.ChargingSlots)
	}
	if math.IsInf(cfg.ChargeRate, 0) || !(cfg.ChargeRate >= 0) { // or NaN
		return nil, fmt.Errorf("charge rate is %v; give a number above 0, or 0 for the usual %v", cfg.ChargeRate, domain.DefaultChargeRate)
	}
	if cfg.IDPrefix == "" {
		cfg.IDPrefix = "DRONE"
	}
	w, pads := referenceWorld(cfg), startingPads()
	if len(cfg.Depots) > 0 {
		w, pads = worldAround(cfg), nil
	}
	if cfg.Hospitals > 0 {
		w.Hospitals = w.Hospitals[:min(cfg.Hospitals, len(w.Hospitals))]
	}
	random := randomFor(cfg.Seed, streamWorld)
	for i := range cfg.Drones {
		depot := w.Depots[i%len(w.Depots)]
		start := depot.Position
		if len(pads) > 0 {
			start = pads[i%len(pads)]
		}
		w.Drones = append(w.Drones, domain.Drone{
			ID:                   domain.DroneID(fmt.Sprintf("%s-%03d", cfg.IDPrefix, i+1)),
			ShortName:            fmt.Sprintf("D%d", i+1),
			Status:               domain.DroneUnknown,
			Position:             start,
			Battery:              82 + 18*random.Float64(),
			HomeDepotID:          depot.ID,
			BatteryCapacityMah:   batteryMah,
			ConsumptionPerKm:     ConsumptionPerKm,
			MaxFlightTimeMinutes: maxFlightMinutes,
			PayloadCapacityKg:    payloadCapacityKg,
			SupportsAmendments:   i%4 != 3, // the others are older
			SupportsStandby:      i%4 != 3 && i%8 != 6,
			ChargeRate:           cfg.ChargeRate,
			ColdBox:              &domain.ColdBox{MinCelsius: 2, MaxCelsius: 8},
		})
		if cfg.Payload && i%2 == 1 {
			w.Drones[i].ConsumptionPerKmKg = ConsumptionPerKmKg
		}
	}
	return w, nil
}

// referenceWorld is the demo's city without its drones.
func referenceWorld(cfg WorldConfig) *World {
	depot := parisDepot
	depot.Capacity, depot.ChargingSlots = cmp.Or(cfg.Drones, emptyCapacity), cfg.ChargingSlots
	return &World{
		Depots:     []domain.Depot{depot},
		Warehouses: []domain.Warehouse{warehouseNorth, warehouseSouth},
		Hospitals:  hospitals,
	}
}

// hospitalsPerDepot is how many hospitals are made up around a depot without any of
// the reference ones in reach.
const hospitalsPerDepot = 12

// worldAround has the places that cfg gives. Depots far from the reference hospitals
// have hospitals made up around them, at 1 to 5 km.
func worldAround(cfg WorldConfig) *World {
	w := &World{Depots: cfg.Depots, Warehouses: cfg.Warehouses}
	for _, h := range hospitals {
		if slices.ContainsFunc(w.Depots, func(d domain.Depot) bool { return d.Position.DistanceMetres(h.Position) <= reachMetres/2 }) {
			w.Hospitals = append(w.Hospitals, h)
		}
	}
	for _, d := range w.Depots {
		if slices.ContainsFunc(w.Hospitals, func(h Hospital) bool { return d.Position.DistanceMetres(h.Position) <= reachMetres/2 }) {
			continue
		}
		random := randomFor(cfg.Seed, streamHospitals)
		for i := range hospitalsPerDepot {
			id := fmt.Sprintf("HOSP-%s-%02d", d.ID, i+1)
			w.Hospitals = append(w.Hospitals, Hospital{id, id, around(d.Position, 1000+4000*random.Float64(), 2*math.Pi*random.Float64())})
		}
	}
	return w
}

// around is the position at a distance and a bearing in radians, on a map that is flat
// near the centre.
func around(center domain.Position, metres, bearing float64) domain.Position {
	const metresPerDegree = 111_200
	return domain.Position{
		Lat: min(90, max(-90, center.Lat+metres*math.Cos(bearing)/metresPerDegree)),
		Lon: math.Remainder(center.Lon+metres*math.Sin(bearing)/metresPerDegree/max(0.01, math.Cos(center.Lat*math.Pi/180)), 360),
	}
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
	streamHospitals
	streamNetwork
	streamCrashes
)

func randomFor(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }
