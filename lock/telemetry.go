package lock

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"sync"
	"sync/atomic"
	"time"
)

// EventType names the operation an Event is about.
type EventType string

// The event types.
const (
	EventAcquire  EventType = "acquire"
	EventRelease  EventType = "release"
	EventExtend   EventType = "extend"
	EventIsLocked EventType = "isLocked"
	EventLookup   EventType = "lookup"
)

// EventResult is ok or fail.
type EventResult string

// The event results.
const (
	ResultOK   EventResult = "ok"
	ResultFail EventResult = "fail"
)

// Event is one finished operation. It holds raw values only if IncludeRaw allows them and
// DenyRaw does not forbid them.
//
// JSON always has the first five fields, empty if they do not apply, and key and lockId only if
// they may be shown. See MarshalJSON for Code.
type Event struct {
	Type       EventType     `json:"type"`
	KeyHash    string        `json:"keyHash"`    // if the call names a key
	LockIDHash string        `json:"lockIdHash"` // if the call names an id, or yields one
	Result     EventResult   `json:"result"`
	Reason     Reason        `json:"reason"`           // when a result is not OK
	Key        string        `json:"key,omitempty"`    // raw
	LockID     string        `json:"lockId,omitempty"` // raw
	Code       Code          `json:"-"`                // when the call failed
	Duration   time.Duration `json:"-"`                // of the call
}

// MarshalJSON puts Why into the field reason. The duration is left out.
func (e Event) MarshalJSON() ([]byte, error) {
	type fields Event
	shown := fields(e)
	shown.Reason = Reason(e.Why())
	return json.Marshal(shown)
}

// Why is the reason of a result that is not OK, or the code of a call that failed;
// empty if neither applies.
func (e Event) Why() string { return cmp.Or(string(e.Reason), string(e.Code)) }

// Observer takes events, one at a time and in order.
type Observer interface{ Observe(Event) }

// ObserverFunc is a function as Observer.
type ObserverFunc func(Event)

// Observe calls the function.
func (f ObserverFunc) Observe(e Event) { f(e) }

// eventQueue is how many events may wait for a slow observer.
const eventQueue = 1024

// TelemetryOption changes a default of WithTelemetry.
type TelemetryOption func(*Observed)

// IncludeRaw puts raw keys and lock ids into the events for which allow is
// true. nil allows all; a panic means no. DenyRaw comes first.
func IncludeRaw(allow func(Event) bool) TelemetryOption {
	if allow == nil {
		allow = func(Event) bool { return true }
	}
	return func(o *Observed) { o.allowRaw = allow }
}

// WithHasher sets what turns keys and ids into hashes, HashKey by default.
func WithHasher(h Hasher) TelemetryOption { return func(o *Observed) { o.hash = h } }

// WithTelemetryClock sets the clock that measures durations.
func WithTelemetryClock(c Clock) TelemetryOption { return func(o *Observed) { o.clock = c } }

// Observed is a Store that reports the calls to any Backend. The observer, the hasher and the
// filter for raw values run in a goroutine of their own and cannot delay or change a result. If
// they fall more than 1024 events behind, further events are dropped and counted; an event is
// lost if its observer or hasher panics.
type Observed struct {
	backend  Backend
	observer Observer
	hash     Hasher
	clock    Clock
	allowRaw func(Event) bool // nil: never
	denied   *regexp.Regexp   // keys that are never shown; nil: none

	mu      sync.Mutex // orders events, guards closed
	closed  bool
	queue   chan Event // with raw values, without hashes
	drained chan struct{}
	dropped atomic.Int64
}

var (
	_ Store       = (*Observed)(nil)
	_ Waiter      = (*Observed)(nil)
	_ FenceReader = (*Observed)(nil)
)

// WithTelemetry returns a backend that reports to o and owns b: close it instead of b, after
// the last call. A nil observer observes nothing. Methods of a Store that b lacks are
// ErrInvalidArgument, and Watch then never signals.
func WithTelemetry(b Backend, o Observer, opts ...TelemetryOption) *Observed {
	if o == nil {
		o = ObserverFunc(func(Event) {})
	}
	d := &Observed{
		backend:  b,
		observer: o,
		queue:    make(chan Event, eventQueue),
		drained:  make(chan struct{}),
		denied:   matchAny(DefaultDenied()),
	}
	for _, opt := range opts {
		if opt != nil {
			opt(d)
		}
	}
	if d.hash == nil {
		d.hash = HashKey
	}
	if d.clock == nil {
		d.clock = SystemClock()
	}
	go d.deliver()
	return d
}

// Close closes the backend if it is a Closer and delivers the waiting events, both at most
// until ctx ends (ErrAborted). Later calls go to the closed backend, unobserved.
func (o *Observed) Close(ctx context.Context) error {
	var err error
	if c, ok := o.backend.(Closer); ok {
		err = c.Close(ctx)
	}
	drained := o.drain(ctx)
	return cmp.Or(err, drained)
}

// drain ends the observation and waits for the events.
func (o *Observed) drain(ctx context.Context) error {
	o.mu.Lock()
	if !o.closed {
		o.closed = true
		close(o.queue)
	}
	o.mu.Unlock()
	select {
	case <-o.drained:
		return nil
	case <-ctx.Done():
		return AbortedBy(ctx).At("close", "", "")
	}
}

