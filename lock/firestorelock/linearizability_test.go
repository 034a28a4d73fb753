package firestorelock

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/faultproxy"
	"github.com/dronefleet/dronefleet/lock/internal/history"
)

// skewedClock is the machine's clock, wrong by a constant.
type skewedClock struct {
	lock.Clock
	offset time.Duration
}

func (c skewedClock) Now() time.Time { return c.Clock.Now().Add(c.offset) }

// runTime is how long histories are recorded; LOCK_HISTORY=1m makes it longer.
func runTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("LOCK_HISTORY")
	if text == "" {
		return 4 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// seedOf is what faults and clients draw from; LOCK_SEED=9 sets another.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("LOCK_SEED")
	if text == "" {
		return 7
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seed
}

// B-05: concurrent clients with skewed clocks that crash, lose replies, try again and
// let leases expire, behind a network that fails. Without the server-time guard
// clocks may differ by the tolerance in all, with it by any amount.
func TestHistoriesAreLinearizable(t *testing.T) {
	for _, row := range []struct {
		name    string
		guard   bool
		offsets []time.Duration
		faults  bool
	}{
		{"calm", false, []time.Duration{0, 0, 0, 0}, false},
		{"skew of half a second either way", false, []time.Duration{-500, -100, 100, 500}, true},
		{"skew of seconds, with server-time guard", true, []time.Duration{-4000, -700, 900, 6000}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			seed := seedOf(t)
			project := freshProject()
			recorder := history.NewRecorder()
			var clients []*history.Client
			for i, offset := range row.offsets {
				offset *= time.Millisecond
				proxy, err := faultproxy.Start(serverAddr)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := proxy.Close(); err != nil {
						t.Error(err)
					}
				})
				client, conn := dial(t, proxy.Addr(), project)
				b := newBackend(t, client, Config{Clock: skewedClock{lock.SystemClock(), offset}})
				b.guarded = row.guard
				if row.faults {
					addRandomFaults(proxy, seed+uint64(i))
				}
				clients = append(clients, &history.Client{
					Backend: b, Recorder: recorder, ID: i, Offset: offset,
					Settle: func() error {
						ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
						defer cancel()
						return proxy.Settle(ctx, conn)
					},
				})
			}
			w := history.Workload{Seed: seed, Keys: 2, TTL: 150 * time.Millisecond, Run: runTime(t), Crashes: 0.05}
			if row.faults {
				w.Cancels, w.Retries = 0.02, 0.5 // L-RTY-05
			}
			w.Play(clients)
			verdict, why := recorder.Check(time.Minute)
			t.Logf("%d calls: %s", recorder.Len(), verdict)
			if verdict != history.Linearizable {
				t.Errorf("seed %d: %d calls are %s\n%s", seed, recorder.Len(), verdict, why)
			}
		})
	}
}

// addRandomFaults makes a few requests in a hundred fail, before and after they
// are applied.
func addRandomFaults(p *faultproxy.Proxy, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	sometimes := func(share float64) func([]byte) bool {
		return func([]byte) bool {
			mu.Lock()
			defer mu.Unlock()
			return rng.Float64() < share
		}
	}
	for _, fault := range []faultproxy.Fault{
		{After: codes.Unavailable}, {After: codes.Unknown}, {After: codes.DeadlineExceeded},
		{Before: codes.Unavailable}, {Before: codes.Aborted}, {Before: codes.Internal}, {Delay: 30 * time.Millisecond},
	} {
		p.Add(faultproxy.Rule{RPC: "Commit", Match: sometimes(0.01), Do: fault})
	}
	// ABORTED means that nothing was applied; only an acquisition need survive a
	// server that breaks this promise.
	aborted := sometimes(0.01)
	p.Add(faultproxy.Rule{RPC: "Commit", Do: faultproxy.Fault{After: codes.Aborted}, Match: func(request []byte) bool {
		return bytes.Contains(request, []byte(fieldAcquiredAt)) && aborted(request)
	}})
	p.Add(faultproxy.Rule{RPC: "BatchGetDocuments", Match: sometimes(0.01), Do: faultproxy.Fault{Before: codes.PermissionDenied}})
	// The clean-up of an unknown outcome is sometimes slower than the next try.
	p.Add(faultproxy.Rule{RPC: "BeginTransaction", Match: sometimes(0.5), Do: faultproxy.Fault{Delay: 30 * time.Millisecond}})
}
