package dispatch

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

const (
	// awayMetres is how far from its depot a drone is elsewhere.
	awayMetres = 500
	// outlook is the time ahead for which drones that stand elsewhere are kept:
	// unlike those at the depot nothing replaces them.
	outlook = 90 * time.Minute
	// outpostMargin is what is left of a CRITICAL order's time when it is seen.
	outpostMargin = time.Minute
)

// outposts picks the free drones that stand where they could deliver CRITICAL
// orders in time that no drone at its depot could, as far as recent orders tell
// where the next will be. Sending such a drone on an ordinary mission loses
// that for good: it lands at its depot.
func (m *demand) outposts(f flights) map[string]bool {
	type post struct {
		id     string
		covers int // of the sample
	}
	var posts []post
	beyond := m.beyondReach(f)
	covered := make([]bool, len(beyond))
	for _, d := range f.problem.Drones {
		if metres(d.At, f.home(&d)) < awayMetres {
			continue
		}
		p := post{id: d.ID}
		for i, e := range beyond {
			if took, _ := f.fly(&d, e); took <= solver.Critical.Window()-outpostMargin {
				p.covers++
				covered[i] = true
			}
		}
		if p.covers > 0 {
			posts = append(posts, p)
		}
	}
	slices.SortStableFunc(posts, func(a, b post) int { return cmp.Compare(b.covers, a.covers) })
	share := 0.0
	for _, c := range covered {
		if c {
			share += 1 / float64(len(m.sample))
		}
	}
	// So many such orders are to be expected, if they are spread as all are.
	need := int(math.Ceil(share * m.urgentPerMinute(f.problem.Now) * outlook.Minutes()))
	kept := map[string]bool{}
	for _, p := range posts[:min(len(posts), need, len(m.fleet)/4)] {
		kept[p.id] = true
	}
	return kept
}

// beyondReach lists the recent orders that would be too late from the depot,
// were they CRITICAL.
func (m *demand) beyondReach(f flights) []*errand {
	var list []*errand
	for i := range m.sample {
		o := &m.sample[i]
		if o.Pickup != nil {
			continue // comes from a place of its own: tells nothing of the next
		}
		e := f.errand(o)
		if took, _ := f.fly(&m.usual, e); took > solver.Critical.Window()-outpostMargin {
			list = append(list, e)
		}
	}
	return list
}
