package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Reasons against handing an order over.
const (
	ReasonPlannedElsewhere Reason = "PLANNED_ELSEWHERE" // another depot or area plans it by now
	ReasonDepotUnknown     Reason = "DEPOT_UNKNOWN"
	ReasonHandedOverBefore Reason = "HANDED_OVER_BEFORE" // by the depot that would get it
	ReasonTooManyHandOvers Reason = "TOO_MANY_HAND_OVERS"
)

// HandOverOrder makes another depot plan a waiting order. order is nil if it is unknown, areas are
// today's areas, by is the cycle. Only the area that plans an order may hand it over, so a cycle
// from before a regrouping of the depots may not. No depot gets an order back, and
// domain.MaxHandOvers bounds their number. A decision about the order that is applied first wins.
func HandOverOrder(order *domain.Order, areas []domain.Area, by domain.HandOvers, h domain.HandOver, now time.Time) (Change, error) {
	id := string(h.OrderID)
	from, planned := AreaOf(areas, h.From)
	_, known := AreaOf(areas, h.To)
	switch {
	case order == nil:
		return Change{}, reject(ReasonNotFound, id, "no such order")
	case order.Status != domain.OrderPending:
		return Change{}, reject(ReasonNotPending, id, "the order is %s; only a PENDING one can be handed over", order.Status)
	case order.Held:
		return Change{}, reject(ReasonOrderHeld, id, "it waits for an operator")
	case order.PlanningDepotID != h.From:
		return Change{}, reject(ReasonPlannedElsewhere, id, "depot %q plans it, not %q", order.PlanningDepotID, h.From)
	case !planned || from.ID() != by.DepotID:
		return Change{}, reject(ReasonPlannedElsewhere, id, "depot %q, which plans it, is not in the area of depot %q", h.From, by.DepotID)
	case !known:
		return Change{}, reject(ReasonDepotUnknown, id, "no depot %q; hand it over to one that exists", h.To)
	case h.To == h.From || slices.Contains(order.HandedOverBy, h.To):
		return Change{}, reject(ReasonHandedOverBefore, id, "depot %s has planned it already", h.To)
	case len(order.HandedOverBy) >= domain.MaxHandOvers:
		return Change{}, reject(ReasonTooManyHandOvers, id, "it was handed over %d times, which is the limit", len(order.HandedOverBy))
	}
	o := *order
	o.PlanningDepotID, o.PlanningSince = h.To, now
	o.HandedOverBy = append(slices.Clone(o.HandedOverBy), h.From)
	r := &recorder{now: now, cause: domain.CauseCycle, cycle: by.CycleID}
	r.order(*order, &o, fmt.Sprintf("handed over by depot %s to %s: %s", h.From, h.To, h.Reason))
	return r.change, nil
}

// AdmitHandOvers checks the fence of a cycle's hand-overs as that of a decision. The verdict is the
// fence to store; the error is a Rejection.
func (p MissionAssignmentPolicy) AdmitHandOvers(s DecisionState, b domain.HandOvers) (Verdict, error) {
	d := domain.Decision{DepotID: b.DepotID, Fence: b.Fence, CycleID: b.CycleID}
	c := decisionCase{MissionAssignmentPolicy: p, DecisionState: s, decision: d}
	for _, objection := range []struct {
		reason Reason
		detail string
	}{{ReasonFenceMissing, c.fenceMissing()}, {ReasonFenceUnknown, c.fenceUnknown()}, {ReasonStaleFence, c.staleFence()}} {
		if objection.detail != "" {
			return Verdict{}, reject(objection.reason, string(b.CycleID), "%s", objection.detail)
		}
	}
	return s.fenceVerdict(d), nil
}
