package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
)

const (
	// dronesRemembered is how long a list of the depot's drones is used: every cycle asks again
	// about an order that none can carry, until an operator cancels it.
	dronesRemembered = time.Minute
	// dronesTimeout is how long the end of a cycle may wait for the list.
	dronesTimeout = 5 * time.Second
)

// Memory is what a Runner remembers of one area between its cycles.
type Memory struct {
	planner *planner.Planner
	learner *learning.Learner // nil for none
	flights firestoretx.FlightCache
	fence   int64          // of the latest cycle; zero before the first
	drones  []domain.Drone // all of the area
	readAt  time.Time      // machine time; zero if never read
	quiet   int            // cycles without orders since quietAt
	quietAt time.Time      // when they were recorded last; zero if never
}

// judgeByAllDrones corrects the reasons of orders that no free drone can carry: either a busy
// drone of the area can, or none ever will. If the drones cannot be read, the reasons stay.
func (r *Runner) judgeByAllDrones(ctx context.Context, p cyclePlan, memory *Memory) {
	needed := false
	for _, u := range p.unserved {
		needed = needed || planner.DependsOnBusyDrones(p.problem, u)
	}
	if !needed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dronesTimeout)
	defer cancel()
	if memory.readAt.IsZero() || time.Since(memory.readAt) >= dronesRemembered {
		drones, err := r.store.Fleet(ctx, p.homes, planner.DroneMemory)
		if err != nil {
			r.log.WarnContext(ctx, "area's drones not read; unserved orders are judged by the free drones only", slog.Any("err", err))
			return
		}
		memory.drones, memory.readAt = drones, time.Now()
	}
	planner.JudgeByAllDrones(p.problem, p.unserved, memory.drones, p.learned)
}
