package locktest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
)

const ttl = 30 * time.Second

// Run checks a backend against the contract. newBackend must return a working backend that
// tells the time by the given clock.
func Run(t *testing.T, newBackend func(*testing.T, lock.Clock) lock.Backend) {
	for _, rule := range rules {
		t.Run(rule.name, func(t *testing.T) {
			clock := NewClock(time.Now().Truncate(time.Millisecond))
			rule.check(&suite{T: t, Backend: newBackend(t, clock), time: injected{clock}, prefix: lock.NewLockID()})
		})
	}
}

// RunServerTime is Run for a backend whose store tells the time: it waits for leases to end, a
// few seconds in all. The store's clock must agree with this machine's within skew.
func RunServerTime(t *testing.T, newBackend func(*testing.T) lock.Backend, skew time.Duration) {
	var all sync.WaitGroup
	for _, rule := range rules {
		all.Go(func() {
			t.Run(rule.name, func(t *testing.T) {
				rule.check(&suite{T: t, Backend: newBackend(t), time: server{skew}, prefix: lock.NewLockID()})
			})
		})
	}
	all.Wait()
}

var rules = []struct {
	name  string
	check func(*suite)
}{
	{"capabilities name a fencing backend", capabilities},
	{"bad arguments are refused", badArguments},
	{"an ended context is aborted", endedContext},
	{"arguments are checked before the context", argumentsFirst},
	{"a free lock is granted as committed", granted},
	{"a held lock is contention, not an error", contended},
	{"locks are not reentrant", notReentrant},
	{"a repeated lock id gets its lease back", repeatedID},
	{"keys equal under NFC are one lock", normalisedKeys},
	{"a broken lock is free, and its fences go on", broken},
	{"the tolerance is one second", tolerance},
	{"a ttl of one millisecond is a lease", shortTTL},
	{"release needs the owner's id", releaseForeign},
	{"release happens once", releaseOnce},
	{"release by id alone", releaseByID},
	{"release with the wrong key does nothing", releaseWrongKey},
	{"one id on two keys is two locks", sharedID},
	{"an expired lease is not released", releaseExpired},
	{"an old owner cannot release the new one", releaseAfterTakeover},
	{"concurrent releases free one lease", releaseConcurrently},
	{"extend replaces the end", extendReplaces},
	{"extend may shorten", extendShortens},
	{"extend works within the tolerance", extendBoundary},
	{"extend revives nothing", extendRevivesNothing},
	{"extend keeps fence and acquisition time", extendKeeps},
	{"isLocked follows the lock", isLocked},
	{"lookup describes live locks", lookup},
	{"raw lookup reveals", lookupRaw},
	{"fences rise through release and expiry", fencesRise},
	{"contention uses up no fence", fenceGaps},
	{"keys have fences of their own", fencesPerKey},
	{"the highest fence is known for ever", highestFence},
	{"contenders: one holder, rising fences", contenders},
	{"Do excludes", doExcludes},
}

// suite is one rule's backend and helpers.
type suite struct {
	*testing.T
	lock.Backend
	time   timekeeper
	prefix string
	called time.Time // when the last acquisition or extension was asked for
}

func (s *suite) key(name string) string { return s.prefix + ":" + name }

func (s *suite) tryAcquire(key string, ttl time.Duration) lock.AcquireResult {
	s.Helper()
	s.called = s.time.now()
	res, err := s.Acquire(context.Background(), lock.AcquireRequest{Key: key, TTL: ttl})
	s.noError(err)
	return res
}

// acquire must succeed.
func (s *suite) acquire(key string, ttl time.Duration) lock.AcquireResult {
	s.Helper()
	res := s.tryAcquire(key, ttl)
	if !res.OK {
		s.Fatalf("acquire of a free lock: %+v", res)
	}
	return res
}

func (s *suite) release(ref lock.Ref) lock.ReleaseResult {
	s.Helper()
	res, err := s.Release(context.Background(), ref)
	s.noError(err)
	return res
}

func (s *suite) extend(ref lock.Ref, ttl time.Duration) lock.ExtendResult {
	s.Helper()
	s.called = s.time.now()
	res, err := s.Extend(context.Background(), ref, ttl)
	s.noError(err)
	return res
}

func (s *suite) locked(key string) bool {
	s.Helper()
	locked, err := s.IsLocked(context.Background(), key)
	s.noError(err)
	return locked
}

