package firestoretx

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// IngestOrder applies an order message. The error is nil when the order changed, a
// *policy.Rejection when the message changes nothing, and otherwise a failure of the store.
//
// Cost: 3 RPCs, 1 read and 2 writes for a new order; 2 RPCs more to cancel an assigned one.
// If the cached depots are old, 1 RPC more and a read per depot.
func (s *Store) IngestOrder(ctx context.Context, req domain.OrderRequest, published time.Time) error {
	orders := s.order
	var err error
	orders.Depots, err = s.planningDepots(ctx)
	if err != nil {
		return wrap(err, "order %s", req.ID)
	}
	if !req.Cancel {
		orders.Warning = s.warning(ctx, req)
	}
	err = s.changeOrder(ctx, req.ID,
		func(o *domain.Order) bool { return s.order.NeedsBinding(o, req) },
		func(o *domain.Order, b *policy.Binding, now time.Time) (policy.Change, error) {
			return orders.IngestOrder(o, b, req, published, now)
		})
	return wrap(err, "order %s", req.ID)
}

// HoldOrder hides a pending order from every cycle.
func (s *Store) HoldOrder(ctx context.Context, id domain.OrderID, why string) error {
	return s.changeForReason(ctx, id, why, policy.HoldOrder)
}

// ReleaseOrder makes a held order visible to cycles again.
func (s *Store) ReleaseOrder(ctx context.Context, id domain.OrderID, why string) error {
	return s.changeForReason(ctx, id, why, policy.ReleaseOrder)
}

// ChangeOrder gives an open order another priority, deadline or delivery position.
//
// Cost: that of IngestOrder for an order that is changed.
func (s *Store) ChangeOrder(ctx context.Context, id domain.OrderID, c domain.OrderChange, why string) (err error) {
	if c.Deadline != nil {
		deadline := c.Deadline.Truncate(time.Microsecond)
		c.Deadline = &deadline
	}
	orders := s.order
	if c.Delivery != nil {
		if orders.Depots, err = s.planningDepots(ctx); err != nil {
			return wrap(err, "order %s", id)
		}
	}
	return s.changeOrder(ctx, id, alone, func(o *domain.Order, _ *policy.Binding, now time.Time) (policy.Change, error) {
		if o != nil && c.Delivery != nil {
			to := domain.OrderRequest{ID: id, OrderContent: o.OrderContent, CreatedAt: o.CreatedAt}
			to.Delivery = *c.Delivery
			orders.Warning = s.warning(ctx, to)
		}
		return orders.ChangeOrder(o, id, c, why, now)
	})
}

// PinOrder lets only one drone take an open order.
func (s *Store) PinOrder(ctx context.Context, p policy.Pin) error {
	return s.changePin(ctx, p, policy.PinOrder)
}

// ForbidDrone keeps a drone from taking an open order.
func (s *Store) ForbidDrone(ctx context.Context, p policy.Pin) error {
	return s.changePin(ctx, p, policy.ForbidDrone)
}

// UnpinOrder ends a pin.
func (s *Store) UnpinOrder(ctx context.Context, id domain.OrderID, why string) error {
	return s.changeForReason(ctx, id, why, policy.UnpinOrder)
}

// AllowDrone ends a prohibition.
func (s *Store) AllowDrone(ctx context.Context, p policy.Pin) error {
	return s.changeOrder(ctx, p.Order, alone, func(o *domain.Order, _ *policy.Binding, now time.Time) (policy.Change, error) {
		return policy.AllowDrone(o, p, now)
	})
}

// changePin runs decide on an order in one transaction that also reads whether the
// drone is known and not retired.
func (s *Store) changePin(ctx context.Context, p policy.Pin,
	decide func(_ *domain.Order, known bool, _ policy.Pin, _ time.Time) (policy.Change, error)) error {
	return s.transact(ctx, nil, func(t *txn) error {
		snaps, err := t.get(s.doc(Orders, string(p.Order)), s.doc(Drones, string(p.Drone)))
		if err != nil {
			return err
		}
		if err := t.addOrder(snaps[0]); err != nil {
			return err
		}
		change, err := decide(found(t.orders, p.Order), snaps[1].Exists() && !isRetired(snaps[1]), p, t.now)
		if err != nil {
			return err
		}
		return t.write(change)
	})
}

// CancelOrder cancels an order whose parcel is not aboard.
func (s *Store) CancelOrder(ctx context.Context, id domain.OrderID, why string) error {
	cancel := domain.OrderRequest{ID: id, Cancel: true}
	return s.changeOrder(ctx, id,
		func(o *domain.Order) bool { return s.order.NeedsBinding(o, cancel) },
		func(o *domain.Order, b *policy.Binding, now time.Time) (policy.Change, error) {
			return s.order.CancelByOperator(o, b, id, why, now)
		})
}

// alone needs no binding: decide looks at the order only.
func alone(*domain.Order) bool { return false }

// changeForReason runs decide on an order alone.
func (s *Store) changeForReason(ctx context.Context, id domain.OrderID, why string,
	decide func(*domain.Order, domain.OrderID, string, time.Time) (policy.Change, error)) error {
	return s.changeOrder(ctx, id, alone, func(o *domain.Order, _ *policy.Binding, now time.Time) (policy.Change, error) {
		return decide(o, id, why, now)
	})
}

// changeOrder runs decide on an order in one transaction, with its drone and mission if
// needsBinding says so. If decide rejects with a change, the note that records it, changeOrder
// commits the change and returns the rejection.
func (s *Store) changeOrder(ctx context.Context, id domain.OrderID,
	needsBinding func(*domain.Order) bool,
	decide func(*domain.Order, *policy.Binding, time.Time) (policy.Change, error)) error {
	var rejection error
	err := s.transact(ctx, nil, func(t *txn) error {
		rejection = nil
		if err := t.readOrders(id); err != nil {
			return err
		}
		order := found(t.orders, id)
		var binding *policy.Binding
		if needsBinding(order) && order.AssignedDroneID != "" {
			b, err := t.readBinding(order.AssignedDroneID)
			if err != nil {
				return err
			}
			binding = &b
		}
		change, err := decide(order, binding, t.now)
		if err != nil && change.Empty() {
			return err
		}
		rejection = err
		return t.write(change)
	})
	if err != nil {
		return err
	}
	return rejection
}
