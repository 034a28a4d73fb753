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
			leg = min(leg, in.Dist[int(in.Loc[v])*in.N+int(in.Loc[r*Slots+DeliverySlot])])
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
	s.extend(1<<len(s.tasks)-1, 0, 0, 0, s.veh.Start, 0, s.veh.Depart, 0)
	s.spent += s.most - s.nodes
	return s.visits, s.best, len(s.visits) > 0
}

// extend goes on from a state: some tasks wait, some are aboard, which code says too,
// in digits of base three. Place is where the vehicle stands, at loc, after the given
// way, time and with the given load.
func (s *sequencer) extend(waiting, aboard uint32, code, place int, loc int32, way, clock, load float64) {
	in, veh := s.in, s.veh
	state := code*places + place
	if s.nodes == 0 || s.mark[state] == s.asked && s.way[state] <= way {
		return
	}
	s.nodes--
	s.mark[state], s.way[state] = s.asked, way
	row := in.Dist[int(loc)*in.N : (int(loc)+1)*in.N]
	end := in.Dist[int(veh.End)*in.N : (int(veh.End)+1)*in.N]
	if waiting|aboard == 0 {
		if clock+veh.Pace*row[veh.End] <= veh.Due+Slack && way+row[veh.End] < s.best {
			s.best = way + row[veh.End]
			s.visits = append(s.visits[:0], s.path...)
		}
		return
	}
	for rest := waiting | aboard; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest)
		t := &s.tasks[i]
		d := row[t.delivery]
		if waiting>>i&1 != 0 {
			d = max(d, t.leg)
		}
		if way+d+end[t.delivery] >= s.best || clock+veh.Pace*d > t.late {
			return
		}
	}
	for rest := aboard; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest)
		r := s.tasks[i].request
		s.call(r*Slots+DeliverySlot, waiting, aboard&^(1<<i), code+powers[i], 1+i*Slots+DeliverySlot, row, end, way, clock, load-in.Demand[r])
	}
	for rest := waiting; rest != 0; rest &= rest - 1 {
		i := bits.TrailingZeros32(rest)
		r := s.tasks[i].request
		if load+in.Demand[r] > veh.Capacity+Slack {
			continue
		}
		for slot := range int(in.Alts[r]) {
			s.call(r*Slots+int32(slot), waiting&^(1<<i), aboard|1<<i, code+powers[i], 1+i*Slots+slot, row, end, way, clock, load+in.Demand[r])
		}
	}
}

// call goes to a visit next, if the vehicle can be there in time and get home.
func (s *sequencer) call(v int32, waiting, aboard uint32, code, place int, row, end []float64, way, clock, load float64) {
	in, loc := s.in, s.in.Loc[v]
	d := row[loc]
	arrival := max(clock+s.veh.Pace*d, in.Early[v])
	if way+d+end[loc] >= s.best || arrival > in.Late[v]+Slack {
		return
	}
	s.path = append(s.path, v)
	s.extend(waiting, aboard, code, place, loc, way+d, arrival+in.Service[v], load)
	s.path = s.path[:len(s.path)-1]
}