func (s *suite) info(q lock.Query) *lock.Info {
	s.Helper()
	info, err := s.Lookup(context.Background(), q)
	s.noError(err)
	return info
}

func (s *suite) noError(err error) {
	s.Helper()
	if err != nil {
		s.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
}

func (s *suite) is(what string, got, want any) {
	s.Helper()
	if got != want {
		s.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// endsAfter checks that a lease ends ttl after the last call, by the store's clock and for its
// holder.
func (s *suite) endsAfter(ttl time.Duration, expiresAtMs int64, deadline time.Time) {
	s.Helper()
	s.isAbout("end", time.UnixMilli(expiresAtMs), ttl)
	s.isAbout("deadline", deadline, ttl) // L-TIME-04
}

// isAbout checks that a time lies so long after the last call.
func (s *suite) isAbout(what string, got time.Time, after time.Duration) {
	s.Helper()
	if !s.time.between(got.Add(-after), s.called) {
		s.Errorf("%s: got %s, want %s after the call of %s", what, got, after, s.called)
	}
}

// acquireBrief takes a lock for a test that waits for its end. It retries if the lease was over
// before the answer came (L-ACQ-07), as on a slow machine.
func (s *suite) acquireBrief(key string) lock.AcquireResult {
	s.Helper()
	for {
		res, err := s.Acquire(context.Background(), lock.AcquireRequest{Key: key, TTL: s.time.brief()})
		if errors.Is(err, lock.ErrNetworkTimeout) && s.time.mayBeLate() {
			continue
		}
		s.noError(err)
		if !res.OK {
			s.Fatalf("acquire of a free lock: %+v", res)
		}
		return res
	}
}

// past waits until the given time after the end of a lease.
func (s *suite) past(expiresAtMs int64, by time.Duration) {
	s.time.waitUntil(time.UnixMilli(expiresAtMs).Add(by))
}

// inTime tells whether the given time after the end of a lease is still to come, so that what
// was seen of the lease was seen before it.
func (s *suite) inTime(expiresAtMs int64, by time.Duration) bool {
	return s.time.isBefore(time.UnixMilli(expiresAtMs).Add(by))
}

// L-TIME-05
func capabilities(s *suite) {
	c := s.Capabilities()
	s.is("it has a name", c.Name != "", true)
	s.is("fencing", c.Fencing, true)
	s.is("time authority", c.TimeAuthority, s.time.authority())
}

// call is one operation with one bad argument.
type call struct {
	name string
	do   func(context.Context) error
}

func (s *suite) badCalls() []call {
	good := lock.NewLockID()
	acquire := func(key string, ttl time.Duration, id string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: ttl, LockID: id})
			return err
		}
	}
	release := func(ref lock.Ref) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.Release(ctx, ref); return err }
	}
	extend := func(ref lock.Ref, ttl time.Duration) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.Extend(ctx, ref, ttl); return err }
	}
	lookup := func(q lock.Query) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.Lookup(ctx, q); return err }
	}
	isLocked := func(key string) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.IsLocked(ctx, key); return err }
	}
	return []call{
		{"acquire: empty key", acquire("", ttl, "")},
		{"acquire: invalid UTF-8", acquire("a\xff", ttl, "")},
		{"acquire: 513 bytes", acquire(strings.Repeat("a", 513), ttl, "")},
		{"acquire: 600 bytes in NFC", acquire(strings.Repeat("\u0958", 100), ttl, "")},
		{"acquire: zero ttl", acquire("k", 0, "")},
		{"acquire: negative ttl", acquire("k", -time.Second, "")},
		{"acquire: fraction of a millisecond", acquire("k", time.Millisecond+time.Microsecond, "")},
		{"acquire: short id", acquire("k", ttl, good[1:])},
		{"acquire: id with a bad character", acquire("k", ttl, good[1:]+"+")},
		{"release: no id", release(lock.Ref{Key: "k"})},
		{"release: long id", release(lock.Ref{LockID: good + "A"})},
		{"release: bad key", release(lock.Ref{LockID: good, Key: "\xff"})},
		{"extend: no id", extend(lock.Ref{}, ttl)},
		{"extend: zero ttl", extend(lock.Ref{LockID: good}, 0)},
		{"extend: fraction of a millisecond", extend(lock.Ref{LockID: good}, time.Nanosecond)},
		{"extend: bad key", extend(lock.Ref{LockID: good, Key: strings.Repeat("a", 513)}, ttl)},
		{"isLocked: empty key", isLocked("")},
		{"isLocked: invalid UTF-8", isLocked("\xc3")},
		{"lookup: neither", lookup(lock.Query{})},
		{"lookup: both", lookup(lock.Query{Key: "k", LockID: good})},
		{"lookup: bad id", lookup(lock.Query{LockID: "x"})},
		{"lookup: bad key", lookup(lock.Query{Key: strings.Repeat("a", 513)})},
	}
}

