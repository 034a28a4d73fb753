package fault

import (
	"context"
	"sync"
)

// Gate blocks requests until it is opened. Make one with NewGate.
type Gate struct {
	mu      sync.Mutex
	arrived int
	changed chan struct{} // closed and replaced when a request arrives
	open    chan struct{}
	opened  sync.Once
}

// NewGate returns a closed gate.
func NewGate() *Gate {
	return &Gate{changed: make(chan struct{}), open: make(chan struct{})}
}

// Open lets all requests pass, now and later.
func (g *Gate) Open() { g.opened.Do(func() { close(g.open) }) }

// Wait blocks until the gate is open or the context ends, and then returns the
// error of the context.
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

// Arrived waits until n requests have reached the gate. If the context ends first
// it returns the error of the context.
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
