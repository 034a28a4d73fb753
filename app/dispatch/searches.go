package dispatch

import (
	"context"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// processorsPerSearch is how many processors a search keeps busy.
	processorsPerSearch = 1.6
	// readInTurn is how long a cycle may read in its turn, in machine time. A read that takes longer
	// leaves the turn to another cycle.
	readInTurn = 2 * time.Second
)

// DefaultSearches is how many cycles this process searches at once by default.
func DefaultSearches() int { return max(1, int(float64(runtime.GOMAXPROCS(0))/processorsPerSearch)) }

// searches bounds the cycles that search at once. Those that wait take turns by age.
type searches struct{ free *semaphore.Weighted }

func newSearches(n int) searches { return searches{semaphore.NewWeighted(int64(n))} }

// turn lets one cycle read and search.
type turn struct {
	searches searches
	waited   time.Duration
	reading  *time.Timer // ends the turn of a slow reader

	mu   sync.Mutex
	held bool
}

// wait returns when it is the caller's turn. The error is why ctx ended before.
func (s searches) wait(ctx context.Context) (*turn, error) {
	began := time.Now()
	t := &turn{searches: s}
	if err := t.resume(ctx); err != nil {
		return nil, err
	}
	t.waited = time.Since(began)
	t.reading = time.AfterFunc(readInTurn, t.end)
	return t, nil
}

// resume returns when it is the caller's turn again. From then on the turn lasts until end.
func (t *turn) resume(ctx context.Context) error {
	if t.reading != nil {
		t.reading.Stop()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		return nil
	}
	if t.searches.free.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	t.held = true
	return nil
}

// end lets the next cycle search. Further calls do nothing.
func (t *turn) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held {
		t.searches.free.Release(1)
		t.held = false
	}
}
