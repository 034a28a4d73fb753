package history

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
)

// Script makes random calls on a backend and returns a line for each answer. One seed gives
// equal lines on every backend that keeps the contract. With a nil clock, for a backend that
// tells the time itself, no lease ends and times are left out.
func Script(b lock.Backend, clock *locktest.Clock, prefix string, seed uint64, calls int) []string {
	rng := rand.New(rand.NewPCG(seed, 0))
	s := script{b: b, clock: clock, rng: rng, prefix: prefix}
	if clock != nil {
		s.start = clock.Now()
	}
	lines := make([]string, 0, calls)
	for range calls {
		lines = append(lines, s.step())
	}
	return lines
}

type script struct {
	b      lock.Backend
	clock  *locktest.Clock
	rng    *rand.Rand
	start  time.Time
	prefix string
	refs   []lock.Ref // of all leases so far
}

// since makes times comparable between clocks.
func (s *script) since(ms int64) int64 {
	if ms == 0 || s.clock == nil {
		return 0
	}
	return ms - s.start.UnixMilli()
}

func (s *script) key() string {
	return s.prefix + []string{":a", ":b", ":e\u0301", ":\u00e9"}[s.rng.IntN(4)]
}

// ref is a lease of the past, with its key, another key or none.
func (s *script) ref() lock.Ref {
	if len(s.refs) == 0 {
		return lock.Ref{LockID: lock.NewLockID()}
	}
	ref := s.refs[max(0, len(s.refs)-1-s.rng.IntN(4))]
	switch s.rng.IntN(4) {
	case 0:
		ref.Key = ""
	case 1:
		ref.Key = s.key()
	}
	return ref
}

func (s *script) step() string {
	ctx := context.Background()
	ttl := time.Duration(1+s.rng.IntN(3000)) * time.Millisecond
	if s.clock == nil {
		ttl += time.Hour
	}
	switch s.rng.IntN(9) {
	case 0, 1, 2:
		key := s.key()
		res, err := s.b.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: ttl})
		if res.OK {
			s.refs = append(s.refs, lock.Ref{LockID: res.LockID, Key: key})
		}
		return fmt.Sprintln("acquire", res.OK, res.Fence, s.since(res.ExpiresAtMs), res.Reason, s.since(res.HolderExpiresAtMs), code(err))
	case 3:
		res, err := s.b.Release(ctx, s.ref())
		return fmt.Sprintln("release", res.OK, res.Reason, code(err))
	case 4:
		res, err := s.b.Extend(ctx, s.ref(), ttl)
		return fmt.Sprintln("extend", res.OK, s.since(res.ExpiresAtMs), res.Reason, code(err))
	case 5:
		locked, err := s.b.IsLocked(ctx, s.key())
		return fmt.Sprintln("isLocked", locked, code(err))
	case 6:
		q := lock.Query{Key: s.key()}
		if s.rng.IntN(2) == 0 {
			q = lock.Query{LockID: s.ref().LockID}
		}
		info, err := s.b.Lookup(ctx, q)
		if info == nil {
			return fmt.Sprintln("lookup nothing", code(err))
		}
		return fmt.Sprintln("lookup", info.Fence, s.since(info.ExpiresAtMs), s.since(info.AcquiredAtMs), code(err))
	case 7:
		if n := len(s.refs); n > 0 { // the same acquisition again
			ref := s.refs[n-1]
			res, err := s.b.Acquire(ctx, lock.AcquireRequest{Key: ref.Key, TTL: ttl, LockID: ref.LockID})
			return fmt.Sprintln("again", res.OK, res.Fence, s.since(res.ExpiresAtMs), res.Reason, code(err))
		}
		return fmt.Sprintln("again nothing")
	default:
		d := time.Duration(s.rng.IntN(2500)) * time.Millisecond
		if s.clock == nil {
			return fmt.Sprintln("no time passes")
		}
		s.clock.Advance(d)
		return fmt.Sprintln("advance", d)
	}
}

func code(err error) lock.Code {
	if e, ok := errors.AsType[*lock.Error](err); ok {
		return e.Code
	}
	if err != nil {
		return lock.Code(err.Error())
	}
	return ""
}
