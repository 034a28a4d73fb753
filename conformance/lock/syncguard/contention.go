package syncguard

import (
	"context"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

// Limit bounds how long a test runs until it has seen enough; SYNCGUARD_TIME=60s sets it.
func Limit(tb testing.TB) time.Duration {
	tb.Helper()
	limit, _ := limitOf(tb)
	return limit
}

// limitOf also tells whether the time was asked for.
func limitOf(tb testing.TB) (limit time.Duration, given bool) {
	tb.Helper()
	text := os.Getenv("SYNCGUARD_TIME")
	if text == "" {
		return 4 * time.Second, false
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		tb.Fatalf("SYNCGUARD_TIME: %v", err)
	}
	return limit, true
}

// Contender locks as SyncGuard does. Acquire returns the new lock's id and fence, "" if
// somebody else holds the lock.
type Contender interface {
	Acquire(ctx context.Context, key string, ttl time.Duration) (id, fence string, err error)
	Release(ctx context.Context, id string) (released bool, err error)
}

// Contention is workers of both kinds, one for each backend and each contender, that
// contend for two keys.
type Contention struct {
	Ours   []lock.Backend
	Theirs []Contender

	// Lost reports an error of an attempt that lost to another transaction, and may have
	// taken a fence; nil if there are none.
	Lost func(error) bool
}

const (
	contentionTTL = 30 * time.Second
	enough        = 60 // sections of each kind, unless a time is given
	headStart     = 5  // sections that the faster kind may be ahead
)

// contendedKey is what a lock guards.
type contendedKey struct {
	name             string
	inside, sections atomic.Int32
	last             atomic.Int64 // fence
}

// worker is one that contends.
type worker struct {
	who     string
	kind    int
	acquire func(key string) (id, fence string, err error)
	release func(key, id string) (bool, error)
}

// Run lets them contend. No two hold one key at a time, and the fences rise in the order
// of the holders, without gaps but for attempts that lost.
func (c Contention) Run(t *testing.T) {
	limit, given := limitOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit+time.Minute)
	defer cancel()
	keys := []*contendedKey{{name: "vehicle:0"}, {name: "vehicle:1"}}
	var had, refused, lost [2]atomic.Int64 // by ours, by theirs
	var overlaps atomic.Int64
	end := time.Now().Add(limit)
	isOver := func() bool {
		least := min(had[0].Load(), had[1].Load())
		return t.Failed() || ctx.Err() != nil || !given && least >= enough || least > 0 && time.Now().After(end)
	}
	isLost := func(err error) bool { return err != nil && c.Lost != nil && c.Lost(err) }
	section := func(w worker, k *contendedKey, fence string) {
		if n := k.inside.Add(1); n != 1 {
			overlaps.Add(1)
			t.Errorf("%s is inside together with %d others", w.who, n-1)
		}
		now, err := strconv.ParseInt(fence, 10, 64)
		if before := k.last.Swap(now); err != nil || now <= before {
			t.Errorf("%s has fence %s after %d", w.who, fence, before)
		}
		time.Sleep(time.Millisecond) // so that others find it held
		k.sections.Add(1)
		k.inside.Add(-1)
	}
	work := func(w worker, first int) {
		for at := first; !isOver(); at++ {
			if had[w.kind].Load() > had[1-w.kind].Load()+headStart {
				time.Sleep(time.Millisecond) // the slower kind has its share
				continue
			}
			k := keys[at%len(keys)]
			id, fence, err := w.acquire(k.name)
			switch {
			case isLost(err):
				lost[w.kind].Add(1)
			case err != nil:
				t.Errorf("%s: acquire: %v", w.who, err)
				return
			case id == "":
				refused[w.kind].Add(1)
			default:
				section(w, k, fence)
				ok, err := w.release(k.name, id)
				for isLost(err) && ctx.Err() == nil {
					ok, err = w.release(k.name, id)
				}
				if !ok || err != nil {
					t.Errorf("%s: release: %t, %v", w.who, ok, err)
					return
				}
				had[w.kind].Add(1)
				continue
			}
			time.Sleep(time.Millisecond)
		}
	}
	var all sync.WaitGroup
	for i, w := range c.workers(ctx) {
		all.Go(func() { work(w, i) })
	}
	all.Wait()
	gaps := int64(0)
	for _, k := range keys {
		gaps += k.last.Load() - int64(k.sections.Load())
	}
	if attempts := lost[0].Load() + lost[1].Load(); gaps > attempts {
		t.Errorf("%d fences are missing, and %d attempts were lost", gaps, attempts)
	}
	if least := min(had[0].Load(), had[1].Load()); least == 0 {
		t.Error("one kind never had the lock")
	}
	t.Logf("sections: %d of ours, %d of SyncGuard's; refused: %d and %d; lost: %d and %d; %d overlaps; %d fences missing",
		had[0].Load(), had[1].Load(), refused[0].Load(), refused[1].Load(), lost[0].Load(), lost[1].Load(), overlaps.Load(), gaps)
}

func (c Contention) workers(ctx context.Context) (list []worker) {
	for i, b := range c.Ours {
		list = append(list, worker{
			who: "our worker " + strconv.Itoa(i),
			acquire: func(key string) (string, string, error) {
				res, err := b.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: contentionTTL})
				return res.LockID, string(res.Fence), err
			},
			release: func(key, id string) (bool, error) {
				res, err := b.Release(ctx, lock.Ref{LockID: id, Key: key})
				return res.OK, err
			},
		})
	}
	for i, p := range c.Theirs {
		list = append(list, worker{
			who: "SyncGuard " + strconv.Itoa(i), kind: 1,
			acquire: func(key string) (string, string, error) { return p.Acquire(ctx, key, contentionTTL) },
			release: func(_, id string) (bool, error) { return p.Release(ctx, id) },
		})
	}
	return list
}
