package lock_test

import (
	"context"
	"encoding/json"
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
func TestTelemetry_ReportsEveryCall(t *testing.T) {
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

// L-TEL-02: an acquisition without a result has the lock id of its request. A call that
// failed has its code alone, even if the backend also gave a reason.
func TestTelemetry_ReportsFailedCalls(t *testing.T) {
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

// L-TEL-01: otherwise the decorator behaves as the backend does.
func TestTelemetry_KeepsTheContract(t *testing.T) {
	locktest.Run(t, func(t *testing.T, clock lock.Clock) lock.Backend {
		o := lock.WithTelemetry(memlock.New(memlock.WithClock(clock)), nil, lock.WithTelemetryClock(clock))
		t.Cleanup(func() { mustDrain(t, o) })
		return o
	})
}

// L-EVT-01: the JSON of events, field by field.
func TestEvent_MarshalsExactFields(t *testing.T) {
	keyHash, idHash := lock.HashKey("payment:42"), lock.HashKey("AAAAAAAAAAAAAAAAAAAAAA")
	for _, row := range []struct {
		event  lock.Event
		golden string
	}{
		{lock.Event{Type: lock.EventAcquire, Result: lock.ResultOK, KeyHash: keyHash, LockIDHash: idHash, Duration: time.Second},
			`{"type":"acquire","keyHash":"6831d3d1611c045158f886b7","lockIdHash":"8a5bdb4cc15164126c6ef266","result":"ok","reason":""}`},
		{lock.Event{Type: lock.EventAcquire, Result: lock.ResultFail, KeyHash: keyHash, Reason: lock.ReasonLocked},
			`{"type":"acquire","keyHash":"6831d3d1611c045158f886b7","lockIdHash":"","result":"fail","reason":"locked"}`},
		{lock.Event{Type: lock.EventRelease, Result: lock.ResultFail, LockIDHash: idHash, Reason: lock.ReasonNotFound},
			`{"type":"release","keyHash":"","lockIdHash":"8a5bdb4cc15164126c6ef266","result":"fail","reason":"not-found"}`},
		{lock.Event{Type: lock.EventExtend, Result: lock.ResultFail, KeyHash: keyHash, LockIDHash: idHash, Reason: lock.ReasonExpired, Key: "payment:42", LockID: "AAAAAAAAAAAAAAAAAAAAAA"},
			`{"type":"extend","keyHash":"6831d3d1611c045158f886b7","lockIdHash":"8a5bdb4cc15164126c6ef266","result":"fail","reason":"expired","key":"payment:42","lockId":"AAAAAAAAAAAAAAAAAAAAAA"}`},
		{lock.Event{Type: lock.EventIsLocked, Result: lock.ResultFail, KeyHash: keyHash, Code: lock.CodeRateLimited},
			`{"type":"isLocked","keyHash":"6831d3d1611c045158f886b7","lockIdHash":"","result":"fail","reason":"RateLimited"}`},
		{lock.Event{Type: lock.EventLookup, Result: lock.ResultFail, KeyHash: keyHash},
			`{"type":"lookup","keyHash":"6831d3d1611c045158f886b7","lockIdHash":"","result":"fail","reason":""}`},
	} {
		for _, v := range []any{row.event, &row.event} {
			text, err := json.Marshal(v)
			if err != nil || string(text) != row.golden {
				t.Errorf("%s, %v\nwant %s", text, err, row.golden)
			}
		}
	}
}

// L-EVT-01: a key that seems to hold a secret stays hashed, and so does its lock
// id, whatever IncludeRaw says.
func TestTelemetry_HidesDeniedKeys(t *testing.T) {
	deny := func(words ...string) []lock.TelemetryOption {
		return []lock.TelemetryOption{lock.DenyRaw(words...)}
	}
	for _, row := range []struct {
		key   string
		opts  []lock.TelemetryOption
		shown bool
	}{
		{"payment:42", nil, true},
		{"token:42", nil, false},
		{"refreshToken/42", nil, false},
		{"CLIENT_SECRET", nil, false},
		{"user:7:Password", nil, false},
		{"PASSWORD", nil, false},
		{"pas\u017fword", nil, false}, // the long s folds to s
		{"x-api-key:9", nil, false},
		{"Session:abc", nil, false},
		{"token:42", deny(), true},
		{"token:42", deny("patient"), true},
		{"Patient:12", deny("patient"), false},
		{"patient.12", deny("patient.", "x"), false},
		{"patients", deny("patient.", "y"), true}, // a word is not a pattern
		{"CAFE\u0301", deny("caf\u00e9"), false},
		{"anything", deny(""), false},
		{"anything", deny("\xff"), false},
	} {
		var j journal
		o := lock.WithTelemetry(memlock.New(), &j, append(row.opts, lock.IncludeRaw(nil))...)
		res, err := o.Acquire(bg, lock.AcquireRequest{Key: row.key, TTL: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		mustDrain(t, o)
		e := j.events[0]
		if (e.Key == row.key) != row.shown || (e.LockID == res.LockID) != row.shown {
			t.Errorf("%q: key %q, lock id %q, want them shown: %v", row.key, e.Key, e.LockID, row.shown)
		}
		if e.KeyHash != lock.HashKey(row.key) || e.LockIDHash != lock.HashKey(res.LockID) {
			t.Errorf("%q: %+v", row.key, e)
		}
	}
	words := lock.DefaultDenied()
	words[0] = "changed"
	if lock.DefaultDenied()[0] == "changed" {
		t.Error("the default list can be changed from outside")
	}
}

// L-EVT-01: the decorator is a Store on every backend; what the backend lacks is
// refused.
func TestTelemetry_IsAStoreOnEveryBackend(t *testing.T) {
	whole := &closing{Backend: memlock.New()}
	o := lock.WithTelemetry(whole, nil)
	if _, err := o.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if list, err := o.List(bg); err != nil || len(list) != 1 || list[0].Key != "k" {
		t.Errorf("list %+v, %v", list, err)
	}
	if report, err := o.CheckClock(bg); err != nil || report.Level != lock.ClockOK {
		t.Errorf("clock %+v, %v", report, err)
	}
	mustDrain(t, o)
	if whole.closed != 1 {
		t.Errorf("the backend was closed %d times", whole.closed)
	}

	broken := errors.New("not closed")
	o = lock.WithTelemetry(&closing{Backend: memlock.New(), err: broken}, nil)
	if err := o.Close(bg); err != broken {
		t.Errorf("close: %v", err)
	}

	bare := lock.WithTelemetry(&spy{Backend: memlock.New()}, nil) // a Backend and no more
	_, listErr := bare.List(bg)
	_, clockErr := bare.CheckClock(bg)
	_, rawErr := bare.LookupRaw(bg, lock.Query{Key: "k"})
	for _, err := range []error{listErr, clockErr, rawErr} {
		if !errors.Is(err, lock.ErrInvalidArgument) {
			t.Errorf("%v, want it refused", err)
		}
	}
	if free, stop := bare.Watch("k"); free != nil {
		t.Error("signals out of nowhere")
	} else {
		stop()
	}
	mustDrain(t, bare)
}

// closing is memlock with a count of Close.
type closing struct {
	*memlock.Backend
	closed int
	err    error
}

func (c *closing) Close(context.Context) error {
	c.closed++
	return c.err
}

// L-TEL-03
func TestTelemetry_ShowsRawValuesOnRequest(t *testing.T) {
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
func TestTelemetry_UsesTheHasher(t *testing.T) {
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

// L-TEL-04: a blocked observer delays nothing; the events it misses are counted.
func TestTelemetry_DoesNotWaitForABlockedObserver(t *testing.T) {
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
func TestTelemetry_SurvivesAPanickingObserver(t *testing.T) {
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

// L-TEL-04: the hasher and the predicate for raw values run with the observer: they
// neither delay nor change a result.
func TestTelemetry_DoesNotWaitForHasherOrPredicate(t *testing.T) {
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

// A nil option or argument is the default, as in the helpers' options.
func TestTelemetry_NilOptionsAreDefaults(t *testing.T) {
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
