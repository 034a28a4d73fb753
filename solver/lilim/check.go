package lilim

import (
	"fmt"
	"math"
)

// checkTolerance is for sums of double-precision distances.
const checkTolerance = 1e-6

// Check replays the routes and returns the number of vehicles and the distance,
// or the first rule they break.
func Check(in *Instance, routes [][]int) (vehicles int, distance float64, err error) {
	routeOf := make([]int, len(in.Tasks))
	for k, route := range routes {
		if len(route) == 0 {
			continue
		}
		vehicles++
		var clock, load float64
		prev := 0
		for _, id := range route {
			if id <= 0 || id >= len(in.Tasks) {
				return 0, 0, fmt.Errorf("route %d: task %d does not exist", k+1, id)
			}
			t := in.Tasks[id]
			if routeOf[id] != 0 {
				return 0, 0, fmt.Errorf("route %d: task %d is visited twice", k+1, id)
			}
			if t.Pickup != 0 && routeOf[t.Pickup] != k+1 {
				return 0, 0, fmt.Errorf("route %d: task %d comes before its pickup %d", k+1, id, t.Pickup)
			}
			routeOf[id] = k + 1
			leg := math.Hypot(t.X-in.Tasks[prev].X, t.Y-in.Tasks[prev].Y)
			distance += leg
			clock = math.Max(clock+leg, t.Early)
			if clock > t.Late+checkTolerance {
				return 0, 0, fmt.Errorf("route %d: task %d at %.6f, latest %.6f", k+1, id, clock, t.Late)
			}
			clock += t.Service
			if load += t.Demand; load > in.Capacity+checkTolerance {
				return 0, 0, fmt.Errorf("route %d: load %.3f after task %d", k+1, load, id)
			}
			prev = id
		}
		leg := math.Hypot(in.Tasks[0].X-in.Tasks[prev].X, in.Tasks[0].Y-in.Tasks[prev].Y)
		distance += leg
		if clock+leg > in.Tasks[0].Late+checkTolerance {
			return 0, 0, fmt.Errorf("route %d: home at %.6f, latest %.6f", k+1, clock+leg, in.Tasks[0].Late)
		}
	}
	for id := 1; id < len(in.Tasks); id++ {
		if routeOf[id] == 0 {
			return 0, 0, fmt.Errorf("task %d is not visited", id)
		}
		if p := in.Tasks[id].Pickup; p != 0 && routeOf[p] != routeOf[id] {
			return 0, 0, fmt.Errorf("task %d and its pickup %d are in different routes", id, p)
		}
	}
	return vehicles, distance, nil
}
