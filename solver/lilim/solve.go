package lilim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/solver/internal/fleetmin"
	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/internal/search"
)

// Options steer Solve.
type Options struct {
	TimeLimit time.Duration
	Seed      uint64
	Workers   int // search goroutines; 0 means 2
	// Iterations > 0 selects the deterministic mode: that many ruin-and-recreate
	// steps per worker instead of TimeLimit.
	Iterations int
	// Clock replaces time.Now.
	Clock func() time.Time
	// Improved, if set, is called with every better complete solution, by one
	// goroutine at a time.
	Improved func(elapsed time.Duration, vehicles int, distance float64)
}

// Solution is what Solve found.
type Solution struct {
	Routes [][]int // task ids
	Steps  int64   // of ruin and recreate, by all workers
}

// Solve minimises vehicles, then distance. The error says that no complete
// solution was found within the limit.
func Solve(ctx context.Context, in *Instance, o Options) (Solution, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	start := o.Clock()
	fraction := func(steps int64) float64 {
		switch {
		case ctx.Err() != nil:
			return 2
		case o.Iterations > 0:
			return float64(steps) / float64(o.Iterations)
		}
		return float64(o.Clock().Sub(start)) / float64(o.TimeLimit)
	}
	flat, pickups := in.flatten()
	fleet := fleetmin.Options{Tuning: tuning, Seed: o.Seed, Workers: o.Workers, Fraction: fraction}
	if o.Improved != nil {
		fleet.OnBest = completeImprovements(flat, func(v pdp.Value) { o.Improved(o.Clock().Sub(start), v.Used, v.Cost) })
	}
	best, steps := fleetmin.Minimize(flat, fleet)
	if best.LostPrize > 0 {
		return Solution{Steps: steps}, fmt.Errorf("%s: %d requests have no route; allow more time", in.Name, best.LostPrize)
	}
	var routes [][]int
	for _, visits := range best.Routes {
		if len(visits) == 0 {
			continue
		}
		var route []int
		for _, v := range visits {
			id := pickups[pdp.Request(v)]
			if pdp.IsDelivery(v) {
				id = in.Tasks[id].Drop
			}
			route = append(route, id)
		}
		routes = append(routes, route)
	}
	return Solution{routes, steps}, nil
}

// completeImprovements returns a function, safe for several goroutines, that
// reports complete solutions better than all before.
func completeImprovements(flat *pdp.Instance, report func(pdp.Value)) func(*pdp.Solution) {
	var mu sync.Mutex
	best := pdp.NewSolution(flat).Value
	return func(s *pdp.Solution) {
		mu.Lock()
		defer mu.Unlock()
		if s.LostPrize == 0 && fleetmin.Less(s.Value, best) {
			best = s.Value
			report(best)
		}
	}
}

// tuning is for the benchmark's coordinates, about 100 wide.
var tuning = fleetmin.Tuning{
	Tuning: search.Tuning{
		InitialTemperature: 10, FinalTemperature: 0.1, MeanRemoved: 20, MaxString: 10, RegretPercent: 10, BankTries: 8,
		Sorts: search.SortWeights{
			search.SortRandom: 4, search.SortDemand: 4, search.SortFar: 2, search.SortClose: 1,
			search.SortStart: 2, search.SortEnd: 2, search.SortWidth: 2,
		},
	},
	Penalised: true, CompletePercent: 50,
}

const (
	// maxPairs bounds one route, and so the memory that routes take.
	maxPairs = 250
	// neighbours is how many visits around each other one a ruin can reach.
	neighbours = 200
)

// flatten returns the instance in flat form; pickups maps requests to task ids.
func (in *Instance) flatten() (flat *pdp.Instance, pickups []int) {
	for id, t := range in.Tasks {
		if id > 0 && t.Pickup == 0 {
			pickups = append(pickups, id)
		}
	}
	n := len(in.Tasks)
	flat = pdp.NewInstance(n, 0, len(pickups), min(in.Vehicles, len(pickups)))
	for a := range n {
		for b := range n {
			flat.Dist[a][b] = in.Distance(a, b)
		}
	}
	flat.Identical = true
	flat.MaxRequests = min(len(pickups), maxPairs)
	var anchors []int32
	for r, p := range pickups {
		flat.Pickups[r], flat.Demand[r], flat.Prize[r], flat.Penalty[r] = 1, in.Tasks[p].Demand, 1, 1
		for _, end := range [2]struct{ slot, id int }{{0, p}, {pdp.DeliverySlot, in.Tasks[p].Drop}} {
			v, t := r*pdp.Slots+end.slot, in.Tasks[end.id]
			flat.Loc[v], flat.Early[v], flat.Late[v], flat.Service[v] = int32(end.id), t.Early, t.Late, t.Service
			anchors = append(anchors, int32(v))
		}
	}
	depot := in.Tasks[0]
	for i := range flat.Vehicles {
		flat.Vehicles[i] = pdp.Vehicle{Depart: depot.Early, Due: depot.Late, Pace: 1, Capacity: in.Capacity, MaxDistance: pdp.Unlimited}
	}
	flat.LinkAnchors(anchors, neighbours, func(a, b int32) float64 {
		return flat.Dist[flat.Loc[a]][flat.Loc[b]]
	})
	return flat, pickups
}