// L-KEY-01, L-ID-02, L-TIME-03, L-LKP-01
func badArguments(s *suite) {
	for _, c := range s.badCalls() {
		if err := c.do(context.Background()); !errors.Is(err, lock.ErrInvalidArgument) {
			s.Errorf("%s: got %v, want InvalidArgument", c.name, err)
		}
	}
	// L-ID-02: a last character that no encoder would write still passes.
	s.is("release", s.release(lock.Ref{LockID: strings.Repeat("A", 21) + "B"}).OK, false)
	// L-KEY-01: 600 bytes raw are 400 in NFC; 512 bytes fit.
	s.is("long but composable key", s.acquire(strings.Repeat("e\u0301", 199)+"\u0301"+s.prefix, ttl).OK, true)
	s.is("longest key", s.acquire(s.prefix+strings.Repeat("a", lock.MaxKeyBytes-len(s.prefix)), ttl).OK, true)
}

// L-CAN-01
func endedContext(s *suite) {
	cause := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	key, id := s.key("k"), lock.NewLockID()
	for _, c := range []call{
		{"acquire", func(ctx context.Context) error {
			_, err := s.Acquire(ctx, lock.AcquireRequest{Key: key, TTL: ttl})
			return err
		}},
		{"release", func(ctx context.Context) error {
			_, err := s.Release(ctx, lock.Ref{LockID: id, Key: key})
			return err
		}},
		{"extend", func(ctx context.Context) error { _, err := s.Extend(ctx, lock.Ref{LockID: id}, ttl); return err }},
		{"isLocked", func(ctx context.Context) error { _, err := s.IsLocked(ctx, key); return err }},
		{"lookup", func(ctx context.Context) error { _, err := s.Lookup(ctx, lock.Query{Key: key}); return err }},
	} {
		err := c.do(ctx)
		// L-CAN-03
		if !errors.Is(err, lock.ErrAborted) || !errors.Is(err, context.Canceled) || !errors.Is(err, cause) {
			s.Errorf("%s: %v does not match Aborted, Canceled and the cause", c.name, err)
		}
	}
	s.is("locked", s.locked(key), false)
}

// L-CAN-01
func argumentsFirst(s *suite) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range s.badCalls() {
		if err := c.do(ctx); !errors.Is(err, lock.ErrInvalidArgument) {
			s.Errorf("%s: got %v, want InvalidArgument", c.name, err)
		}
	}
}

// L-ACQ-03, L-FENCE-01
func granted(s *suite) {
	key := s.key("k")
	res := s.acquire(key, ttl)
	s.noError(lock.ValidateLockID(res.LockID))
	s.is("fence", res.Fence, lock.Fence("000000000000001"))
	s.endsAfter(ttl, res.ExpiresAtMs, res.Deadline)
	info := s.info(lock.Query{Key: key})
	if info == nil {
		s.Fatal("the lock is not there")
	}
	s.is("stored end", info.ExpiresAtMs, res.ExpiresAtMs)
	s.is("stored start", info.AcquiredAtMs, res.ExpiresAtMs-ttl.Milliseconds())
	s.is("stored fence", info.Fence, res.Fence)
	s.is("stored id", info.LockIDHash, lock.HashKey(res.LockID))
}

// L-ACQ-01, L-ACQ-02, B-06
func contended(s *suite) {
	key := s.key("k")
	first := s.acquire(key, ttl)
	s.time.step()
	second := s.tryAcquire(key, ttl)
	s.is("ok", second.OK, false)
	s.is("reason", second.Reason, lock.ReasonLocked)
	s.is("holder's end", second.HolderExpiresAtMs, first.ExpiresAtMs)
	s.is("id", second.LockID, "")
	s.is("fence", second.Fence, lock.Fence(""))
	s.is("release by the holder", s.release(lock.Ref{LockID: first.LockID, Key: key}).OK, true)
}