// Dropped is how many events were lost because the observer was too slow.
func (o *Observed) Dropped() int64 { return o.dropped.Load() }

// Capabilities returns those of the backend.
func (o *Observed) Capabilities() Capabilities { return o.backend.Capabilities() }

// Acquire implements Backend.
func (o *Observed) Acquire(ctx context.Context, req AcquireRequest) (AcquireResult, error) {
	start := o.clock.Now()
	res, err := o.backend.Acquire(ctx, req)
	id := res.LockID
	if id == "" {
		id = req.LockID
	}
	o.emit(Event{Type: EventAcquire, Reason: res.Reason}, start, req.Key, id, res.OK, err)
	return res, err
}

// Release implements Backend.
func (o *Observed) Release(ctx context.Context, ref Ref) (ReleaseResult, error) {
	start := o.clock.Now()
	res, err := o.backend.Release(ctx, ref)
	o.emit(Event{Type: EventRelease, Reason: res.Reason}, start, ref.Key, ref.LockID, res.OK, err)
	return res, err
}

// Extend implements Backend.
func (o *Observed) Extend(ctx context.Context, ref Ref, ttl time.Duration) (ExtendResult, error) {
	start := o.clock.Now()
	res, err := o.backend.Extend(ctx, ref, ttl)
	o.emit(Event{Type: EventExtend, Reason: res.Reason}, start, ref.Key, ref.LockID, res.OK, err)
	return res, err
}

// IsLocked implements Backend.
func (o *Observed) IsLocked(ctx context.Context, key string) (bool, error) {
	start := o.clock.Now()
	locked, err := o.backend.IsLocked(ctx, key)
	o.emit(Event{Type: EventIsLocked}, start, key, "", locked, err)
	return locked, err
}

// Lookup implements Backend.
func (o *Observed) Lookup(ctx context.Context, q Query) (*Info, error) {
	start := o.clock.Now()
	info, err := o.backend.Lookup(ctx, q)
	o.emit(Event{Type: EventLookup}, start, q.Key, q.LockID, info != nil, err)
	return info, err
}

// LookupRaw implements RawLookuper. A backend without raw lookup is
// ErrInvalidArgument.
func (o *Observed) LookupRaw(ctx context.Context, q Query) (*RawInfo, error) {
	start := o.clock.Now()
	info, err := lookupRaw(ctx, o.backend, q)
	o.emit(Event{Type: EventLookup}, start, q.Key, q.LockID, info != nil, err)
	return info, err
}

// List implements Lister. It is not reported: it is about no one lock.
func (o *Observed) List(ctx context.Context) ([]RawInfo, error) {
	l, ok := o.backend.(Lister)
	if !ok {
		return nil, Invalid("backend cannot list its locks; use Lookup").At("list", "", "")
	}
	return l.List(ctx)
}

// CheckClock implements ClockChecker. It is not reported: it is about no lock.
func (o *Observed) CheckClock(ctx context.Context) (ClockReport, error) {
	c, ok := o.backend.(ClockChecker)
	if !ok {
		return ClockReport{}, Invalid("backend cannot check the clock; use one that is a ClockChecker").At("checkClock", "", "")
	}
	return c.CheckClock(ctx)
}

// HighestFence implements FenceReader. It is not reported: it is about no one lock.
func (o *Observed) HighestFence(ctx context.Context, key string) (Fence, error) {
	r, ok := o.backend.(FenceReader)
	if !ok {
		return "", Invalid("backend cannot tell its fences; use one that is a FenceReader").At("highestFence", key, "")
	}
	return r.HighestFence(ctx, key)
}

// Watch implements Waiter, if the backend does.
func (o *Observed) Watch(key string) (<-chan struct{}, func()) { return watch(o.backend, key) }

// emit queues the event of a call that ended.
func (o *Observed) emit(e Event, start time.Time, key, lockID string, ok bool, err error) {
	e.Result = ResultOK
	if !ok || err != nil {
		e.Result = ResultFail
	}
	if err != nil {
		e.Reason = ""
		e.Code = CodeInternal
		if known, is := errors.AsType[*Error](err); is {
			e.Code = known.Code
		}
	}
	e.Duration = o.clock.Now().Sub(start)
	e.Key, e.LockID = key, lockID
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	select {
	case o.queue <- e:
	default:
		o.dropped.Add(1)
	}
}

func (o *Observed) mayShowRaw(e Event) (allowed bool) {
	if o.allowRaw == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			allowed = false
		}
	}()
	return o.allowRaw(e)
}

// deliver hands events over until Close.
func (o *Observed) deliver() {
	defer close(o.drained)
	for e := range o.queue {
		o.tell(e)
	}
}

// tell puts hashes in place of raw values, unless those may be shown as well, and
// hands the event over. It survives a panicking observer or hasher.
func (o *Observed) tell(e Event) {
	defer func() { _ = recover() }()
	key, lockID := e.Key, e.LockID
	e.Key, e.LockID = "", ""
	if key != "" {
		e.KeyHash = o.hash(key)
	}
	if lockID != "" {
		e.LockIDHash = o.hash(lockID)
	}
	if !o.denies(key) && o.mayShowRaw(e) {
		e.Key, e.LockID = key, lockID
	}
	o.observer.Observe(e)
}
