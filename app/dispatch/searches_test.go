package dispatch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// F-OWN-02: no more cycles search at once than allowed. Those that wait take turns by age. A read
// that takes long leaves its turn to the next, and searches later.
func TestSearches_TakeTurnsByAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSearches(2)
		var ended []int
		running, most := 0, 0
		var mu sync.Mutex
		note := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
		cycle := func(i int, reads, searches time.Duration) {
			turn, err := s.wait(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer turn.end()
			time.Sleep(reads)
			if err := turn.resume(t.Context()); err != nil {
				t.Error(err)
			}
			note(func() { running++; most = max(most, running) })
			time.Sleep(searches)
			note(func() { running--; ended = append(ended, i) })
		}
		for i, reads := range []time.Duration{time.Second, time.Minute, time.Second, 0, 0} {
			go func() { cycle(i, reads, 8*time.Second) }()
			time.Sleep(time.Millisecond) // the order of their age
		}
		time.Sleep(5 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if want := []int{0, 2, 3, 4, 1}; !slices.Equal(ended, want) || most > 2 {
			t.Errorf("ended in the order %v, at most %d at once; want %v", ended, most, want)
		}
	})
}

// F-OWN-02: a cycle that is told to stop does not wait for its turn.
func TestSearches_EndWithTheCycle(t *testing.T) {
	s := newSearches(1)
	turn, err := s.wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer turn.end()
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errShutdown)
	if _, err := s.wait(ctx); !errors.Is(err, errShutdown) {
		t.Errorf("it waited: %v", err)
	}
}
