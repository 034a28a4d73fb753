package search

import "github.com/dronefleet/dronefleet/solver/internal/pdp"

// Sorts of the pending requests before greedy insertion: those of SISR, and
// SortPrize for requests that are not worth the same.
const (
	SortRandom = iota
	SortDemand // heaviest first
	SortFar    // by the length of the route that serves the request alone, longest first
	SortClose  // by the same, shortest first
	SortStart  // by the start of the pickup's window, latest first
	SortEnd    // by the end of the delivery's window, earliest first
	SortWidth  // by the time between these two, narrowest first
	SortPrize  // by prize, greatest first
	sortCount
)

// SortWeights says how often each sort is drawn, relative to the others.
type SortWeights [sortCount]int

// draw returns a random sort.
func (w *SortWeights) draw(rng *rng) int {
	total := 0
	for _, n := range w {
		total += n
	}
	x := rng.intn(total)
	for k, n := range w {
		if x -= n; x < 0 {
			return k
		}
	}
	return SortRandom
}

// sorter brings requests into the order of a sort.
type sorter struct {
	keys [sortCount][]float64 // of each request; the smallest comes first
}

func newSorter(in *pdp.Instance) sorter {
	var s sorter
	for k := range s.keys {
		s.keys[k] = make([]float64, in.Requests)
	}
	for r := range in.Requests {
		p, d := r*pdp.Slots, r*pdp.Slots+pdp.DeliverySlot
		far := inf
		for i := range in.Vehicles {
			v := &in.Vehicles[i]
			far = min(far, in.Dist[v.Start][in.Loc[p]]+in.Dist[in.Loc[d]][v.End])
			if in.Identical {
				break
			}
		}
		far += in.Dist[in.Loc[p]][in.Loc[d]]
		s.keys[SortDemand][r] = -in.Demand[r]
		s.keys[SortFar][r] = -far
		s.keys[SortClose][r] = far
		s.keys[SortStart][r] = -in.Early[p]
		s.keys[SortEnd][r] = in.Late[d]
		s.keys[SortWidth][r] = in.Late[d] - in.Early[p]
		s.keys[SortPrize][r] = -float64(in.Prize[r])
	}
	return s
}

// sort orders requests by a sort, ties at random.
func (s *sorter) sort(requests []int32, by int, rng *rng) {
	rng.shuffle(requests)
	if by == SortRandom {
		return
	}
	keys := s.keys[by]
	for i := 1; i < len(requests); i++ { // the lists are short: insertion sort
		r := requests[i]
		key := keys[r]
		j := i
		for ; j > 0 && keys[requests[j-1]] > key; j-- {
			requests[j] = requests[j-1]
		}
		requests[j] = r
	}
}
