package dispatch

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
)

// handOverTimeout is how long the end of a cycle may take to hand orders over.
const handOverTimeout = 10 * time.Second

// handOver gives orders that the area cannot serve in time to other areas that can. It notes
// in the record and in the reasons of the unserved orders what it handed over, and what was
// refused. If it fails the orders stay, and the next cycle tries again.
func (r *Runner) handOver(lease context.Context, c *domain.Cycle, p cyclePlan) {
	candidates := planner.HandOverCandidatesOf(p.problem, p.unserved, p.obstacles, p.snapshot, p.learned)
	depots := candidates.Depots()
	if len(depots) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(lease, handOverTimeout)
	defer cancel()
	others, err := r.readOtherAreas(ctx, depots, candidates.NeedAllDrones())
	if err != nil {
		r.log.WarnContext(ctx, "other areas not read; no order is handed over", slog.Any("err", err))
		return
	}
	h := domain.HandOvers{CycleID: c.ID, DepotID: c.DepotID, Fence: c.Fence, AreaRadius: r.cfg.AreaRadius, List: candidates.HandOvers(others)}
	if len(h.List) == 0 {
		return
	}
	refusals, err := r.store.HandOver(ctx, h)
	if err != nil {
		r.log.WarnContext(ctx, "orders not handed over", slog.Any("err", err))
	}
	notes := map[string]string{}
	for i, one := range h.List {
		refusal := err // of the fence, or a failure
		if i < len(refusals) {
			refusal = refusals[i]
		}
		reason, refused := policy.ReasonOf(refusal)
		switch {
		case refused:
			notes[string(one.OrderID)] = fmt.Sprintf("its hand-over to depot %s was refused: %s", one.To, reason)
			r.log.InfoContext(ctx, "order not handed over", slog.String("order_id", string(one.OrderID)), slog.String("reason", string(reason)), slog.Any("err", refusal))
		case refusal == nil:
			notes[string(one.OrderID)] = "handed over to depot " + string(one.To)
			c.HandedOver++
			r.log.InfoContext(ctx, "order handed over", slog.String("order_id", string(one.OrderID)), slog.String("from", string(one.From)),
				slog.String("to", string(one.To)), slog.String("reason", one.Reason))
		}
	}
	r.meter.Cycles.HandedOver.Add(int64(c.HandedOver))
	addNotes(p.unserved, notes)
}

// readOtherAreas reads what decides whether orders are handed over to the depots.
func (r *Runner) readOtherAreas(ctx context.Context, depots []domain.Depot, allDrones bool) (e planner.OtherAreas, err error) {
	e.Depots = depots
	ids := domain.Area{Depots: depots}.DepotIDs()
	if e.Idle, err = r.store.Idle(ctx, ids, r.cfg.Limits); err != nil {
		return e, err
	}
	if allDrones {
		if e.All, err = r.store.Fleet(ctx, ids, planner.DroneMemory); err != nil {
			return e, err
		}
	}
	if len(e.Idle) > 0 {
		e.Waiting, err = r.store.Waiting(ctx, ids)
	}
	return e, err
}

// addNotes adds to the reasons of the unserved orders what became of their hand-overs.
func addNotes(unserved []solver.Unserved, notes map[string]string) {
	for i := range unserved {
		u := &unserved[i]
		note, is := notes[u.OrderID]
		switch {
		case !is:
		case u.Detail == "":
			u.Detail = note
		default:
			u.Detail += "; " + note
		}
	}
}
