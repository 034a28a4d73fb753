package learning

import (
	"maps"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// An estimate starts from an assumed value, for one drone from that of its fleet, which counts as
// a number of observed legs.
const (
	fleetPrior = 30
	dronePrior = 30
	// typicalKm is the length of each of these legs.
	typicalKm = 3
	// leastDelays is how many deliveries it takes to say how late they are.
	leastDelays = 30
)

// DefaultConfidence is that of the optimizers, unless told otherwise.
const DefaultConfidence = 0.8

// The limits of what is learned, against what is assumed.
const (
	slowest     = 0.4
	fastest     = 1.5
	longestStay = 5 * time.Minute // beyond the assumed one
	// MaxMargin bounds the margin for late flights, as a share of their time.
	MaxMargin = 0.5
)

// Estimates are what planning uses of what was learned. The zero value changes nothing.
type Estimates struct {
	// SpeedKmh is that of a drone of the fleet that is not in Speeds, 0 if nothing was
	// learned; Speeds are those of drones with a past.
	SpeedKmh float64
	Speeds   map[domain.DroneID]float64
	// Pickup and Deliver are how long a drone stays.
	Pickup, Deliver time.Duration
	// Margin is how late flights are at most, as a share of their time, with the given
	// confidence.
	Margin float64
	Demand DemandEstimates
}

// SpeedOf is the speed of a drone in km/h; 0 if nothing was learned.
func (e Estimates) SpeedOf(drone domain.DroneID) float64 {
	if v, known := e.Speeds[drone]; known {
		return v
	}
	return e.SpeedKmh
}

// FastestKmh is the speed of the fastest drone; 0 if nothing was learned.
func (e Estimates) FastestKmh() float64 {
	fastest := e.SpeedKmh
	for _, v := range e.Speeds {
		fastest = max(fastest, v)
	}
	return fastest
}

// Estimate estimates from what was learned. The confidence, in [0.5, 1), is the share of past
// flights that were within the margin.
func Estimate(l domain.Learned, assumed Assumed, confidence float64) Estimates {
	e := Estimates{Demand: EstimateDemand(l.Demand)}
	if measured(l.Travel) == 0 {
		return e
	}
	stops := estimateStops(l.Travel, assumed)
	e.Pickup, e.Deliver = stayOf(stops.pickup), stayOf(stops.delivery)
	e.SpeedKmh = bounded(3600/stops.perKm, assumed)
	e.Speeds = make(map[domain.DroneID]float64, len(l.Drones))
	for _, id := range slices.Sorted(maps.Keys(l.Drones)) {
		s := sound(l.Drones[id].Flight)
		const prior = dronePrior * typicalKm * typicalKm
		e.Speeds[id] = bounded(3600*(s.KmKm+prior)/(s.KmSeconds+prior*stops.perKm), assumed)
	}
	e.Margin = margin(l.Travel.Delays, confidence)
	return e
}

func measured(t domain.Travel) float64 {
	return sound(t.FromStart).Weight + sound(t.FromPickup).Weight + sound(t.FromDelivery).Weight
}

func bounded(kmh float64, assumed Assumed) float64 {
	return min(max(kmh, slowest*assumed.SpeedKmh), fastest*assumed.SpeedKmh)
}

func stayOf(seconds float64) time.Duration {
	return (time.Duration(seconds * float64(time.Second))).Round(100 * time.Millisecond)
}

// stopTimes says how long legs take, in seconds: the stay by the kind of stop that they begin
// with, and the flight per km.
type stopTimes struct{ start, pickup, delivery, perKm float64 }

func (s stopTimes) after(kind domain.WaypointType) float64 {
	switch kind {
	case domain.WaypointWarehousePickup:
		return s.pickup
	case domain.WaypointHospitalDelivery:
		return s.delivery
	case domain.WaypointDepotStart, domain.WaypointDepotReturn, domain.WaypointCharge, domain.WaypointWait:
	}
	return s.start
}

// estimateStops fits seconds = stay + perKm * km to all legs by least squares, with a stay
// for each kind of stop and one perKm. What is assumed counts as prior observations (ridge
// regression), so that few legs change little.
func estimateStops(t domain.Travel, assumed Assumed) stopTimes {
	type kind struct {
		sums domain.LegSums
		stay float64
	}
	kinds := []kind{
		{sound(t.FromStart), 0},
		{sound(t.FromPickup), assumed.Pickup.Seconds()},
		{sound(t.FromDelivery), assumed.Deliver.Seconds()},
	}
	const priorKmKm = fleetPrior * typicalKm * typicalKm
	// For a given perKm the best stay is base - slope*perKm; what remains is linear in perKm.
	over, under := priorKmKm*assumed.secondsPerKm(), float64(priorKmKm)
	base, slope := make([]float64, len(kinds)), make([]float64, len(kinds))
	for i, k := range kinds {
		n := k.sums.Weight + fleetPrior
		base[i], slope[i] = (k.sums.Seconds+fleetPrior*k.stay)/n, k.sums.Km/n
		over += k.sums.KmSeconds - base[i]*k.sums.Km
		under += k.sums.KmKm - slope[i]*k.sums.Km
	}
	perKm := min(max(over/under, assumed.secondsPerKm()/fastest), assumed.secondsPerKm()/slowest)
	stay := func(i int) float64 {
		return min(max(base[i]-slope[i]*perKm, 0), kinds[i].stay+longestStay.Seconds())
	}
	return stopTimes{stay(0), stay(1), stay(2), perKm}
}

// margin is the quantile of the delays, no less than 0.
func margin(delays []float64, confidence float64) float64 {
	total := 0.0
	for _, n := range delays {
		total += max(n, 0)
	}
	if len(delays) != domain.DelayBins || !(total >= leastDelays) {
		return 0
	}
	below := 0.0
	for b, n := range delays {
		if below += max(n, 0); below >= confidence*total {
			return min(max(domain.DelayMin+float64(b+1)*domain.DelayStep, 0), MaxMargin)
		}
	}
	return MaxMargin
}
