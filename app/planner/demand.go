package planner

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// demandWindow is how long an observation counts.
const demandWindow = 30 * time.Minute

// Prior rates, used until enough was observed: one CRITICAL order in five
// minutes, one returning drone a minute. They weigh as much as priorMinutes of
// observation.
const (
	priorMinutes          = 5.0
	priorUrgentPerMinute  = 0.2
	priorReturnsPerMinute = 1.0
)

// maxSample bounds the orders kept as a sample of where demand is.
const maxSample = 100

// DroneMemory is how long an absent drone still counts as one of the depot's: longer than a
// mission and the charging after it.
const DroneMemory = 90 * time.Minute

// demand is what a planner remembers of its recent cycles. It forgets old observations, so its
// size is bounded. Without observations it gives the prior rates.
type demand struct {
	since    time.Time            // first cycle
	latest   time.Time            // latest time of any cycle
	known    map[string]time.Time // order id to when it was last pending
	sample   []solver.Order       // recent orders, oldest first
	urgent   []time.Time          // arrivals of CRITICAL orders that could be served in time
	launches []time.Time          // take-offs; in the long run as many drones return
	drones   map[string]time.Time // drone id to when it was last offered
	// othersServed is when a drone last took off without a CRITICAL order, or when only
	// CRITICAL orders waited.
	othersServed time.Time
	// typical stands for the drones that will be back: the last one seen, fully
	// charged, at its depot.
	typical solver.Drone
	// expected is what was learned of the demand; it outlives a clock that is set back.
	expected learning.DemandEstimates
}

// observe updates the memory with the problem of a new cycle.
func (m *demand) observe(f directFlights) {
	now := f.problem.Now
	// Lead times vary, so Now may go back by up to maxLeadTime. If it goes back further, the
	// clock was set back: forget all, or observations would lie in the future.
	if m.since.IsZero() || m.latest.Sub(now) > maxLeadTime {
		*m = demand{
			since: now, latest: now, othersServed: now, known: map[string]time.Time{}, drones: map[string]time.Time{},
			expected: m.expected, sample: expectedSample(m.expected),
		}
	}
	if now.After(m.latest) {
		m.latest = now
	}
	m.observeDrones(f.problem.Drones, now)
	if n := len(f.problem.Drones); n > 0 {
		m.typical = f.charged(f.problem.Drones[n-1])
	}
	for i := range f.problem.Orders {
		o := unrestricted(&f.problem.Orders[i]) // the next orders at this place are not pinned
		_, old := m.known[o.ID]
		m.known[o.ID] = now
		if old {
			continue
		}
		m.sample = append(m.sample, *o)
		if o.Priority == solver.Critical && m.servableInTime(f, o) {
			m.urgent = append(m.urgent, now)
		}
	}
	m.sample = m.sample[max(0, len(m.sample)-maxSample):]
	m.forget(now)
}

// observeDrones notes which drones are free.
func (m *demand) observeDrones(drones []solver.Drone, now time.Time) {
	if m.drones == nil {
		m.drones = map[string]time.Time{}
	}
	for _, d := range drones {
		m.drones[d.ID] = now
	}
	for id, seen := range m.drones {
		if now.Sub(seen) > DroneMemory {
			delete(m.drones, id)
		}
	}
}

// servableInTime reports whether a drone at its depot, or one that is free now,
// could deliver the order in time.
func (m *demand) servableInTime(f directFlights, o *solver.Order) bool {
	if took, _ := f.tryOne(m.typical, o); m.typical.ID != "" && f.inTime(o, took) {
		return true
	}
	took, _ := f.earliest(o, f.problem.Drones)
	return f.inTime(o, took)
}

func (m *demand) forget(now time.Time) {
	for id, seen := range m.known {
		if now.Sub(seen) > demandWindow {
			delete(m.known, id)
		}
	}
	m.urgent, m.launches = recent(m.urgent, now), recent(m.launches, now)
}

func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) > demandWindow {
		times = times[1:]
	}
	return times
}

// ratePerMinute is the rate of the observed times and of a prior rate that counts as some minutes
// of observation.
func (m *demand) ratePerMinute(times []time.Time, now time.Time, prior, minutes float64) float64 {
	observed := min(demandWindow, now.Sub(m.since)).Minutes()
	return (float64(len(times)) + prior*minutes) / (observed + minutes)
}

func (m *demand) urgentPerMinute(now time.Time) float64 {
	prior, minutes := m.urgentPrior(now)
	return m.ratePerMinute(m.urgent, now, prior, minutes)
}

// flyingShare is the share of a drone's turn that it flies; the rest it charges.
const flyingShare = 0.8

// routeDuration is how long routes may take if drones are to return twice as
// fast as CRITICAL orders need them.
func (m *demand) routeDuration(now time.Time) time.Duration {
	turn := float64(len(m.drones)) / (2 * m.urgentPerMinute(now))
	return time.Duration(flyingShare * turn * float64(time.Minute))
}

// launched notes which missions begin.
func (m *demand) launched(p *solver.Problem, plan solver.Plan) {
	critical := map[string]bool{}
	for i := range p.Orders {
		if o := &p.Orders[i]; o.Priority == solver.Critical {
			critical[o.ID] = true
		}
	}
	others := false
	for _, r := range plan.Routes {
		m.launches = append(m.launches, p.Now)
		others = others || !slices.ContainsFunc(r.OrderIDs(), func(id string) bool { return critical[id] })
	}
	waiting := slices.ContainsFunc(plan.Unserved, func(u solver.Unserved) bool {
		return !critical[u.OrderID] && (u.Reason == solver.KeptForCritical || u.Reason == solver.NoDroneFree || u.Reason == solver.DeadlineUnreachable)
	})
	if others || !waiting {
		m.othersServed = p.Now
	}
}

// Learned demand weighs as much as this share of the time over which it was observed, and as
// many minutes at most.
const (
	expectedShare   = 0.1
	expectedMinutes = 20.0
)

// urgentPrior is the rate of CRITICAL orders to assume at a time, in orders a minute, and how
// many minutes of observation it counts for.
func (m *demand) urgentPrior(now time.Time) (perMinute, minutes float64) {
	orders, observed := m.expected.At(now, domain.PriorityCritical)
	seen := observed.Minutes()
	perMinute = (orders + priorUrgentPerMinute*priorMinutes) / (seen + priorMinutes)
	return perMinute, min(priorMinutes+expectedShare*seen, max(expectedMinutes, priorMinutes))
}

// expectedSample is an order for each delivery point where orders are expected, the busiest last,
// as a planner remembers orders that it has seen.
func expectedSample(expected learning.DemandEstimates) (sample []solver.Order) {
	for _, p := range slices.Backward(expected.Points[:min(len(expected.Points), maxSample)]) {
		sample = append(sample, orderAt(p))
	}
	return sample
}

// orderAt is an order like those of a delivery point. It has no id.
func orderAt(p domain.PointDemand) solver.Order {
	return solver.Order{Delivery: location(p.Position), ProductType: p.ProductType, ColdChain: p.ColdChain, WeightKg: p.WeightKg}
}