// L-END-03
func broken(s *suite) {
	key := s.key("k")
	first := s.acquire(key, time.Hour)
	var seen lock.Info
	info, err := lock.Break(s.Context(), s.Backend, key, func(held lock.Info) error { seen = held; return nil })
	if err != nil || info == nil {
		s.Fatal(info, err)
	}
	s.is("fence of what was broken", info.Fence, first.Fence)
	s.is("what is told before", seen.Fence, first.Fence)
	s.is("release by the former holder", s.release(lock.Ref{LockID: first.LockID, Key: key}).OK, false)
	second := s.acquire(key, ttl)
	s.is("the next fence is higher", second.Fence > first.Fence, true)
	refused := errors.New("no record")
	if _, err := lock.Break(s.Context(), s.Backend, key, func(lock.Info) error { return refused }); !errors.Is(err, refused) {
		s.Error("break without its record:", err)
	}
	s.is("the lock that could not be recorded is held", s.release(lock.Ref{LockID: second.LockID, Key: key}).OK, true)
	if info, err := lock.Break(s.Context(), s.Backend, key, nil); info != nil || err != nil {
		s.Error("break of a free lock:", info, err)
	}
}

// L-ACQ-04
func notReentrant(s *suite) {
	key := s.key("k")
	s.acquire(key, ttl)
	s.is("second acquire", s.tryAcquire(key, ttl).Reason, lock.ReasonLocked)
}

// L-ACQ-05
func repeatedID(s *suite) {
	key, id := s.key("k"), lock.NewLockID()
	again := func(ttl time.Duration) (lock.AcquireResult, error) {
		return s.Acquire(context.Background(), lock.AcquireRequest{Key: key, TTL: ttl, LockID: id})
	}
	first, err := again(ttl)
	s.noError(err)
	s.time.step()
	second, err := again(ttl)
	s.noError(err)
	s.is("ok", second.OK, true)
	s.is("id", second.LockID, id)
	s.is("fence", second.Fence, first.Fence)
	s.is("end", second.ExpiresAtMs, first.ExpiresAtMs)
	s.is("deadline", s.time.isEnd(second.Deadline, time.UnixMilli(first.ExpiresAtMs)), true)

	// L-TIME-04, L-ACQ-07: at its end it is live for others, over for its holder.
	for {
		ext := s.extend(lock.Ref{LockID: id, Key: key}, s.time.brief())
		s.past(ext.ExpiresAtMs, -time.Millisecond)
		last, err := again(ttl)
		if s.inTime(ext.ExpiresAtMs, 0) {
			s.is("a millisecond before the end", err == nil && last.OK, true)
		}
		if err == nil { // else it has been released
			s.past(ext.ExpiresAtMs, s.time.margin())
			_, err = again(ttl)
		}
		if !s.inTime(ext.ExpiresAtMs, lock.Tolerance) { // somebody else's by then
			s.release(lock.Ref{LockID: id, Key: key})
			_, err = again(ttl)
			s.noError(err)
			continue
		}
		if !errors.Is(err, lock.ErrNetworkTimeout) {
			s.Errorf("a lease that is over: got %v, want NetworkTimeout", err)
		}
		return
	}
}

// L-KEY-02
func normalisedKeys(s *suite) {
	composed, decomposed := s.key("caf\u00e9"), s.key("cafe\u0301")
	res := s.acquire(decomposed, ttl)
	s.is("acquire", s.tryAcquire(composed, ttl).OK, false)
	s.is("isLocked", s.locked(composed), true)
	s.is("lookup", s.info(lock.Query{Key: composed}).KeyHash, lock.HashKey(composed))
	s.is("extend", s.extend(lock.Ref{LockID: res.LockID, Key: composed}, ttl).OK, true)
	s.is("release", s.release(lock.Ref{LockID: res.LockID, Key: composed}).OK, true)
	s.is("isLocked", s.locked(decomposed), false)
}

