package learning

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// How much of the past counts. Sums that weigh more fade: the oldest legs count least.
const (
	fleetLegs   = 5000
	droneLegs   = 200
	fleetDelays = 2000
)

// A leg counts if it took at least leastShare of the time at the assumed speed, and at most
// mostShare of it and longestStop.
const (
	leastShare  = 0.3
	mostShare   = 4
	longestStop = 15 * time.Minute
)

// Assumed is what plans use until something has been learned.
type Assumed struct {
	SpeedKmh        float64
	Pickup, Deliver time.Duration // how long a drone stays
}

func (a Assumed) secondsPerKm() float64 { return 3600 / a.SpeedKmh }

// AddMissions adds ended missions to what was learned, which is not modified.
func AddMissions(l domain.Learned, ended []domain.Mission, assumed Assumed) domain.Learned {
	drones := make(map[domain.DroneID]domain.DroneTravel, len(l.Drones))
	maps.Copy(drones, l.Drones)
	l.Drones = drones
	t := &l.Travel
	t.Delays = slices.Clone(t.Delays)
	if len(t.Delays) != domain.DelayBins || slices.ContainsFunc(t.Delays, func(n float64) bool { return !(n >= 0 && n <= 2*fleetDelays) }) {
		t.Delays = make([]float64, domain.DelayBins) // anyone can write a document
	}
	for _, m := range ended {
		if m.EndTime.After(t.Until) {
			t.Until = m.EndTime
		}
		t.Missions++
		addLegs(&l, m, assumed)
		addDelays(t, m)
	}
	return l
}

// addLegs adds the legs between the stops that a mission reached.
func addLegs(l *domain.Learned, m domain.Mission, assumed Assumed) {
	t := &l.Travel
	times := policy.ReachTimes(m)
	for i := 1; i < len(times); i++ {
		from, to := m.Route[i-1], m.Route[i]
		sums := legsFrom(t, from.Type)
		if sums == nil || to.Duty() { // that is reached when the drone has charged or waited
			continue
		}
		km, seconds := from.Position.DistanceMetres(to.Position)/1000, times[i].Sub(times[i-1]).Seconds()
		if !plausible(km, seconds, assumed) {
			t.Refused++
			continue
		}
		t.Legs++
		*sums = add(*sums, km, seconds, fleetLegs)
		if from.Type != domain.WaypointDepotStart { // which has the preparations for the flight
			// The stay is taken off, so that a drone's sums are of flight alone.
			flown := max(0, seconds-estimateStops(*t, assumed).after(from.Type))
			d := l.Drones[m.DroneID]
			d.Flight = add(d.Flight, km, flown, droneLegs)
			l.Drones[m.DroneID] = d
		}
	}
}

// legsFrom are the sums of the legs that begin at a kind of stop; nil if a drone stays there
// for as long as it was told.
func legsFrom(t *domain.Travel, kind domain.WaypointType) *domain.LegSums {
	switch kind {
	case domain.WaypointDepotStart:
		return &t.FromStart
	case domain.WaypointWarehousePickup:
		return &t.FromPickup
	case domain.WaypointHospitalDelivery:
		return &t.FromDelivery
	case domain.WaypointDepotReturn, domain.WaypointCharge, domain.WaypointWait:
	}
	return nil
}

func plausible(km, seconds float64, assumed Assumed) bool {
	flight := km * assumed.secondsPerKm()
	return seconds >= leastShare*flight && seconds <= mostShare*flight+longestStop.Seconds()
}

// add adds a leg to sums, which fade beyond a weight.
func add(s domain.LegSums, km, seconds float64, most float64) domain.LegSums {
	keep := 1.0
	if s = sound(s); s.Weight+1 > most {
		keep = (most - 1) / s.Weight
	}
	return domain.LegSums{
		Weight: keep*s.Weight + 1, Km: keep*s.Km + km, Seconds: keep*s.Seconds + seconds,
		KmKm: keep*s.KmKm + km*km, KmSeconds: keep*s.KmSeconds + km*seconds,
	}
}

// sound returns sums that are possible, and none for others: anyone can write a document.
func sound(s domain.LegSums) domain.LegSums {
	for _, v := range []float64{s.Weight, s.Km, s.Seconds, s.KmKm, s.KmSeconds} {
		if !(v >= 0 && v < math.MaxFloat32) {
			return domain.LegSums{}
		}
	}
	return s
}

// addDelays adds how much later than planned a mission's deliveries were.
func addDelays(t *domain.Travel, m domain.Mission) {
	decided := m.StartTime
	if m.AmendedAt.After(decided) {
		decided = m.AmendedAt
	}
	for i, at := range policy.ReachTimes(m) {
		stop := m.Route[i]
		planned := stop.ETA.Sub(decided)
		if stop.Type != domain.WaypointHospitalDelivery || stop.ETA.IsZero() || planned < time.Minute || at.Before(decided) {
			continue
		}
		total := 0.0
		for _, n := range t.Delays {
			total += n
		}
		if total+1 > fleetDelays {
			for b := range t.Delays {
				t.Delays[b] *= (fleetDelays - 1) / total
			}
		}
		share := at.Sub(stop.ETA).Seconds() / planned.Seconds()
		bin := math.Floor((share - domain.DelayMin) / domain.DelayStep)
		t.Delays[int(min(max(bin, 0), domain.DelayBins-1))]++
	}
}
