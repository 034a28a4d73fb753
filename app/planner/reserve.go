package planner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// emptyReserveRisk is the accepted probability that a CRITICAL order finds the
// reserve empty. maxUtilization bounds the load for which it is computed: beyond
// it no reserve would be large enough.
const (
	emptyReserveRisk = 0.02
	maxUtilization   = 0.6
)

// reserve is how many drones to keep for CRITICAL orders to come. CRITICAL
// orders take drones from the reserve at one rate and returning drones refill it
// at another. As in an M/M/1 queue, a reserve of r drones is empty for the share
// (taken/returned)^r of the time. At most a quarter of the drones is kept.
func (m *demand) reserve(now time.Time) int {
	taken := m.urgentPerMinute(now)
	returned := m.ratePerMinute(m.launches, now, priorReturnsPerMinute, priorMinutes)
	utilization := min(maxUtilization, taken/returned)
	r := int(math.Ceil(math.Log(emptyReserveRisk) / math.Log(utilization)))
	return max(0, min(r, len(m.drones)/4))
}

// urgentCharge is the charge, in percent, that suffices to fly any recent order
// from the depot that could be in time if it were CRITICAL.
func (m *demand) urgentCharge(f directFlights) float64 {
	most := 0.0
	for i := range m.sample {
		if took, charge := f.tryOne(m.typical, &m.sample[i]); took <= solver.Critical.Window()-detectionMargin {
			most = max(most, charge)
		}
	}
	return most
}

const (
	// awayMetres is the distance from its depot beyond which a drone counts as
	// away.
	awayMetres = 500
	// advanceHorizon is the time ahead for which drones at advance positions are
	// kept. It is long because nothing replaces them, unlike those at the depot.
	advanceHorizon = 90 * time.Minute
	// detectionMargin is the part of a CRITICAL order's time that has passed when
	// a cycle first sees it.
	detectionMargin = time.Minute
)

// advanceDrones picks the free drones at an advance position: from there they could deliver
// CRITICAL orders in time that no drone at its depot could, judging by recent orders. A drone that
// leaves it lands at its depot, so the advantage is lost.
func (m *demand) advanceDrones(f directFlights) map[string]bool {
	type candidate struct {
		id     string
		covers int // orders of the sample
	}
	var candidates []candidate
	beyond := m.beyondDepot(f)
	covered := make([]bool, len(beyond))
	for _, d := range f.problem.Drones {
		if metres(d.At, f.home(&d)) < awayMetres {
			continue
		}
		c := candidate{id: d.ID}
		for i, r := range beyond {
			if took, _ := f.try(&d, r); took <= solver.Critical.Window()-detectionMargin {
				c.covers++
				covered[i] = true
			}
		}
		if c.covers > 0 {
			candidates = append(candidates, c)
		}
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int { return cmp.Compare(b.covers, a.covers) })
	share := 0.0
	for _, c := range covered {
		if c {
			share += 1 / float64(len(m.sample))
		}
	}
	// The number of such orders to expect, if CRITICAL orders are spread like all
	// others.
	need := int(math.Ceil(share * m.urgentPerMinute(f.problem.Now) * advanceHorizon.Minutes()))
	kept := map[string]bool{}
	for _, c := range candidates[:min(len(candidates), need, len(m.drones)/4)] {
		kept[c.id] = true
	}
	return kept
}

// beyondDepot lists the recent orders that would be late from the depot if they
// were CRITICAL.
func (m *demand) beyondDepot(f directFlights) []*request {
	var list []*request
	for i := range m.sample {
		o := &m.sample[i]
		if o.Pickup != nil {
			continue // picked up at a place of its own: says nothing about the next order
		}
		r := f.request(o)
		if took, _ := f.try(&m.typical, r); took > solver.Critical.Window()-detectionMargin {
			list = append(list, r)
		}
	}
	return list
}

// byAdvance splits the drones into the ordinary ones and those that stay at advance positions. A
// drone with a route does not stay.
func (l *lookAhead) byAdvance() (ordinary, advance []solver.Drone) {
	stays := func(id string) bool { return l.advance[id] && !l.hasRoute(id) }
	return selectDrones(l.work.Drones, func(id string) bool { return !stays(id) }), selectDrones(l.work.Drones, stays)
}

// ordinary lists the drones that are not kept at an advance position.
func (l *lookAhead) ordinary() []solver.Drone {
	drones, _ := l.byAdvance()
	return drones
}

// inReserveOrder lists the free drones, the best ones for the reserve first: those at advance
// positions already, then those with just the charge that CRITICAL orders need. The fullest are
// for the longest routes.
func (l *lookAhead) inReserveOrder() []solver.Drone {
	enough := l.demand.urgentCharge(l.directFlights)
	free, _ := l.byAdvance()
	free = l.unused(free)
	slices.SortStableFunc(free, func(a, b solver.Drone) int {
		if waits := l.waits(a.ID); waits != l.waits(b.ID) {
			if waits {
				return -1
			}
			return 1
		}
		if less := a.BatteryPercent < enough; less != (b.BatteryPercent < enough) {
			if less {
				return 1
			}
			return -1
		} else if less {
			return cmp.Compare(b.BatteryPercent, a.BatteryPercent)
		}
		return cmp.Compare(a.BatteryPercent, b.BatteryPercent)
	})
	// Another drone in reserve does as well, and an order that is pinned has no other.
	pinned := map[string]bool{}
	for i := range l.work.Orders {
		pinned[l.work.Orders[i].PinnedDroneID] = true
	}
	isPinned := func(d solver.Drone) bool { return pinned[d.ID] }
	return append(slices.DeleteFunc(slices.Clone(free), isPinned), slices.DeleteFunc(free, func(d solver.Drone) bool { return !isPinned(d) })...)
}

// waits reports whether a drone waits at an advance position or flies to it.
func (l *lookAhead) waits(drone string) bool {
	s := l.standby[drone]
	return s != nil && s.Stops[0].Kind == solver.Wait
}

// beside is the reserve to keep beside the drones at advance positions: smaller by their number,
// but at least one drone, to replace the next that leaves.
func (l *lookAhead) beside(reserve int) int {
	stay := 0
	for id := range l.advance {
		if l.waits(id) {
			stay++
		}
	}
	return max(min(reserve, 1), reserve-stay)
}

// release moves a drone that can serve the longest overdue order to the end of the free drones,
// where none is kept in reserve. So no order waits for ever for a drone in the reserve. A drone at
// an advance position is released only if no other can serve the order. When orders are starved,
// the order need not be long overdue.
func (l *lookAhead) release(free []solver.Drone, starved bool) []solver.Drone {
	least := longOverdue * l.params.AgingStep
	if starved {
		least = math.MinInt64
	}
	_, advance := l.byAdvance()
	all := append(l.unused(advance), free...)
	longest, ok := l.longestOverdue(all, least)
	if !ok {
		return free
	}
	r := l.request(&l.work.Orders[longest])
	for _, d := range slices.Backward(all) {
		if took, _ := l.try(&d, r); took != never {
			delete(l.advance, d.ID)
			return append(selectDrones(free, func(id string) bool { return id != d.ID }), d)
		}
	}
	return free
}

// keptDrones lists the drones that were not offered and have no route.
func (l *lookAhead) keptDrones(plan solver.Plan, offered []solver.Drone) []solver.Drone {
	used := map[string]bool{}
	for _, d := range offered {
		used[d.ID] = true
	}
	for _, r := range plan.Routes {
		used[r.DroneID] = true
	}
	return selectDrones(l.work.Drones, func(id string) bool { return !used[id] })
}
