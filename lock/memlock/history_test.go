package memlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/conformance/lock/history"
	"github.com/dronefleet/dronefleet/conformance/lock/lockspec"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// process is a memory that processes share, each with its own clock, over a network that
// loses what they say.
type process struct {
	*memlock.Backend
	*memory
	offset time.Duration
	rng    *rand.Rand
	share  float64
}

type memory struct {
	mu     sync.Mutex
	offset time.Duration // of who calls
	down   atomic.Bool
}

// Now implements lock.Clock. It is called within a call.
func (m *memory) Now() time.Time { return time.Now().Add(m.offset) }

func (m *memory) AfterFunc(d time.Duration, f func()) lock.Timer { return time.AfterFunc(d, f) }

var errLost = &lock.Error{Code: lock.CodeServiceUnavailable, OutcomeUnknown: true, Err: errors.New("lost on the way")}

// reach makes a call, unless the request is lost; nobody may learn its answer.
func reach[T any](p process, call func() (T, error)) (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var none T
	if p.down.Load() || p.rng.Float64() < p.share {
		return none, errLost
	}
	p.memory.offset = p.offset
	res, err := call()
	if p.rng.Float64() < p.share {
		return none, errLost
	}
	return res, err
}

func (p process) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	return reach(p, func() (lock.AcquireResult, error) { return p.Backend.Acquire(ctx, req) })
}

func (p process) Release(ctx context.Context, ref lock.Ref) (lock.ReleaseResult, error) {
	return reach(p, func() (lock.ReleaseResult, error) { return p.Backend.Release(ctx, ref) })
}

func (p process) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	return reach(p, func() (lock.ExtendResult, error) { return p.Backend.Extend(ctx, ref, ttl) })
}

func (p process) LookupRaw(ctx context.Context, q lock.Query) (*lock.RawInfo, error) {
	return reach(p, func() (*lock.RawInfo, error) { return p.Backend.LookupRaw(ctx, q) })
}

// B-05, L-TST-02: processes whose clocks differ by at most the tolerance. Of those whose
// clocks differ by an hour two have the lock at once, and the check says so.
func TestBackend_HistoriesUnderFaults(t *testing.T) {
	for name, row := range map[string]struct {
		skew time.Duration
		want history.Verdict
		n    int
	}{
		"clocks within the tolerance": {490 * time.Millisecond, history.Linearizable, 0},
		"clocks off by an hour":       {time.Hour, history.Violated, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &memory{}
			b := memlock.New(memlock.WithClock(m))
			history.Trial{Want: row.want, Acquisitions: row.n, Store: history.Store{
				Time: lockspec.ClientTime,
				Connect: func(id int, seed uint64) (history.Client, func(float64)) {
					p := &process{Backend: b, memory: m, rng: rand.New(rand.NewPCG(seed, 1))}
					p.offset = row.skew * time.Duration(id%3-1)
					return history.Client{
						Backend: p, Offset: p.offset, Settle: func() error { return nil }, Cut: func() {},
					}, func(share float64) { p.share = share }
				},
				Fail: func() {
					m.down.Store(true)
					time.Sleep(200 * time.Millisecond)
					m.down.Store(false)
				},
			}}.Run(t)
		})
	}
}

// L-FENCE-01: what a fence is for.
func TestBackend_FencesKeepLateWritesOut(t *testing.T) {
	t.Parallel()
	var highest lock.Fence
	var stored string
	history.CheckRegister(t, memlock.New(), history.Register{
		Write: func(fence lock.Fence, value string, fenced bool) (bool, error) {
			if fenced && fence < highest {
				return false, nil
			}
			highest, stored = max(highest, fence), value
			return true, nil
		},
		Read: func() (string, error) { return stored, nil },
	})
}
