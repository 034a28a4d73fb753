package setpart

import (
	"math/bits"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
)

// Exact sequences are sought for up to maxSequence requests with up to
// labelsPerQuery labels: the table of states triples with every request.
const (
	maxSequence    = 7
	labelsPerQuery = 10_000
)

// sequencer finds the shortest route of a vehicle through a set of requests: depth first
// over states: which requests wait, are aboard or delivered, and where the vehicle is. Of
// two ways to one state only the shorter goes on, as in the dynamic program of Psaraftis
// (1980). It is also the faster one if all windows are open and all alternatives have equal
// service times.
type sequencer struct {
	in    *pdp.Instance
	way   []float64 // shortest way to each state, valid where the mark is that of the query
	mark  []uint32
	query uint32
	leg   []float64 // of each request, the shortest from a pickup to the delivery

	// Of the query:
	veh    *pdp.Vehicle
	tasks  []task
	path   []int32
	visits []int32 // of the best route
	best   float64 // its length
	left   int     // labels left

	limit int // labels of one query
	total int // labels of all queries
}

// task is a request of a query.
type task struct {
	request  int32
	delivery int32   // its location
	leg      float64 // the shortest distance to there from a pickup
	late     float64 // the latest arrival there
}

// stops is how many places a state may be at: the start, the deliveries and the
// pickups.
const stops = 1 + maxSequence*pdp.Slots

func newSequencer(in *pdp.Instance) *sequencer {
	states := stops
	for range maxSequence {
		states *= 3
	}
	s := &sequencer{in: in, limit: labelsPerQuery, way: make([]float64, states), mark: make([]uint32, states)}
	for r := range int32(in.Requests) {
		leg := inf
		for v := r * pdp.Slots; v < r*pdp.Slots+int32(in.Pickups[r]); v++ {
			leg = min(leg, in.Dist[in.Loc[v]][in.Loc[pdp.Delivery(r)]])
		}
		s.leg = append(s.leg, leg)
	}
	return s
}

// powers of three: what a request that comes aboard, or is delivered, adds to a
// state's code.
var powers = func() (p [maxSequence]int) {
	for i, x := 0, 1; i < maxSequence; i, x = i+1, 3*x {
		p[i] = x
	}
	return p
}()

// shortest returns the shortest route through the set, valid until the next call,
// and its length, if that is below the cutoff. It gives up on large sets, and
// returns the best so far when it is out of labels.
func (s *sequencer) shortest(vehicle int, set uint32, cutoff float64) ([]int32, float64, bool) {
	s.tasks = s.tasks[:0]
	for ; set != 0; set &= set - 1 {
		r := int32(bits.TrailingZeros32(set))
		if s.in.Excludes(r, int32(vehicle)) {
			return nil, 0, false
		}
		d := pdp.Delivery(r)
		s.tasks = append(s.tasks, task{r, s.in.Loc[d], s.leg[r], s.in.Late[d] + pdp.Tolerance})
	}
	if len(s.tasks) > maxSequence || 2*len(s.tasks)+2 > s.in.MaxPositions() {
		return nil, 0, false
	}
	s.veh = &s.in.Vehicles[vehicle]
	s.best, s.left, s.visits = min(cutoff, s.veh.MaxDistance+costRounding/2), s.limit, s.visits[:0]
	s.query++
	s.extend(label{waiting: 1<<len(s.tasks) - 1, loc: s.veh.Start, clock: s.veh.Depart})
	s.total += s.limit - s.left
	return s.visits, s.best, len(s.visits) > 0
}

// label is a partial route: some tasks wait, some are aboard, which code also says in base
// three; the vehicle is at stop and location loc, after a way and a time, with a load.
type label struct {
	waiting, aboard  uint32
	code, stop       int
	loc              int32
	way, clock, load float64
}

// extend completes a label in all ways that can be shorter than the best.
func (s *sequencer) extend(l label) {
	in, veh := s.in, s.veh
	state := l.code*stops + l.stop
	if s.left == 0 || s.mark[state] == s.query && s.way[state] <= l.way {
		return
	}
	s.left--
	s.mark[state], s.way[state] = s.query, l.way
	row, end := in.Dist[l.loc], in.Dist[veh.End]
	if l.waiting|l.aboard == 0 {
		if l.clock+veh.Pace*row[veh.End] <= veh.Due+pdp.Tolerance && l.way+row[veh.End] < s.best {
			s.best = l.way + row[veh.End]
			s.visits = append(s.visits[:0], s.path...)
		}
		return
	}
	for rest := l.waiting | l.aboard; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest)
		t := &s.tasks[i]
		d := row[t.delivery]
		if l.waiting>>i&1 != 0 {
			d = max(d, t.leg)
		}
		if l.way+d+end[t.delivery] >= s.best || l.clock+veh.Pace*d > t.late {
			return
		}
	}
	for rest := l.aboard; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest)
		r := s.tasks[i].request
		next := l
		next.aboard &^= 1 << i
		next.code += powers[i]
		next.stop = 1 + i*pdp.Slots + pdp.DeliverySlot
		next.load -= in.Demand[r]
		s.goTo(pdp.Delivery(r), next, row, end)
	}
	for rest := l.waiting; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest)
		r := s.tasks[i].request
		next := l
		if next.load += in.Demand[r]; next.load > veh.Capacity+pdp.Tolerance {
			continue
		}
		next.waiting &^= 1 << i
		next.aboard |= 1 << i
		next.code += powers[i]
		for slot := range int(in.Pickups[r]) {
			next.stop = 1 + i*pdp.Slots + slot
			s.goTo(r*pdp.Slots+int32(slot), next, row, end)
		}
	}
}

// goTo extends a label to a visit, if the vehicle can be there in time and get
// home within the best length. The next label is complete but for location, way
// and time; row and end are the distances from where the vehicle is and from
// where it ends.
func (s *sequencer) goTo(v int32, next label, row, end []float64) {
	in, loc := s.in, s.in.Loc[v]
	d := row[loc]
	arrival := max(next.clock+s.veh.Pace*d, in.Early[v])
	if next.way+d+end[loc] >= s.best || arrival > in.Late[v]+pdp.Tolerance {
		return
	}
	next.loc, next.way, next.clock = loc, next.way+d, arrival+in.Service[v]
	s.path = append(s.path, v)
	s.extend(next)
	s.path = s.path[:len(s.path)-1]
}
