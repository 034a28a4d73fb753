package syncguard

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

const (
	comparedWorkers = 8
	comparedTime    = 2 * time.Second
)

// turns are the acquisitions of one key by some workers, in their order.
type turns struct {
	took    []float64 // ms since the worker released the lock before, each
	holders []int
	lost    int // attempts
}

// handOvers is how often the lock went from one worker to another. A lock whose last holder
// gets it again at once makes many pairs, but lets the others wait.
func (ts turns) handOvers() (n int) {
	for i := 1; i < len(ts.holders); i++ {
		if ts.holders[i] != ts.holders[i-1] {
			n++
		}
	}
	return n
}

// wait is how long a share of the acquisitions took at most, in ms; 0 if there are none.
func (ts turns) wait(share float64) float64 {
	if len(ts.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(ts.took))
	return sorted[int(share*float64(len(sorted)-1))]
}

func (ts turns) String() string {
	served := make([]int, comparedWorkers)
	for _, worker := range ts.holders {
		served[worker]++
	}
	perSecond := func(n int) string {
		return strconv.FormatFloat(float64(n)/comparedTime.Seconds(), 'f', 0, 64)
	}
	ms := func(share float64) string { return strconv.FormatFloat(ts.wait(share), 'f', 1, 64) }
	return perSecond(len(ts.took)) + " pairs/s, " + perSecond(ts.handOvers()) + " hand-overs/s, waiting p50 " + ms(0.5) +
		" ms, p99 " + ms(0.99) + " ms, longest " + ms(1) + " ms; the worker served least had it " + strconv.Itoa(slices.Min(served)) +
		" times; " + strconv.Itoa(ts.lost) + " attempts lost"
}

// Compare measures eight workers on one key, SyncGuard's in one process and then ours. The
// figures depend on the machine's load, so they cannot fail the test. lost recognises an
// attempt that lost to another transaction; nil if there are none.
func Compare(t *testing.T, ours lock.Backend, theirs Peer, lost func(error) bool) {
	t.Helper()
	a := theirs.Do(map[string]any{"op": "contend", "key": "their", "workers": comparedWorkers, "forMs": comparedTime.Milliseconds()})
	if err := a.Err(); err != nil {
		t.Fatal(err)
	}
	for _, code := range a.Failures {
		if err := (Answer{Code: code}).Err(); lost == nil || !lost(err) {
			t.Errorf("SyncGuard: %v", err)
		}
	}
	our, their := contend(t, ours, lost), turns{a.Took, a.Holders, len(a.Failures)}
	for name, ts := range map[string]turns{"our": our, "SyncGuard's": their} {
		if len(ts.took)+ts.lost == 0 {
			t.Errorf("none of %s workers acquired the lock or lost", name)
		}
	}
	t.Logf("ours:      %v", our)
	t.Logf("SyncGuard: %v", their)
	t.Logf("ratio: %.1f of pairs, %.1f of hand-overs", float64(len(our.took))/float64(max(1, len(their.took))),
		float64(our.handOvers())/float64(max(1, their.handOvers())))
}

// contend is what the command of this name does, with a backend of ours.
func contend(t *testing.T, b lock.Backend, lost func(error) bool) (ts turns) {
	ctx := context.Background()
	end := time.Now().Add(comparedTime)
	var mu sync.Mutex
	var all sync.WaitGroup
	for worker := range comparedWorkers {
		all.Go(func() {
			for began := time.Now(); time.Now().Before(end); began = time.Now() {
				h, err := lock.Acquire(ctx, b, "our", lock.WithTimeout(time.Minute), lock.WithMaxRetries(1<<30))
				if err == nil {
					mu.Lock()
					ts.took = append(ts.took, float64(time.Since(began).Microseconds())/1000)
					ts.holders = append(ts.holders, worker)
					mu.Unlock()
					err = h.Close()
				}
				switch {
				case err == nil:
				case lost != nil && lost(err):
					mu.Lock()
					ts.lost++
					mu.Unlock()
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return ts
}
