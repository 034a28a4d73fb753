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

	requests []int32
	legs     []float64 // of these
	path     []int32
	visits   []int32 // of the best
	best     float64
	nodes    int // left
	most     int // nodes of a question
	spent    int // nodes of all questions
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
	s.requests, s.legs = s.requests[:0], s.legs[:0]
	for ; set != 0; set &= set - 1 {
		r := int32(bits.TrailingZeros32(set))
		s.requests, s.legs = append(s.requests, r), append(s.legs, s.leg[r])
	}
	if len(s.requests) > longestSequence || 2*len(s.requests)+2 > s.in.stride() {
		return nil, 0, false
	}
	s.veh = &s.in.Vehicles[vehicle]
	s.best, s.nodes, s.visits = min(cutoff, s.veh.MaxDist+costGrain/2), s.most, s.visits[:0]
	s.asked++
	s.extend(0, 0, s.veh.Start, 0, s.veh.Depart, 0)
	s.spent += s.most - s.nodes
	return s.visits, s.best, len(s.visits) > 0
}

// extend goes on from a state: code has a digit of base three for each request,
// place is where the vehicle stands, at loc, after the given way, time and with the
// given load.
func (s *sequencer) extend(code, place int, loc int32, way, clock, load float64) {
	in, veh := s.in, s.veh
	state := code*places + place
	if s.nodes == 0 || s.mark[state] == s.asked && s.way[state] <= way {
		return
	}
	s.nodes--
	s.mark[state], s.way[state] = s.asked, way
	row := in.Dist[int(loc)*in.N : (int(loc)+1)*in.N]
	end := in.Dist[int(veh.End)*in.N : (int(veh.End)+1)*in.N]
	done := true
	for i, r := range s.requests {
		if code/powers[i]%3 == 2 {
			continue
		}
		done = false
		v := r*Slots + DeliverySlot
		d := row[in.Loc[v]]
		if code/powers[i]%3 == 0 {
			d = max(d, s.legs[i])
		}
		if way+d+end[in.Loc[v]] >= s.best || clock+veh.Pace*d > in.Late[v]+Slack {
			return
		}
	}
	if done {
		if clock+veh.Pace*row[veh.End] <= veh.Due+Slack && way+row[veh.End] < s.best {
			s.best = way + row[veh.End]
			s.visits = append(s.visits[:0], s.path...)
		}
		return
	}
	for i, r := range s.requests {
		first, last, demand, step := int32(DeliverySlot), int32(DeliverySlot), -in.Demand[r], powers[i]
		switch code / powers[i] % 3 {
		case 2:
			continue
		case 0:
			if load+in.Demand[r] > veh.Capacity+Slack {
				continue
			}
			first, last, demand = 0, int32(in.Alts[r])-1, in.Demand[r]
		}
		for slot := first; slot <= last; slot++ {
			v := r*Slots + slot
			d := row[in.Loc[v]]
			arrival := max(clock+veh.Pace*d, in.Early[v])
			if way+d+end[in.Loc[v]] >= s.best || arrival > in.Late[v]+Slack {
				continue
			}
			s.path = append(s.path, v)
			s.extend(code+step, 1+i*Slots+int(slot), in.Loc[v], way+d, arrival+in.Service[v], load+demand)
			s.path = s.path[:len(s.path)-1]
		}
	}
}