// L-TIME-01, both sides of the boundary.
func tolerance(s *suite) {
	var all sync.WaitGroup
	for _, row := range []struct {
		past time.Duration
		live bool
	}{{lock.Tolerance - s.time.early(), true}, {lock.Tolerance, false}, {lock.Tolerance + time.Millisecond, false}} {
		check := func(s *suite, key string) (seen [4]bool, expiresAtMs int64) {
			first := s.acquireBrief(key)
			s.past(first.ExpiresAtMs, row.past)
			return [4]bool{
				s.locked(key), s.info(lock.Query{Key: key}) != nil, s.info(lock.Query{LockID: first.LockID}) != nil,
				!s.tryAcquire(key, ttl).OK,
			}, first.ExpiresAtMs
		}
		one := func() {
			s := *s // notes its own calls
			for try := 0; ; try++ {
				seen, end := check(&s, s.key(fmt.Sprint(row.past, try)))
				if row.live && !s.inTime(end, lock.Tolerance) {
					continue // seen too late
				}
				if want := [4]bool{row.live, row.live, row.live, row.live}; seen != want {
					s.Errorf("%s after its end: isLocked, lookup by key and by id, acquire see a live lock: %t, want %t", row.past, seen, row.live)
				}
				return
			}
		}
		s.time.sideBySide(&all, one)
	}
	all.Wait()
}

// L-TIME-03
func shortTTL(s *suite) {
	key := s.key("k")
	s.called = s.time.now()
	res, err := s.Acquire(context.Background(), lock.AcquireRequest{Key: key, TTL: time.Millisecond})
	if errors.Is(err, lock.ErrNetworkTimeout) && s.time.mayBeLate() {
		return // L-ACQ-07: over before the answer came
	}
	s.noError(err)
	s.endsAfter(time.Millisecond, res.ExpiresAtMs, res.Deadline)
	if locked := s.locked(key); s.inTime(res.ExpiresAtMs, lock.Tolerance) {
		s.is("locked", locked, true)
	}
}

// L-REL-01, L-REL-02
func releaseForeign(s *suite) {
	key := s.key("k")
	s.acquire(key, ttl)
	for _, ref := range []lock.Ref{{LockID: lock.NewLockID(), Key: key}, {LockID: lock.NewLockID()}} {
		res := s.release(ref)
		s.is("ok", res.OK, false)
		s.is("reason", res.Reason, lock.ReasonNotFound)
	}
	s.is("locked", s.locked(key), true)
	s.is("reason for a free key", s.release(lock.Ref{LockID: lock.NewLockID(), Key: s.key("free")}).Reason, lock.ReasonNotFound)
}

// L-REL-01, L-REL-05
func releaseOnce(s *suite) {
	key := s.key("k")
	ref := lock.Ref{LockID: s.acquire(key, ttl).LockID, Key: key}
	s.is("first", s.release(ref).OK, true)
	s.is("locked", s.locked(key), false)
	s.is("second", s.release(ref).OK, false)
	s.acquire(key, ttl)
	s.is("third, with a new owner", s.release(ref).OK, false)
	s.is("locked", s.locked(key), true)
}

// L-REL-03
func releaseByID(s *suite) {
	key := s.key("k")
	ref := lock.Ref{LockID: s.acquire(key, ttl).LockID}
	s.is("extend", s.extend(ref, ttl).OK, true)
	s.is("release", s.release(ref).OK, true)
	s.is("again", s.release(ref).Reason, lock.ReasonNotFound)
	s.is("locked", s.locked(key), false)
}

// L-REL-03
func releaseWrongKey(s *suite) {
	key := s.key("k")
	res := s.acquire(key, ttl)
	s.is("release", s.release(lock.Ref{LockID: res.LockID, Key: s.key("other")}).OK, false)
	s.is("extend", s.extend(lock.Ref{LockID: res.LockID, Key: s.key("other")}, ttl).OK, false)
	s.is("locked", s.locked(key), true)
	s.is("release with the right key", s.release(lock.Ref{LockID: res.LockID, Key: key}).OK, true)
}

