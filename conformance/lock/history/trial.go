package history

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/conformance/lock/lockspec"
	"github.com/dronefleet/dronefleet/lock"
)

var (
	acquisitions = flag.Int("acquisitions", 0, "leases that a trial of the lock is granted; 0: few")
	seed         = flag.Uint64("trialseed", 7, "what a trial of the lock draws from")
	clients      = flag.Int("trialclients", 16, "clients of a trial of the lock; with more of them a long one takes less time")
)

// The size of a trial. Clients mostly wait, so more of them, each with its share of keys, make
// a trial faster without changing the load on a key.
const (
	keysPerClient   = 3 // those whose holder died do not stop the others
	windowPerClient = 625
	trialTTL        = 150 * time.Millisecond
	failEvery       = 10_000 // acquisitions
	lossShare       = 0.005  // of requests, and of replies
	searchTime      = 10 * time.Minute
)

// Store is what the tests of a backend tell a trial about their store.
type Store struct {
	Time lockspec.Authority

	// Connect connects one client to the store; its Recorder and ID are set later. From the
	// call of lose on, a share of its requests and replies gets lost.
	Connect func(id int, seed uint64) (c Client, lose func(share float64))

	// Fail makes the store fail, and serve again when it returns.
	Fail func()

	Forgets bool // see Client
}

// Trial is one history under all faults at once: holders die or pause beyond their leases,
// requests and replies are lost, operators break locks, clocks are as wrong as the store
// allows, and the store fails.
type Trial struct {
	Store
	Acquisitions int     // 0: what the flag says
	Want         Verdict // "": Linearizable
}

// Run plays the trial and checks it in windows. At the end of each nothing is under way, and
// the next window begins with the known fence of each key.
func (tr Trial) Run(t *testing.T) {
	t.Helper()
	total := tr.Acquisitions
	switch {
	case total > 0:
	case *acquisitions > 0:
		total = *acquisitions
	case os.Getenv("LONG_TESTS") == "": // as testkit/longtest, which the library must not import
		t.Log("left to the gate: 400 acquisitions instead of 150; set LONG_TESTS=1 to run it")
		total = 150
	default:
		total = 400
	}
	want := tr.Want
	if want == "" {
		want = Linearizable
	}
	recorder := NewRecorder()
	connect := func(id int, share float64) *Client {
		c, lose := tr.Connect(id, *seed+uint64(id))
		c.Recorder, c.ID, c.Time, c.Forgets = recorder, id, tr.Time, tr.Forgets
		lose(share)
		return &c
	}
	var all []*Client
	for id := range *clients {
		all = append(all, connect(id, lossShare))
	}
	operator := connect(len(all), 0)

	start, calls := time.Now(), 0
	for done, window := 0, uint64(0); done < total; window++ {
		w := Workload{
			Seed: *seed + window<<8, Keys: keysPerClient * len(all), TTL: trialTTL,
			Brisk: 0.9, Kills: 0.004, Crashes: 0.04, Breaks: 0.004, Retries: 0.3,
			Grants: new(atomic.Int64), Acquisitions: min(total-done, windowPerClient*len(all)),
		}
		var nemesis sync.WaitGroup
		nemesis.Go(func() {
			every := min(w.Acquisitions, failEvery)
			for next := every / 2; next < w.Acquisitions; next += every {
				for w.Grants.Load() < int64(next) {
					time.Sleep(time.Millisecond)
				}
				tr.Fail()
			}
		})
		w.Play(all)
		nemesis.Wait()
		counters, err := operator.freeAll(w.Keys)
		if err != nil {
			t.Fatal(err)
		}
		done += int(w.Grants.Load())
		calls += recorder.Len()
		verdict, why := recorder.Check(searchTime)
		if verdict != want {
			t.Fatalf("seed %d: after %d acquisitions the history is %s, want %s\n%s", *seed, done, verdict, want, why())
		}
		t.Logf("%d acquisitions in %d calls, %s: %s", done, calls, time.Since(start).Round(time.Second), verdict)
		recorder.next(counters)
	}
}

// freeAll takes and releases each lock, and returns their fences. Who has one loses it.
func (c *Client) freeAll(keys int) (map[string]int64, error) {
	ctx := context.Background()
	counters := make(map[string]int64)
	for i := range keys {
		key := keyName(i)
		for try := 0; ; try++ {
			fence, err := c.freeOne(ctx, key)
			if err == nil {
				counters[key] = fence
				break
			}
			if try == 200 {
				return nil, fmt.Errorf("%s cannot be freed: %w", key, err)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	c.settling.Wait()
	return counters, nil
}

func (c *Client) freeOne(ctx context.Context, key string) (int64, error) {
	if err := c.Break(ctx, key); err != nil {
		return 0, err
	}
	got, err := c.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: time.Minute, LockID: lock.NewLockID()})
	if err != nil || !got.OK {
		return 0, fmt.Errorf("not granted: %w", err)
	}
	released, err := c.Release(ctx, lock.Ref{Key: key, LockID: got.LockID})
	if err != nil || !released.OK {
		return 0, fmt.Errorf("not released: %w", err)
	}
	return lock.ParseFence(string(got.Fence))
}
