package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

const (
	// dronesRemembered is how long a list of the depot's drones is used: an order
	// that none of them can carry is left by every cycle until somebody cancels it.
	dronesRemembered = time.Minute
	// dronesTimeout is how long the end of a cycle may wait for the list.
	dronesTimeout = 5 * time.Second
)

// Memory is what a Runner remembers of one depot between its cycles.
type Memory struct {
	planner *planner.Planner
	drones  []domain.Drone // all of the depot
	readAt  time.Time      // machine time; zero if never read
}

// judgeByAllDrones corrects the reasons of orders for which no free drone is
// good enough: either a drone of the depot that is not free can carry them, or
// none ever will. If the drones cannot be read, the reasons stay.
func (r *Runner) judgeByAllDrones(ctx context.Context, depot domain.DepotID, memory *Memory, p solver.Problem, unserved []solver.Unserved) {
	needed := false
	for _, u := range unserved {
		needed = needed || planner.DependsOnBusyDrones(p, u)
	}
	if !needed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dronesTimeout)
	defer cancel()
	if memory.readAt.IsZero() || time.Since(memory.readAt) >= dronesRemembered {
		drones, err := r.store.Fleet(ctx, depot, planner.DroneMemory)
		if err != nil {
			r.log.WarnContext(ctx, "depot's drones not read; unserved orders are judged by the free drones only", slog.Any("err", err))
			return
		}
		memory.drones, memory.readAt = drones, time.Now()
	}
	if err := planner.JudgeByAllDrones(ctx, p, unserved, memory.drones); err != nil {
		r.log.WarnContext(ctx, "unserved orders are judged by the free drones only", slog.Any("err", err))
	}
}
