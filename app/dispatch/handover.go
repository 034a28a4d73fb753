package dispatch

import (
	"context"
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
// in the record and in the reasons of the unserved orders what it handed over. If it fails
// the orders stay, and the next cycle tries again.
func (r *Runner) handOver(lease context.Context, c *domain.Cycle, p cyclePlan) {
	left := planner.LeftoversOf(p.problem, p.unserved, p.obstacles, p.snapshot)
	depots := left.Depots()
	if len(depots) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(lease, handOverTimeout)
	defer cancel()
	elsewhere, err := r.lookElsewhere(ctx, depots, left.NeedAllDrones())
	if err != nil {
		r.log.WarnContext(ctx, "other areas not read; no order is handed over", slog.Any("err", err))
		return
	}
	h := domain.HandOvers{CycleID: c.ID, DepotID: c.DepotID, Fence: c.Fence, List: left.HandOvers(elsewhere)}
	if len(h.List) == 0 {
		return
	}
	refusals, err := r.store.HandOver(ctx, h)
	if err != nil {
		r.log.WarnContext(ctx, "orders not handed over", slog.Any("err", err))
	}
	to := map[string]domain.DepotID{}
	for i, refusal := range refusals {
		one := h.List[i]
		if refusal != nil {
			reason, _ := policy.ReasonOf(refusal)
			r.log.InfoContext(ctx, "order not handed over", slog.String("order_id", string(one.OrderID)), slog.String("reason", string(reason)), slog.Any("err", refusal))
			continue
		}
		to[string(one.OrderID)] = one.To
		r.log.InfoContext(ctx, "order handed over", slog.String("order_id", string(one.OrderID)), slog.String("from", string(one.From)),
			slog.String("to", string(one.To)), slog.String("reason", one.Reason))
	}
	c.HandedOver = len(to)
	r.meter.Cycles.HandedOver.Add(int64(len(to)))
	sayHandedOver(p.unserved, to)
}

// lookElsewhere reads what decides whether orders are handed over to the depots.
func (r *Runner) lookElsewhere(ctx context.Context, depots []domain.Depot, allDrones bool) (e planner.Elsewhere, err error) {
	e.Depots = depots
	ids := domain.Area{Depots: depots}.DepotIDs()
	if e.Idle, err = r.store.Idle(ctx, ids, r.cfg.MinBattery, r.cfg.MaxSilence); err != nil {
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

// sayHandedOver adds to the reasons of the unserved orders where they were handed over.
func sayHandedOver(unserved []solver.Unserved, to map[string]domain.DepotID) {
	for i := range unserved {
		u := &unserved[i]
		depot, is := to[u.OrderID]
		switch {
		case !is:
		case u.Detail == "":
			u.Detail = "handed over to depot " + string(depot)
		default:
			u.Detail += "; handed over to depot " + string(depot)
		}
	}
}
