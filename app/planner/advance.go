package planner

import (
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

const (
	// replacementDelay is how long it takes, beside the flight, to replace a drone that has left an
	// advance position.
	replacementDelay = 2 * time.Minute
	// emptyAdvanceRisk is the accepted probability that a CRITICAL order finds no drone at its
	// advance position.
	emptyAdvanceRisk = 0.05
	// standbyShare: at most one drone in this many waits at an advance position. The reserve has the
	// same limit.
	standbyShare = 4
)

// advancePosition is a warehouse at which drones are to wait for CRITICAL orders: most flights
// begin at one.
type advancePosition struct {
	at           solver.Location
	need, have   int     // drones
	enough, half float64 // charge, in percent, that suffices for all of the expected orders, and for half of them
}

// expectedOrder is an order like those to come, and how many of them it stands for.
type expectedOrder struct {
	solver.Order
	weight float64
}

// expectedWeight is the weight of all learned places together; a recent order weighs 1.
const expectedWeight = 30.0

// expectedOrders stands for the CRITICAL orders to come: the orders seen lately and, once demand
// was learned, one order for each delivery point with CRITICAL orders.
func (m *demand) expectedOrders() (orders []expectedOrder) {
	critical, all := slices.Index(domain.Priorities[:], domain.PriorityCritical), 0.0
	points := m.expected.Points[:min(len(m.expected.Points), maxSample)]
	for _, p := range points {
		all += p.Orders[critical]
	}
	for _, o := range m.sample {
		if o.ID != "" || all == 0 { // otherwise it stands for a place, which counts by itself
			orders = append(orders, expectedOrder{o, 1})
		}
	}
	for _, p := range points {
		if n := p.Orders[critical]; n > 0 {
			orders = append(orders, expectedOrder{orderAt(p), expectedWeight * n / all})
		}
	}
	return orders
}

// advancePositions lists the warehouses at which drones are to wait. Each expected order counts
// for the warehouse that could serve it soonest. An advance position needs enough drones that it
// seldom runs out before a replacement arrives.
func (m *demand) advancePositions(f directFlights) []advancePosition {
	list := make([]advancePosition, len(f.problem.Warehouses))
	charges := make([][]float64, len(list))
	share, all := make([]float64, len(list)), 0.0
	for i, w := range f.problem.Warehouses {
		list[i].at = w.At
	}
	waiting := m.typical
	for _, o := range m.expectedOrders() {
		if o.Pickup != nil {
			continue // picked up at a place of its own: says nothing about the next order
		}
		r := f.request(&o.Order)
		soonest, at := solver.Critical.Window()-detectionMargin, -1
		for k := range list {
			waiting.At = list[k].at
			took, charge := f.try(&waiting, r)
			if took > solver.Critical.Window()-detectionMargin {
				continue
			}
			charges[k] = append(charges[k], charge)
			if took < soonest || at < 0 {
				soonest, at = took, k
			}
		}
		if at >= 0 {
			share[at] += o.weight
			all += o.weight
		}
	}
	for k := range list {
		if share[k] == 0 {
			continue
		}
		slices.Sort(charges[k])
		list[k].enough, list[k].half = charges[k][len(charges[k])-1], charges[k][len(charges[k])/2]
		away := flightTime(&m.typical, metres(f.home(&m.typical), list[k].at)) + replacementDelay
		list[k].need = poissonQuantile(m.urgentPerMinute(f.problem.Now)*share[k]/all*away.Minutes(), 1-emptyAdvanceRisk)
	}
	limitNeed(list, len(m.drones)/standbyShare)
	return list
}

// limitNeed takes drones from the advance positions that need most, one by one, until the total is
// within the limit.
func limitNeed(list []advancePosition, limit int) {
	total := 0
	for _, p := range list {
		total += p.need
	}
	for ; total > limit; total-- {
		most := 0
		for k := range list {
			if list[k].need > list[most].need {
				most = k
			}
		}
		list[most].need--
	}
}

// poissonQuantile is the least n such that a Poisson variable of the given mean is at most n
// with the given probability.
func poissonQuantile(mean, probability float64) (n int) {
	const most = 1000
	p := math.Exp(-mean)
	for sum := p; sum < probability && n < most; sum += p {
		n++
		p *= mean / float64(n)
	}
	return n
}
