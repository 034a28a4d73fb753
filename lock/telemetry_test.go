package lock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
	"github.com/dronefleet/dronefleet/lock/memlock"
)

// journal is an observer that keeps events.
type journal struct {
	mu     sync.Mutex
	events []lock.Event
}

func (j *journal) Observe(e lock.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
}

func mustDrain(t *testing.T, o *lock.Observed) {
	t.Helper()
	if err := o.Close(bg); err != nil {
		t.Error(err)
	}
}

// L-TEL-02
func TestTelemetry_Events(t *testing.T) {
	var j journal
	clock := locktest.NewClock(time.Now())
	b := &spy{Backend: memlock.New(memlock.WithClock(clock))}
	o := lock.WithTelemetry(b, &j, lock.WithTelemetryClock(clock))
	res, err := o.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ref := lock.Ref{LockID: res.LockID, Key: "k"}
	keyHash, idHash := lock.HashKey("k"), lock.HashKey(res.LockID)
	do := func(ok bool, err error) { _, _ = ok, err }
	do(o.IsLocked(bg, "k"))
	do(o.IsLocked(bg, "free"))
	_, _ = o.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Second})
	_, _ = o.Lookup(bg, lock.Query{Key: "k"})
	_, _ = o.Lookup(bg, lock.Query{LockID: res.LockID})
	_, _ = o.Lookup(bg, lock.Query{Key: "free"})
	_, _ = o.Extend(bg, ref, time.Second)
	_, _ = o.Release(bg, ref)
	_, _ = o.Release(bg, ref)
	_, _ = o.Acquire(bg, lock.AcquireRequest{Key: "", TTL: time.Second})
	b.onExtend = func(context.Context, int) (lock.ExtendResult, error) {
		return lock.ExtendResult{}, errors.New("foreign")
	}
	_, _ = o.Extend(bg, ref, time.Second)
	late, err := o.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Minute)
	_, _ = o.Release(bg, lock.Ref{LockID: late.LockID})
	mustDrain(t, o)
	want := []lock.Event{
		{Type: "acquire", Result: "ok", KeyHash: keyHash, LockIDHash: idHash},
		{Type: "isLocked", Result: "ok", KeyHash: keyHash},
		{Type: "isLocked", Result: "fail", KeyHash: lock.HashKey("free")},
		{Type: "acquire", Result: "fail", KeyHash: keyHash, Reason: lock.ReasonLocked},
		{Type: "lookup", Result: "ok", KeyHash: keyHash},
		{Type: "lookup", Result: "ok", LockIDHash: idHash},
		{Type: "lookup", Result: "fail", KeyHash: lock.HashKey("free")},
		{Type: "extend", Result: "ok", KeyHash: keyHash, LockIDHash: idHash},
		{Type: "release", Result: "ok", KeyHash: keyHash, LockIDHash: idHash},
		{Type: "release", Result: "fail", KeyHash: keyHash, LockIDHash: idHash, Reason: lock.ReasonNotFound},
		{Type: "acquire", Result: "fail", Code: lock.CodeInvalidArgument},
		{Type: "extend", Result: "fail", KeyHash: keyHash, LockIDHash: idHash, Code: lock.CodeInternal},
		{Type: "acquire", Result: "ok", KeyHash: keyHash, LockIDHash: lock.HashKey(late.LockID)},
		{Type: "release", Result: "fail", LockIDHash: lock.HashKey(late.LockID), Reason: lock.ReasonExpired},
	}
	if len(j.events) != len(want) {
		t.Fatalf("%d events, want %d", len(j.events), len(want))
	}
	for i := range want {
		if j.events[i] != want[i] {
			t.Errorf("event %d: %+v, want %+v", i, j.events[i], want[i])
		}
	}
	if text := fmt.Sprintf("%+v", j.events); strings.Contains(text, res.LockID) { // L-TEL-03, L-ID-03
		t.Error("events reveal the lock id")
	}
}

// L-TEL-02: an acquisition that yields no id is known by the one it was asked for
// with, and a call that failed has its code alone, whatever came with the error.
func TestTelemetry_FailedCalls(t *testing.T) {
	var j journal
	b := &spy{Backend: memlock.New()}
	o := lock.WithTelemetry(b, &j)
	id := lock.NewLockID()
	h := mustAcquire(t, o)
	_, _ = o.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Second, LockID: id})
	b.onAcquire = func(context.Context, int) (lock.AcquireResult, error) {
		return lock.AcquireResult{Reason: lock.ReasonLocked}, lock.ErrRateLimited
	}
	_, _ = o.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Second, LockID: id})
	mustClose(t, h)
	mustDrain(t, o)
	keyHash, idHash := lock.HashKey("k"), lock.HashKey(id)
	want := []lock.Event{
		{Type: "acquire", Result: "fail", KeyHash: keyHash, LockIDHash: idHash, Reason: lock.ReasonLocked},
		{Type: "acquire", Result: "fail", KeyHash: keyHash, LockIDHash: idHash, Code: lock.CodeRateLimited},
	}
	for i, e := range j.events[1:3] {
		if e.Duration = 0; e != want[i] {
			t.Errorf("event %d: %+v, want %+v", i, e, want[i])
		}
	}
}

