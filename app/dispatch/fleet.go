package dispatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

const (
	// fleetRemembered is how long a list of the depot's drones is good: an order
	// that none of them can carry is left by every cycle until somebody cancels it.
	fleetRemembered = time.Minute
	// fleetPatience is how long the cycle's end may wait for the list.
	fleetPatience = 5 * time.Second
)

// fleet is the drones of a depot, as last read.
type fleet struct {
	drones []domain.Drone
	read   time.Time // machine time
}

// awaited tells orders that wait for a drone from those that no drone of the
// depot can carry: plans know only the drones that are free, be it none. It judges
// all of them as they will be once they are back, charged at their depot. Where they
// cannot be read, the reasons stay.
func (r *Runner) awaited(ctx context.Context, c *domain.Cycle, planner *Planner, do intent) {
	whole := do.problem
	whole.Orders = nil
	var doubtful []*solver.Unserved // by index in whole.Orders
	for i := range do.unserved {
		u := &do.unserved[i]
		unjudged := u.Reason == solver.NoDroneFree && len(do.problem.Drones) == 0
		if unjudged || u.Reason == solver.OverCapacity || u.Reason == solver.OutOfRange {
			doubtful, whole.Orders = append(doubtful, u), append(whole.Orders, do.problem.Orders[u.Index])
		}
	}
	if len(doubtful) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fleetPatience)
	defer cancel()
	if known := &planner.fleet; known.read.IsZero() || time.Since(known.read) >= fleetRemembered {
		drones, err := r.store.Fleet(ctx, c.DepotID, fleetMemory)
		if err != nil {
			r.log.WarnContext(ctx, "fleet not read; reasons are those of the drones that are free", slog.Any("err", err))
			return
		}
		*known = fleet{drones, time.Now()}
	}
	f := flightsOf(&whole)
	whole.Drones = dronesOf(planner.fleet.drones)
	for i, d := range whole.Drones {
		whole.Drones[i] = f.charged(d)
	}
	alone, err := solver.Solve(ctx, whole, solver.Options{Strategy: solver.NearestFirst})
	if err != nil {
		return // the end of ctx
	}
	impossible := map[int]solver.Reason{}
	for _, u := range alone.Unserved {
		if u.Reason == solver.OverCapacity || u.Reason == solver.OutOfRange {
			impossible[u.Index] = u.Reason
		}
	}
	for i, u := range doubtful {
		reason, none := impossible[i]
		switch {
		case none:
			u.Reason = reason
		case u.Reason != solver.NoDroneFree:
			u.Reason, u.Detail = solver.NoDroneFree, "those that can carry it are not ready at the depot"
		}
	}
}
