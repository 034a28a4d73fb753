package lilim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/solver/internal/search"
)

// Options steer Solve.
type Options struct {
	TimeLimit time.Duration
	Seed      uint64
	Workers   int
	Clock     func() time.Time
	// Improved, if set, is called with every better complete solution, by one
	// goroutine at a time.
	Improved func(elapsed time.Duration, vehicles int, distance float64)
}

// Solution is what Solve found.
type Solution struct {
	Routes [][]int // task ids
	Steps  int64   // of ruin and recreate, by all workers
}

// Solve minimises vehicles, then distance. The error tells that no complete
// solution was found within the limit.
func Solve(ctx context.Context, in *Instance, o Options) (Solution, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	start := o.Clock()
	fraction := func(int64) float64 {
		if ctx.Err() != nil {
			return 2
		}
		return float64(o.Clock().Sub(start)) / float64(o.TimeLimit)
	}
	flat, pickups := in.flatten()
	fleet := search.FleetOptions{Tuning: tuning, Seed: o.Seed, Workers: o.Workers, Fraction: fraction}
	if o.Improved != nil {
		fleet.OnBest = better(flat, func(s *search.Solution) { o.Improved(o.Clock().Sub(start), s.Used, s.Cost) })
	}
	best, steps := search.MinimizeFleet(flat, fleet)
	if best.BankValue > 0 {
		return Solution{Steps: steps}, fmt.Errorf("%s: %d requests without a route", in.Name, best.BankValue)
	}
	var routes [][]int
	for _, visits := range best.Routes {
		if len(visits) == 0 {
			continue
		}
		var route []int
		for _, v := range visits {
			id := pickups[v/search.Slots]
			if v%search.Slots == search.DeliverySlot {
				id = in.Tasks[id].Drop
			}
			route = append(route, id)
		}
		routes = append(routes, route)
	}
	return Solution{routes, steps}, nil
}

// better returns a function, safe for several goroutines, that passes on the
// complete solutions better than all before.
func better(flat *search.Instance, report func(*search.Solution)) func(*search.Solution) {
	var mu sync.Mutex
	best := search.NewSolution(flat)
	return func(s *search.Solution) {
		mu.Lock()
		defer mu.Unlock()
		if s.BankValue == 0 && s.Less(best) {
			best.BankValue, best.Used, best.Cost = s.BankValue, s.Used, s.Cost
			report(best)
		}
	}
}

// tuning is for the benchmark's coordinates, about 100 wide.
var tuning = search.Tuning{
	Hot: 10, Cold: 0.1, Mean: 20, MaxString: 10,
	Soft: true, Share: 50, BankTries: 8,
	Keys: [8]int{4, 4, 2, 1, 2, 2, 2, 0},
}

// flatten gives the engine's form; pickups maps requests to task ids.
func (in *Instance) flatten() (flat *search.Instance, pickups []int) {
	for id, t := range in.Tasks {
		if id > 0 && t.Pickup == 0 {
			pickups = append(pickups, id)
		}
	}
	n := len(in.Tasks)
	flat = search.NewInstance(n, 0, len(pickups), min(in.Vehicles, len(pickups)))
	for a := range n {
		for b := range n {
			flat.Dist[a][b] = in.Distance(a, b)
		}
	}
	flat.Uniform = true
	flat.MaxRequests = min(len(pickups), 250)
	var anchors []int32
	for r, p := range pickups {
		flat.Alts[r], flat.Demand[r], flat.Weight[r] = 1, in.Tasks[p].Demand, 1
		flat.Price[r] = 1
		for _, end := range [2]struct{ slot, id int }{{0, p}, {search.DeliverySlot, in.Tasks[p].Drop}} {
			v, t := r*search.Slots+end.slot, in.Tasks[end.id]
			flat.Loc[v], flat.Early[v], flat.Late[v], flat.Service[v] = int32(end.id), t.Early, t.Late, t.Service
			anchors = append(anchors, int32(v))
		}
	}
	depot := in.Tasks[0]
	for i := range flat.Vehicles {
		flat.Vehicles[i] = search.Vehicle{Depart: depot.Early, Due: depot.Late, Pace: 1, Capacity: in.Capacity, MaxDist: search.Unlimited}
	}
	flat.LinkAnchors(anchors, 200, func(a, b int32) float64 {
		return flat.Dist[flat.Loc[a]][flat.Loc[b]]
	})
	return flat, pickups
}
