package search

import "math/bits"

// Sequences are sought of at most so many requests, at no more than so many nodes:
// the table of states triples with every request.
const (
	longestSequence = 7
	sequenceNodes   = 10_000
)

// sequencer finds the shortest route of a vehicle through a set of requests: depth
// first, over who waits, is aboard or delivered, and where the vehicle is. Of two
// ways to the same such state only the shorter goes on, as in the dynamic program
// of Psaraftis (1980): where no window has yet to open, and the service at all
// alternatives takes as long, it is also the faster.
type sequencer struct {
	in    *Instance
	veh   *Vehicle
	way   []float64 // shortest way to each state, where the mark is that of the question
	mark  []uint32
	asked uint32
	leg   []float64 // of each request, the shortest from a pickup to the delivery

	tasks  []task // of the question
	path   []int32
	visits []int32 // of the best
	best   float64
	nodes  int // left
	most   int // nodes of a question
	spent  int // nodes of all questions
}

// task is a request of a question.
type task struct {
	request  int32
	delivery int32   // its location
	leg      float64 // the shortest to there from a pickup
	late     float64 // the latest arrival there
}

// places is how many places a state may be at: the start, the deliveries and the
// pickups.
const places = 1 + longestSequence*Slots

func newSequencer(in *Instance) *sequencer {
	states := places
	for range longestSequence {
		states *= 3
	}
	s := &sequencer{in: in, most: sequenceNodes, way: make([]float64, states), mark: make([]uint32, states)}
	for r := range int32(in.Requests) {
		leg := inf
		for v := r * Slots; v < r*Slots+int32(in.Alts[r]); v++ {
			leg = min(leg, in.row(in.Loc[v])[in.Loc[r*Slots+DeliverySlot]])
		}
		s.leg = append(s.leg, leg)
	}
	return s
}

// powers of three: what a request that comes aboard, or is delivered, adds to a
// state.
var powers = func() (p [longestSequence]int) {
	for i, x := 0, 1; i < longestSequence; i, x = i+1, 3*x {
		p[i] = x
	}
	return p
}()

// shortest returns the shortest route through the set, valid until the next call,
// and its length, if that is below cutoff.
func (s *sequencer) shortest(vehicle int, set uint32, cutoff float64) ([]int32, float64, bool) {
	s.tasks = s.tasks[:0]
	for ; set != 0; set &= set - 1 {
		r := int32(bits.TrailingZeros32(set))
		d := r*Slots + DeliverySlot
		s.tasks = append(s.tasks, task{r, s.in.Loc[d], s.leg[r], s.in.Late[d] + Slack})
	}
	if len(s.tasks) > longestSequence || 2*len(s.tasks)+2 > s.in.stride() {
		return nil, 0, false
	}
	s.veh = &s.in.Vehicles[vehicle]
	s.best, s.nodes, s.visits = min(cutoff, s.veh.MaxDist+costGrain/2), s.most, s.visits[:0]
	s.asked++
	s.extend(moment{waiting: 1<<len(s.tasks) - 1, loc: s.veh.Start, clock: s.veh.Depart})
	s.spent += s.most - s.nodes
	return s.visits, s.best, len(s.visits) > 0
}

// moment is a state of the search for a sequence: some tasks wait, some are aboard,
// which code says too, in digits of base three. Place, at loc, is where the vehicle
// stands after the given way and time, with the given load.
type moment struct {
	waiting, aboard  uint32
	code, place      int
	loc              int32
	way, clock, load float64
}

// extend goes on from a state.
func (s *sequencer) extend(m moment) {
	in, veh := s.in, s.veh
	state := m.code*places + m.place
	if s.nodes == 0 || s.mark[state] == s.asked && s.way[state] <= m.way {
		return
	}
	s.nodes--
	s.mark[state], s.way[state] = s.asked, m.way
	row, end := in.row(m.loc), in.row(veh.End)
	if m.waiting|m.aboard == 0 {
		if m.clock+veh.Pace*row[veh.End] <= veh.Due+Slack && m.way+row[veh.End] < s.best {
			s.best = m.way + row[veh.End]
			s.visits = append(s.visits[:0], s.path...)
		}
		return
	}
	for rest := m.waiting | m.aboard; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest)
		t := &s.tasks[i]
		d := row[t.delivery]
		if m.waiting>>i&1 != 0 {
			d = max(d, t.leg)
		}
		if m.way+d+end[t.delivery] >= s.best || m.clock+veh.Pace*d > t.late {
			return
		}
	}
	for rest := m.aboard; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest)
		r := s.tasks[i].request
		next := m
		next.aboard &^= 1 << i
		next.code += powers[i]
		next.place = 1 + i*Slots + DeliverySlot
		next.load -= in.Demand[r]
		s.call(r*Slots+DeliverySlot, next, row, end)
	}
	for rest := m.waiting; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest)
		r := s.tasks[i].request
		next := m
		if next.load += in.Demand[r]; next.load > veh.Capacity+Slack {
			continue
		}
		next.waiting &^= 1 << i
		next.aboard |= 1 << i
		next.code += powers[i]
		for slot := range int(in.Alts[r]) {
			next.place = 1 + i*Slots + slot
			s.call(r*Slots+int32(slot), next, row, end)
		}
	}
}

// call goes to a visit, if the vehicle can be there in time and get home. The next
// state is complete but for where and when that is; row and end are the distances
// from where the vehicle is and from where it ends.
func (s *sequencer) call(v int32, next moment, row, end []float64) {
	in, loc := s.in, s.in.Loc[v]
	d := row[loc]
	arrival := max(next.clock+s.veh.Pace*d, in.Early[v])
	if next.way+d+end[loc] >= s.best || arrival > in.Late[v]+Slack {
		return
	}
	next.loc, next.way, next.clock = loc, next.way+d, arrival+in.Service[v]
	s.path = append(s.path, v)
	s.extend(next)
	s.path = s.path[:len(s.path)-1]
}
