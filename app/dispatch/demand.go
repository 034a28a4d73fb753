package dispatch

import (
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// memory is how long what was seen counts.
const memory = 30 * time.Minute

// Before anything was seen, a CRITICAL order is expected every five minutes and
// a drone back every minute; the guess weighs as much as five minutes of
// watching.
const (
	guessWeight           = 5.0 // minutes
	guessUrgentPerMinute  = 0.2
	guessReturnsPerMinute = 1.0
)

// remembered bounds the orders kept as a sample of where demand is.
const remembered = 100

// fleetMemory is how long an unseen drone counts as one of the fleet: longer
// than a mission and the charging after it.
const fleetMemory = 90 * time.Minute

// demand is what a planner remembers of its depot's recent cycles. It forgets
// what is old, so it stays small however long it is used. Without it, as in a
// process that runs one cycle, everything still works, only less far-sighted.
type demand struct {
	since    time.Time            // first cycle
	latest   time.Time            // of all cycles
	known    map[string]time.Time // orders by when they were last pending
	sample   []solver.Order       // recent orders, oldest first
	urgent   []time.Time          // when CRITICAL orders came that can be served in time
	launches []time.Time          // when drones took off: in the long run as many come back
	fleet    map[string]time.Time // drones by when they were last offered
	// other is when a drone last took off for orders that are not urgent, or
	// none of them waited.
	other time.Time
	// usual is the drone that stands for those that will be back: the last seen,
	// fully charged, at its depot.
	usual solver.Drone
}

// observe takes in the problem of a new cycle.
func (m *demand) observe(f flights) {
	now := f.problem.Now
	// Cycles are planned ahead, one farther than the next; by more than that only a
	// clock goes back that was set. What was seen is then dated in the future: rates
	// would be wrong, even negative, and nothing would count as starved for as long.
	if m.since.IsZero() || m.latest.Sub(now) > longestLead {
		*m = demand{since: now, latest: now, other: now, known: map[string]time.Time{}, fleet: map[string]time.Time{}}
	}
	if now.After(m.latest) {
		m.latest = now
	}
	for _, d := range f.problem.Drones {
		m.fleet[d.ID] = now
		m.usual = f.charged(d)
	}
	for i := range f.problem.Orders {
		o := &f.problem.Orders[i]
		_, old := m.known[o.ID]
		m.known[o.ID] = now
		if old {
			continue
		}
		m.sample = append(m.sample, *o)
		if o.Priority == solver.Critical && m.servable(f, o) {
			m.urgent = append(m.urgent, now)
		}
	}
	m.sample = m.sample[max(0, len(m.sample)-remembered):]
	m.forget(now)
}

// servable reports whether a drone at its depot, or one that is free now, could
// deliver the order in time.
func (m *demand) servable(f flights, o *solver.Order) bool {
	if took, _ := f.arrival(m.usual, o); m.usual.ID != "" && f.inTime(o, took) {
		return true
	}
	took, _ := f.earliest(o, f.problem.Drones)
	return f.inTime(o, took)
}

func (m *demand) forget(now time.Time) {
	for id, seen := range m.known {
		if now.Sub(seen) > memory {
			delete(m.known, id)
		}
	}
	for id, seen := range m.fleet {
		if now.Sub(seen) > fleetMemory {
			delete(m.fleet, id)
		}
	}
	m.urgent, m.launches = recent(m.urgent, now), recent(m.launches, now)
}

func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) > memory {
		times = times[1:]
	}
	return times
}

// perMinute is the rate of what was seen at times, with a guess for what has
// not been watched for long.
func (m *demand) perMinute(times []time.Time, now time.Time, guess float64) float64 {
	watched := min(memory, now.Sub(m.since)).Minutes()
	return (float64(len(times)) + guess*guessWeight) / (watched + guessWeight)
}

func (m *demand) urgentPerMinute(now time.Time) float64 {
	return m.perMinute(m.urgent, now, guessUrgentPerMinute)
}

// emptyRisk is the chance, accepted, that a CRITICAL order finds the reserve
// empty; mostOften bounds the load for which it is computed, as beyond it no
// reserve would do.
const (
	emptyRisk = 0.02
	mostOften = 0.6
)

// reserve is how many drones to keep for CRITICAL orders to come. CRITICAL
// orders take drones from the reserve at one rate, returning drones fill it at
// another; when r are kept, it is empty for the share (taken/returned)^r of the
// time, as in a queue with one server. At most a quarter of the fleet is kept.
func (m *demand) reserve(now time.Time) int {
	taken := m.urgentPerMinute(now)
	returned := m.perMinute(m.launches, now, guessReturnsPerMinute)
	often := min(mostOften, taken/returned)
	r := int(math.Ceil(math.Log(emptyRisk) / math.Log(often)))
	return max(0, min(r, len(m.fleet)/4))
}

// flyingShare is how much of its turn a drone flies; the rest it charges.
const flyingShare = 0.8

// tour is how long drones may be away if twice as many are to come back as
// CRITICAL orders take.
func (m *demand) tour(now time.Time) time.Duration {
	turn := float64(len(m.fleet)) / (2 * m.urgentPerMinute(now))
	return time.Duration(flyingShare * turn * float64(time.Minute))
}

// enough is the charge, in percent, with which any recent order that can be in
// time as a CRITICAL one can be flown from the depot.
func (m *demand) enough(f flights) float64 {
	most := 0.0
	for i := range m.sample {
		if took, need := f.arrival(m.usual, &m.sample[i]); took <= solver.Critical.Window()-outpostMargin {
			most = max(most, need)
		}
	}
	return most
}

// launched takes in which missions begin.
func (m *demand) launched(now time.Time, plan solver.Plan, urgent map[string]bool) {
	others := false
	for _, r := range plan.Routes {
		m.launches = append(m.launches, now)
		others = others || !slices.ContainsFunc(r.OrderIDs(), func(id string) bool { return urgent[id] })
	}
	waiting := slices.ContainsFunc(plan.Unserved, func(u solver.Unserved) bool {
		return u.Reason == solver.KeptForCritical || u.Reason == solver.NoDroneFree || u.Reason == solver.DeadlineUnreachable
	})
	if others || !waiting {
		m.other = now
	}
}