// L-REL-03, L-EXT-01, L-DUP-02, L-DUP-03: one id on two keys. A call with a key means that
// lock; without one it means neither while both live, and a lookup says so.
func sharedID(s *suite) {
	left, right, id := s.key("left"), s.key("right"), lock.NewLockID()
	for _, key := range []string{left, right} {
		_, err := s.Acquire(context.Background(), lock.AcquireRequest{Key: key, TTL: ttl, LockID: id})
		s.noError(err)
	}
	for _, key := range []string{left, right} {
		s.is("extend "+key, s.extend(lock.Ref{LockID: id, Key: key}, ttl).OK, true)
	}
	s.is("extend without a key", s.extend(lock.Ref{LockID: id}, ttl).OK, false)
	s.is("release without a key", s.release(lock.Ref{LockID: id}).OK, false)
	_, err := s.Lookup(context.Background(), lock.Query{LockID: id})
	s.is("lookup without a key is refused", errors.Is(err, lock.ErrInternal), true)
	s.is("left", s.locked(left), true)
	s.is("right", s.locked(right), true)
	s.is("release left", s.release(lock.Ref{LockID: id, Key: left}).OK, true)
	s.is("left after its release", s.locked(left), false)
	s.is("lookup of the other", s.info(lock.Query{LockID: id}) != nil, true)
	s.is("release of the other without a key", s.release(lock.Ref{LockID: id}).OK, true)
	s.is("right after its release", s.locked(right), false)
}

// L-REL-02
func releaseExpired(s *suite) {
	for _, withKey := range []bool{true, false} {
		key := s.key(fmt.Sprint(withKey))
		brief := s.acquireBrief(key)
		ref := lock.Ref{LockID: brief.LockID}
		if withKey {
			ref.Key = key
		}
		s.past(brief.ExpiresAtMs, lock.Tolerance)
		res := s.release(ref)
		s.is("ok", res.OK, false)
		s.is("reason", res.Reason, lock.ReasonExpired)
	}
}

// L-REL-05
func releaseAfterTakeover(s *suite) {
	key := s.key("k")
	old := s.acquireBrief(key)
	s.past(old.ExpiresAtMs, lock.Tolerance)
	s.acquire(key, ttl)
	s.is("release by key", s.release(lock.Ref{LockID: old.LockID, Key: key}).Reason, lock.ReasonNotFound)
	s.is("release by id", s.release(lock.Ref{LockID: old.LockID}).Reason, lock.ReasonNotFound)
	s.is("extend", s.extend(lock.Ref{LockID: old.LockID, Key: key}, ttl).OK, false)
	s.is("locked", s.locked(key), true)
}

// L-REL-05
func releaseConcurrently(s *suite) {
	key := s.key("k")
	id := s.acquire(key, ttl).LockID
	refs := []lock.Ref{{LockID: id, Key: key}, {LockID: id}, {LockID: id, Key: key}, {LockID: id}}
	var wg sync.WaitGroup
	released := make([]bool, len(refs))
	for i, ref := range refs {
		wg.Go(func() {
			res, err := s.Release(context.Background(), ref)
			// Losing a conflict for good is an answer a store may give.
			if err != nil && !errors.Is(err, lock.ErrConflict) {
				s.Error(err)
			}
			released[i] = res.OK
		})
	}
	wg.Wait()
	var ok int
	for _, r := range released {
		if r {
			ok++
		}
	}
	s.is("successful releases", ok, 1)
	s.is("locked", s.locked(key), false)
}

// L-EXT-01, L-EXT-03
func extendReplaces(s *suite) {
	key := s.key("k")
	res := s.acquire(key, ttl)
	for _, ref := range []lock.Ref{{LockID: res.LockID, Key: key}, {LockID: res.LockID}, {LockID: res.LockID, Key: key}} {
		s.time.step()
		ext := s.extend(ref, ttl)
		s.is("ok", ext.OK, true)
		s.endsAfter(ttl, ext.ExpiresAtMs, ext.Deadline)
		s.is("stored end", s.info(lock.Query{Key: key}).ExpiresAtMs, ext.ExpiresAtMs)
	}
	s.is("release", s.release(lock.Ref{LockID: res.LockID, Key: key}).OK, true)
}

// L-EXT-01
func extendShortens(s *suite) {
	key := s.key("k")
	res := s.acquire(key, ttl)
	ext := s.extend(lock.Ref{LockID: res.LockID, Key: key}, s.time.brief())
	s.endsAfter(s.time.brief(), ext.ExpiresAtMs, ext.Deadline)
	s.past(ext.ExpiresAtMs, lock.Tolerance)
	s.is("acquire", s.tryAcquire(key, ttl).OK, true)
}

