package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// OrderPolicy decides what an order message or an operator's command does to an
// order.
type OrderPolicy struct {
	Limits // date the command a drone is owed when a cancellation shortens its route
	// Depots are all known depots. One of them plans each new order.
	Depots []domain.Depot
	// Warning says why no drone can deliver what is requested, as things stand; empty if one can.
	Warning string
}

// DefaultOrderPolicy holds the contract's values.
func DefaultOrderPolicy() OrderPolicy { return OrderPolicy{Limits: DefaultLimits()} }

// IngestOrder folds a request into its order, which is nil if it does not exist yet. binding is the
// order's drone and mission; only the cancellation of an assigned order needs it, see NeedsBinding.
// published is the message's publish time. A Rejection may come with a change, the note that
// records it. Only its requester changes or cancels an order that has one.
func (p OrderPolicy) IngestOrder(order *domain.Order, binding *Binding, req domain.OrderRequest, published, now time.Time) (Change, error) {
	r := p.recorder(now, domain.CauseOrder)
	hash := req.Hash()
	tombstone := order != nil && order.Status == domain.OrderCancelled && order.ContentHash == ""
	foreign := order != nil && order.RequesterID != "" && order.RequesterID != req.RequesterID
	switch {
	case foreign && !tombstone:
		r.note(*order, ReasonRequesterMismatch, domain.RefusedState(req))
		return r.change, reject(ReasonRequesterMismatch, string(req.ID), "the order is %s's and requester_id is %q; its requester or an operator can change it", order.RequesterID, req.RequesterID)
	case foreign && req.Cancel: // both have cancelled it, so neither's order may come to life
		o := *order
		o.RequesterID = ""
		r.order(*order, &o, "cancelled by another requester too")
		return r.change, nil
	case req.Cancel:
		return p.cancel(r, order, binding, req, "requested")
	case order == nil || tombstone && foreign: // nobody cancels another requester's order by being early
		o := domain.Order{ID: req.ID}
		var before domain.Order
		if order != nil {
			before = *order
			o.Revision = before.Revision
		}
		fill(&o, req, createdAt(req, published))
		o.ContentPublishedAt = published
		o.PendingSince, o.Warning = now, p.Warning
		planBy(&o, PlanningDepot(p.Depots, o.Delivery), now)
		r.order(before, &o, p.withWarning(""))
		return r.change, nil
	case order.ContentHash == hash && order.Status != "":
		return Change{}, reject(ReasonDuplicateOrder, string(req.ID), "accepted before; the order is %s", order.Status)
	case order.Status == domain.OrderPending && published.Before(order.ContentPublishedAt):
		return Change{}, reject(ReasonOrderSuperseded, string(req.ID), "published %s, before the request that is in force",
			published.UTC().Format(time.RFC3339Nano))
	case order.Status == domain.OrderPending || order.Status == "":
		o := *order
		created := order.CreatedAt
		if created.IsZero() {
			created = createdAt(req, published)
		}
		fill(&o, req, created)
		o.ContentPublishedAt = published
		o.PendingSince, o.Warning = now, p.Warning // plans for the old content are void
		o.Late = o.Late && now.After(o.Deadline)
		if o.Delivery != order.Delivery || o.PlanningDepotID == "" {
			planBy(&o, PlanningDepot(p.Depots, o.Delivery), now)
		}
		r.order(*order, &o, p.withWarning("changed by its requester"))
		return r.change, nil
	case tombstone:
		return Change{}, reject(ReasonAlreadyCancelled, string(req.ID), "its cancellation arrived before it")
	default:
		r.note(*order, ReasonOrderConflict, domain.RefusedState(req))
		return r.change, reject(ReasonOrderConflict, string(req.ID), "the content differs and the order is already %s", order.Status)
	}
}

// WarningText stands before the warning in the reason of an event.
const WarningText = "warning: "

// withWarning adds the warning to the reason of an event.
func (p OrderPolicy) withWarning(reason string) string {
	switch {
	case p.Warning == "":
		return reason
	case reason != "":
		reason += "; "
	}
	return reason + WarningText + p.Warning
}

func (p OrderPolicy) recorder(now time.Time, cause domain.Cause) *recorder {
	return &recorder{DronePolicy: DronePolicy{Limits: p.Limits}, now: now, cause: cause}
}

// NeedsBinding reports whether IngestOrder needs the order's mission and drone.
func (p OrderPolicy) NeedsBinding(order *domain.Order, req domain.OrderRequest) bool {
	return req.Cancel && order != nil && order.Status == domain.OrderAssigned
}

// createdAt is when the requester created the order, but at most when the message was published. A
// fast clock must not make the order due later.
func createdAt(req domain.OrderRequest, published time.Time) time.Time {
	if req.CreatedAt.IsZero() {
		return published
	}
	return earlier(req.CreatedAt, published)
}

// fill sets the requested content and what follows from it.
func fill(o *domain.Order, req domain.OrderRequest, created time.Time) {
	o.Status, o.OrderContent, o.ContentHash = domain.OrderPending, req.OrderContent, req.Hash()
	o.CreatedAt, o.Deadline = created, req.Deadline
	if o.Deadline.IsZero() {
		o.Deadline = created.Add(req.Priority.Window())
	}
}

