package planner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

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

// advancePositions picks the free drones at an advance position: a place from
// which they could deliver CRITICAL orders in time that no drone at its depot
// could, judging by where recent orders were. A drone that leaves such a place
// lands at its depot, so the advantage is lost.
func (m *demand) advancePositions(f directFlights) map[string]bool {
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