// L-EXT-02
func extendBoundary(s *suite) {
	for try := 0; ; try++ {
		key := s.key(fmt.Sprint(try))
		res := s.acquireBrief(key)
		ref := lock.Ref{LockID: res.LockID, Key: key}
		s.past(res.ExpiresAtMs, lock.Tolerance-s.time.early())
		ext := s.extend(ref, s.time.brief())
		if !s.inTime(res.ExpiresAtMs, lock.Tolerance) {
			continue
		}
		s.is("just in time", ext.OK, true)
		s.past(ext.ExpiresAtMs, lock.Tolerance)
		late := s.extend(ref, ttl)
		s.is("1000 ms late", late.OK, false)
		s.is("reason", late.Reason, lock.ReasonExpired)
		return
	}
}

// L-EXT-02
func extendRevivesNothing(s *suite) {
	key := s.key("k")
	res := s.acquire(key, ttl)
	s.release(lock.Ref{LockID: res.LockID, Key: key})
	for _, ref := range []lock.Ref{{LockID: res.LockID, Key: key}, {LockID: res.LockID}, {LockID: lock.NewLockID(), Key: key}} {
		ext := s.extend(ref, ttl)
		s.is("ok", ext.OK, false)
		s.is("reason", ext.Reason, lock.ReasonNotFound)
	}
	s.is("locked", s.locked(key), false)
}

// L-EXT-03
func extendKeeps(s *suite) {
	key := s.key("k")
	res := s.acquire(key, ttl)
	before := *s.info(lock.Query{Key: key})
	s.time.step()
	s.extend(lock.Ref{LockID: res.LockID, Key: key}, ttl)
	after := *s.info(lock.Query{Key: key})
	before.ExpiresAtMs = after.ExpiresAtMs
	s.is("everything but the end", after, before)
}

// L-ISL-01
func isLocked(s *suite) {
	key := s.key("k")
	s.is("never acquired", s.locked(key), false)
	res := s.acquire(key, ttl)
	s.is("held", s.locked(key), true)
	s.is("other key", s.locked(s.key("other")), false)
	s.release(lock.Ref{LockID: res.LockID, Key: key})
	s.is("released", s.locked(key), false)
}

// L-LKP-01, L-LKP-02, L-LKP-04
func lookup(s *suite) {
	ctx, key := context.Background(), s.key("k")
	s.is("absent by key", s.info(lock.Query{Key: key}) == nil, true)
	s.is("absent by id", s.info(lock.Query{LockID: lock.NewLockID()}) == nil, true)
	res := s.acquire(key, ttl)
	byKey, err := lock.GetByKey(ctx, s.Backend, key)
	s.noError(err)
	byID, err := lock.GetByID(ctx, s.Backend, res.LockID)
	s.noError(err)
	if byKey == nil || byID == nil {
		s.Fatalf("by key %v, by id %v", byKey, byID)
	}
	s.is("both ways", *byKey, *byID)
	s.is("key hash", byKey.KeyHash, lock.HashKey(key))
	owns, err := lock.Owns(ctx, s.Backend, res.LockID)
	s.noError(err)
	s.is("owns", owns, true)
	owns, err = lock.Owns(ctx, s.Backend, lock.NewLockID())
	s.noError(err)
	s.is("owns nothing", owns, false)
	if text := fmt.Sprintf("%+v", *byKey); strings.Contains(text, key) || strings.Contains(text, res.LockID) {
		s.Errorf("info reveals raw values: %s", text)
	}
}

// L-LKP-04
func lookupRaw(s *suite) {
	ctx, key := context.Background(), s.key("k")
	none, err := lock.GetByKeyRaw(ctx, s.Backend, key)
	s.noError(err)
	s.is("absent", none == nil, true)
	res := s.acquire(key, ttl)
	byKey, err := lock.GetByKeyRaw(ctx, s.Backend, key)
	s.noError(err)
	byID, err := lock.GetByIDRaw(ctx, s.Backend, res.LockID)
	s.noError(err)
	if byKey == nil || byID == nil {
		s.Fatalf("by key %v, by id %v", byKey, byID)
	}
	s.is("both ways", *byKey, *byID)
	s.is("key", byKey.Key, key)
	s.is("id", byKey.LockID, res.LockID)
}

// L-FENCE-01
func fencesRise(s *suite) {
	key := s.key("k")
	var last lock.Fence
	for i := range 6 {
		res := s.acquireBrief(key)
		if res.Fence <= last || len(res.Fence) != 15 {
			s.Errorf("fence %s after %s", res.Fence, last)
		}
		last = res.Fence
		if i%2 == 0 {
			s.release(lock.Ref{LockID: res.LockID, Key: key})
		} else {
			s.past(res.ExpiresAtMs, lock.Tolerance)
		}
	}
	s.is("last", last, lock.Fence("000000000000006"))
}