// cancel ends an order unless its parcel is aboard.
func (p OrderPolicy) cancel(r *recorder, order *domain.Order, binding *Binding, req domain.OrderRequest, why string) (Change, error) {
	id := req.ID
	if order == nil {
		// The cancellation overtook the order. A tombstone keeps the order from being created when
		// it arrives.
		o := domain.Order{ID: id, Status: domain.OrderCancelled}
		o.RequesterID = req.RequesterID
		r.order(domain.Order{}, &o, "cancelled before it arrived")
		return r.change, nil
	}
	switch order.Status {
	case domain.OrderPending, domain.OrderSolving, domain.OrderAssigned: // no parcel is aboard
	case domain.OrderCancelled:
		return Change{}, reject(ReasonAlreadyCancelled, string(id), "")
	case domain.OrderDelivered:
		r.note(*order, ReasonAlreadyDelivered, nil)
		return r.change, reject(ReasonAlreadyDelivered, string(id), "delivered %s", order.DeliveredAt.UTC().Format(time.RFC3339))
	case domain.OrderInDelivery:
		r.note(*order, ReasonCancelTooLate, nil)
		return r.change, reject(ReasonCancelTooLate, string(id), "the parcel is aboard drone %s", order.AssignedDroneID)
	}
	o := *order
	o.Status, o.Held, o.HeldReason = domain.OrderCancelled, false, ""
	o.AssignedDroneID, o.AssignedMissionID, o.Releasing = "", "", false
	r.order(*order, &o, why)
	if order.Status == domain.OrderAssigned && binding != nil && binding.Mission != nil && binding.Mission.ID == order.AssignedMissionID {
		r.withdrawOrder(*binding, id)
	}
	return r.change, nil
}

// CancelByOperator cancels an order for an operator.
func (p OrderPolicy) CancelByOperator(order *domain.Order, binding *Binding, id domain.OrderID, why string, now time.Time) (Change, error) {
	if order == nil {
		return Change{}, reject(ReasonNotFound, string(id), "no such order")
	}
	return p.cancel(p.recorder(now, domain.CauseOperator), order, binding, domain.OrderRequest{ID: id}, why)
}

// HoldOrder hides a pending order from every cycle until it is released.
func HoldOrder(order *domain.Order, id domain.OrderID, why string, now time.Time) (Change, error) {
	return commandOrder(order, id, why, now, func(o *domain.Order) error {
		switch {
		case o.Status != domain.OrderPending:
			return reject(ReasonNotPending, string(id), "the order is %s; only a PENDING one can be held", o.Status)
		case o.Held:
			return reject(ReasonAlreadyHeld, string(id), "")
		}
		o.Held, o.HeldReason = true, why
		return nil
	})
}

// ReleaseOrder makes a held order visible to cycles again and resets its attempts.
func ReleaseOrder(order *domain.Order, id domain.OrderID, why string, now time.Time) (Change, error) {
	return commandOrder(order, id, why, now, func(o *domain.Order) error {
		if o.Status != domain.OrderPending || !o.Held {
			return reject(ReasonNotHeld, string(id), "the order is %s and not held", o.Status)
		}
		o.Held, o.HeldReason, o.Attempts, o.PendingSince = false, "", 0, now
		return nil
	})
}

// ChangeOrder gives an open order another priority, a deadline in the future or, while it is PENDING,
// another delivery position. Missions under way keep the order, because they remain sound. The hash
// of its content stays, so that a redelivery of the first request changes nothing.
func (p OrderPolicy) ChangeOrder(order *domain.Order, id domain.OrderID, c domain.OrderChange, why string, now time.Time) (Change, error) {
	if moves(order, c) {
		why = p.withWarning(why + "; delivery at " + degrees(*c.Delivery) + " instead of " + degrees(order.Delivery))
	}
	return adjust(order, id, why, now, func(o *domain.Order) error {
		before := *o
		if c.Priority != nil {
			o.Priority = *c.Priority
		}
		if c.Deadline != nil && !o.Deadline.Equal(*c.Deadline) {
			if !c.Deadline.After(now) {
				return reject(ReasonDeadlinePassed, string(id), "%s is not in the future; give a later time", c.Deadline.UTC().Format(time.RFC3339))
			}
			o.Deadline, o.Late = *c.Deadline, false
		}
		if moves(&before, c) {
			if o.Status != domain.OrderPending {
				return reject(ReasonNotPending, string(id), "the order is %s; only a PENDING one can go elsewhere", o.Status)
			}
			o.Delivery, o.Warning = *c.Delivery, p.Warning
			o.PendingSince = now // plans for the old position are void
			planBy(o, PlanningDepot(p.Depots, o.Delivery), now)
		} else if o.Priority == before.Priority && o.Deadline.Equal(before.Deadline) {
			return reject(ReasonUnchanged, string(id), "it is so already")
		}
		return nil
	})
}

// moves reports whether a change has another delivery position than the order.
func moves(o *domain.Order, c domain.OrderChange) bool {
	return o != nil && c.Delivery != nil && *c.Delivery != o.Delivery
}

// adjust is an operator's change of an order that is neither delivered nor cancelled.
func adjust(order *domain.Order, id domain.OrderID, why string, now time.Time, change func(*domain.Order) error) (Change, error) {
	return commandOrder(order, id, why, now, func(o *domain.Order) error {
		switch o.Status {
		case domain.OrderDelivered:
			return reject(ReasonAlreadyDelivered, string(id), "delivered %s", o.DeliveredAt.UTC().Format(time.RFC3339))
		case domain.OrderCancelled:
			return reject(ReasonAlreadyCancelled, string(id), "")
		case domain.OrderPending, domain.OrderSolving, domain.OrderAssigned, domain.OrderInDelivery:
		}
		return change(o)
	})
}

// commandOrder is an operator's change of an order.
func commandOrder(order *domain.Order, id domain.OrderID, why string, now time.Time, change func(*domain.Order) error) (Change, error) {
	if order == nil {
		return Change{}, reject(ReasonNotFound, string(id), "no such order")
	}
	o := *order
	if err := change(&o); err != nil {
		return Change{}, err
	}
	r := &recorder{now: now, cause: domain.CauseOperator}
	r.order(*order, &o, why)
	return r.change, nil
}
