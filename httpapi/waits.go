package httpapi

import (
	"context"
	"slices"
	"sync"
	"time"

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
