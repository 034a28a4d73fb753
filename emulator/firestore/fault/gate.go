package fault

import (
	"context"
	"sync"
)

// Gate holds requests up until it is opened.
type Gate struct {
	mu      sync.Mutex
	arrived int
	changed chan struct{} // closed and replaced at each arrival
	open    chan struct{}
	opened  sync.Once
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{changed: make(chan struct{}), open: make(chan struct{})}
}

// Open lets everybody pass, now and later.
func (g *Gate) Open() { g.opened.Do(func() { close(g.open) }) }

// Wait holds the caller up until the gate is open or the context ends.
func (g *Gate) Wait(ctx context.Context) error {
	g.mu.Lock()
	g.arrived++
	close(g.changed)
	g.changed = make(chan struct{})
	g.mu.Unlock()
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Arrived returns when n requests have come to the gate, or the context ends.
func (g *Gate) Arrived(ctx context.Context, n int) error {
	for {
		g.mu.Lock()
		enough, changed := g.arrived >= n, g.changed
		g.mu.Unlock()
		if enough {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