// L-TEL-01: the decorator is the backend in every other respect.
func TestTelemetry_Contract(t *testing.T) {
	locktest.Run(t, func(t *testing.T, clock lock.Clock) lock.Backend {
		o := lock.WithTelemetry(memlock.New(memlock.WithClock(clock)), nil, lock.WithTelemetryClock(clock))
		t.Cleanup(func() { mustDrain(t, o) })
		return o
	})
}

// L-TEL-03
func TestTelemetry_Raw(t *testing.T) {
	for name, row := range map[string]struct {
		opts []lock.TelemetryOption
		raw  bool
	}{
		"default":   {nil, false},
		"all":       {[]lock.TelemetryOption{lock.IncludeRaw(nil)}, true},
		"some":      {[]lock.TelemetryOption{lock.IncludeRaw(func(e lock.Event) bool { return e.Type == lock.EventAcquire })}, true},
		"others":    {[]lock.TelemetryOption{lock.IncludeRaw(func(e lock.Event) bool { return e.Type == lock.EventRelease })}, false},
		"panicking": {[]lock.TelemetryOption{lock.IncludeRaw(func(lock.Event) bool { panic("predicate") })}, false},
	} {
		var j journal
		o := lock.WithTelemetry(memlock.New(), &j, row.opts...)
		res, err := o.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		mustDrain(t, o)
		if e := j.events[0]; (e.Key == "k") != row.raw || (e.LockID == res.LockID) != row.raw {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// B-11
func TestTelemetry_Hasher(t *testing.T) {
	var j journal
	o := lock.WithTelemetry(memlock.New(), &j, lock.WithHasher(lock.SyncGuardHash))
	if _, err := o.IsLocked(bg, "a"); err != nil {
		t.Fatal(err)
	}
	mustDrain(t, o)
	if got := j.events[0].KeyHash; got != "0000006100000123000002a7" {
		t.Error(got)
	}
}

// L-TEL-04: a blocked observer delays nothing; what it misses is counted.
func TestTelemetry_BlockedObserver(t *testing.T) {
	proceed := make(chan struct{})
	entered := make(chan struct{}, 1)
	var seen int
	o := lock.WithTelemetry(memlock.New(), lock.ObserverFunc(func(lock.Event) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-proceed
		seen++
	}))
	ask := func(n int) {
		for range n {
			if _, err := o.IsLocked(bg, "k"); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask(1)
	<-entered // one event is with the observer, none in the queue
	ask(1024 + 50)
	if o.Dropped() != 50 {
		t.Errorf("%d dropped, want 50", o.Dropped())
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if err := o.Close(ctx); !errors.Is(err, lock.ErrAborted) {
		t.Error(err)
	}
	close(proceed)
	mustDrain(t, o)
	if seen != 1025 {
		t.Errorf("%d events seen", seen)
	}
	ask(1) // works, unobserved
	if seen != 1025 {
		t.Errorf("%d events seen after Close", seen)
	}
}

// L-TEL-04
func TestTelemetry_PanickingObserver(t *testing.T) {
	var n int
	o := lock.WithTelemetry(memlock.New(), lock.ObserverFunc(func(lock.Event) { n++; panic("observer") }))
	for range 3 {
		if _, err := o.IsLocked(bg, "k"); err != nil {
			t.Fatal(err)
		}
	}
	mustDrain(t, o)
	if n != 3 {
		t.Errorf("%d events", n)
	}
}

// L-TEL-04: what hashes and what decides about raw values are the observer's as
// well: they neither delay nor change a result.
func TestTelemetry_ForeignFunctions(t *testing.T) {
	proceed := make(chan struct{})
	for name, opt := range map[string]lock.TelemetryOption{
		"blocked hasher":      lock.WithHasher(func(string) string { <-proceed; return "" }),
		"blocked predicate":   lock.IncludeRaw(func(lock.Event) bool { <-proceed; return true }),
		"panicking hasher":    lock.WithHasher(func(string) string { panic("hasher") }),
		"panicking predicate": lock.IncludeRaw(func(lock.Event) bool { panic("predicate") }),
	} {
		b := memlock.New()
		o := lock.WithTelemetry(b, nil, opt)
		t.Cleanup(func() { mustDrain(t, o) })
		result := make(chan string, 1)
		go func() {
			defer func() {
				if p := recover(); p != nil {
					result <- fmt.Sprint("panic: ", p)
				}
			}()
			res, err := o.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Second})
			result <- fmt.Sprint(res.OK, err)
		}()
		select {
		case got := <-result:
			if got != "true <nil>" {
				t.Errorf("%s: %s", name, got)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: the call waits for it", name)
		}
	}
	close(proceed)
}

// What is nil is the default, here as in the options of the helpers.
func TestTelemetry_NilOptions(t *testing.T) {
	var j journal
	o := lock.WithTelemetry(memlock.New(nil, memlock.WithClock(nil), memlock.WithLogger(nil), memlock.WithHasher(nil)), &j,
		nil, lock.WithHasher(nil), lock.WithTelemetryClock(nil))
	res, err := o.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	info, err := o.Lookup(bg, lock.Query{Key: "k"})
	if err != nil || info == nil || info.LockIDHash != lock.HashKey(res.LockID) {
		t.Errorf("%+v, %v", info, err)
	}
	mustDrain(t, o)
	if len(j.events) != 2 || j.events[0].KeyHash != lock.HashKey("k") {
		t.Errorf("%+v", j.events)
	}
}
