package httpapi

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// waitsFor is how long the cycles that say why orders wait are kept: a caller that
// goes through all pages, or asks often, makes the State Manager read them once in
// that time. Cycles are ten seconds apart.
const waitsFor = 5 * time.Second

// waits keeps what the latest cycles found about the orders that wait.
type waits struct {
	store *firestoretx.Store

	mu        sync.Mutex // held while reading
	last      domain.Waits
	malformed []error
	readAt    time.Time
}

// of returns why orders wait. It reads nothing if none of them does.
func (w *waits) of(ctx context.Context, orders ...domain.Order) (domain.Waits, []error, error) {
	if !slices.ContainsFunc(orders, domain.Order.Waits) {
		return domain.Waits{}, nil, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.readAt.IsZero() && time.Since(w.readAt) < waitsFor {
		return w.last, w.malformed, nil
	}
	last, malformed, err := w.store.Waits(ctx)
	if err != nil {
		return domain.Waits{}, nil, err
	}
	w.last, w.malformed, w.readAt = last, malformed, time.Now()
	return last, malformed, nil
}

// orders answers GET /api/v1/orders with one page, and why those of them wait that
// do.
//
// Cost: 1 RPC, one read per order listed and one more; if one waits, at most every
// waitsFor, 1 + D RPCs and 2 D reads for D depots.
func (a *API) orders(ctx context.Context, r *request) (items []entity.WaitingOrder, next string, malformed []error, err error) {
	filter := firestoretx.OrderFilter{Status: domain.OrderStatus(r.value("status")), Held: r.has("held")}
	l, err := a.store.ListOrders(ctx, filter, r.page())
	if err != nil {
		return nil, "", nil, err
	}
	found, malformed, err := a.waits.of(ctx, l.Items...)
	form := func(o domain.Order) entity.WaitingOrder { return entity.OfWaitingOrder(o, found.Of(o)) }
	return entity.Each(l.Items, form), l.Next, append(l.Malformed, malformed...), err
}

// order answers GET /api/v1/orders/{id} with the order, and why it waits if it does.
//
// Cost: 1 RPC, 1 read; if it waits, the same as orders.
func (a *API) order(ctx context.Context, r *request) (now entity.WaitingOrder, err error) {
	o, err := a.store.Order(ctx, domain.OrderID(r.id()))
	if err != nil {
		return now, err
	}
	found, _, err := a.waits.of(ctx, o) // a malformed cycle is named where orders are listed
	if err != nil {
		return now, err
	}
	return entity.OfWaitingOrder(o, found.Of(o)), nil
}