// L-FENCE-02
func fenceGaps(s *suite) {
	key := s.key("k")
	res := s.acquire(key, ttl)
	for range 3 {
		s.tryAcquire(key, ttl)
	}
	s.release(lock.Ref{LockID: res.LockID, Key: key})
	s.is("next", s.acquire(key, ttl).Fence, lock.Fence("000000000000002"))
}

// L-FENCE-01
func fencesPerKey(s *suite) {
	s.is("first key", s.acquire(s.key("1"), ttl).Fence, lock.Fence("000000000000001"))
	s.is("second key", s.acquire(s.key("2"), ttl).Fence, lock.Fence("000000000000001"))
}

// L-FENCE-01, of backends that can tell: lock.FenceReader is optional.
func highestFence(s *suite) {
	reader, ok := s.Backend.(lock.FenceReader)
	if !ok {
		return
	}
	key := s.key("caf\u00e9")
	highest := func(want lock.Fence) {
		s.Helper()
		got, err := reader.HighestFence(context.Background(), s.key("cafe\u0301")) // equal under NFC
		s.noError(err)
		s.is("highest fence", got, want)
	}
	highest("")
	held := s.acquire(key, ttl)
	highest(held.Fence)
	s.is("contention", s.tryAcquire(key, ttl).OK, false)
	highest(held.Fence)
	s.release(lock.Ref{LockID: held.LockID, Key: key})
	highest(held.Fence)
	next := s.acquire(key, ttl)
	s.is("it rises", next.Fence > held.Fence, true)
	highest(next.Fence)

	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := reader.HighestFence(ended, key)
	s.is("an ended context is aborted", errors.Is(err, lock.ErrAborted), true)
	_, err = reader.HighestFence(ended, "")
	s.is("no key is refused", errors.Is(err, lock.ErrInvalidArgument), true)
}

// L-TST-02: never two holders, fences strictly rising, L-REL-05
func contenders(s *suite) {
	const workers, rounds = 8, 5
	key := s.key("k")
	warmUp := s.acquire(key, ttl)
	s.release(lock.Ref{LockID: warmUp.LockID, Key: key})
	var resource struct {
		sync.Mutex
		holder int
		fences []lock.Fence
	}
	var wg sync.WaitGroup
	for worker := range workers {
		wg.Go(func() {
			for done := 0; done < rounds; {
				res, err := s.Acquire(context.Background(), lock.AcquireRequest{Key: key, TTL: ttl})
				if errors.Is(err, lock.ErrConflict) {
					continue
				}
				if err != nil {
					s.Error(err)
					return
				}
				if !res.OK {
					continue
				}
				resource.Lock()
				if resource.holder != 0 {
					s.Errorf("worker %d and worker %d hold the lock", resource.holder, worker+1)
				}
				resource.holder = worker + 1
				resource.fences = append(resource.fences, res.Fence)
				resource.Unlock()

				resource.Lock()
				resource.holder = 0
				resource.Unlock()
				released, err := s.Release(context.Background(), lock.Ref{LockID: res.LockID, Key: key})
				if err != nil || !released.OK {
					s.Errorf("release: %+v, %v", released, err)
					return
				}
				done++
			}
		})
	}
	wg.Wait()
	for i := 1; i < len(resource.fences); i++ {
		if resource.fences[i] <= resource.fences[i-1] {
			s.Errorf("fence %s after %s", resource.fences[i], resource.fences[i-1])
		}
	}
	s.is("acquisitions", len(resource.fences), workers*rounds)
}

// L-RTY-06
func doExcludes(s *suite) {
	key := s.key("k")
	err := lock.Do(context.Background(), s.Backend, key, func(ctx context.Context, h *lock.Handle) error {
		s.is("locked inside", s.locked(key), true)
		_, ok, err := lock.TryAcquire(ctx, s.Backend, key, lock.WithClock(s.time.clock()))
		s.noError(err)
		s.is("second acquire", ok, false)
		return nil
	}, lock.WithClock(s.time.clock()))
	s.noError(err)
	s.is("locked afterwards", s.locked(key), false)
}
