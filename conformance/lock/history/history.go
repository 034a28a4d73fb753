package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/dronefleet/dronefleet/conformance/lock/lockspec"
	"github.com/dronefleet/dronefleet/lock"
)

// Kind is what was asked.
type Kind string

// The kinds.
const (
	Acquire Kind = "acquire"
	Release Kind = "release"
	Extend  Kind = "extend"
	Break   Kind = "break"
	resume  Kind = "resume" // begins a history with what an earlier one ended with
)

// input is a call. returned is in it because the model must know how late the call can have
// taken effect.
type input struct {
	kind     Kind
	key      string
	lockID   string
	called   int64 // ns since the start
	returned int64

	id     int64 // number of lockID
	ttl    int64 // ms
	time   lockspec.Authority
	offset int64 // of the client's clock, ms
	skew   int64 // by how much that may be wrong, ms

	forgets bool // the store may forget what it did not answer with success
}

// output is an answer.
type output struct {
	ok      bool
	unknown bool  // the caller cannot know the outcome
	fence   int64 // of a granted acquisition
	until   int64 // ns since the start: when the holder stops
	ends    int64 // ms since the start: end of the lease as committed
}

// never is later than everything.
const never = int64(1) << 62

// Recorder collects a history. It is safe for concurrent use.
type Recorder struct {
	start time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
	ids map[string]int64
}

// NewRecorder begins a history now.
func NewRecorder() *Recorder { return &Recorder{start: time.Now(), ids: make(map[string]int64)} }

// Client is a backend as one client uses it, every acquisition, release and
// extension recorded. It is used by one goroutine.
type Client struct {
	lock.Backend
	Recorder *Recorder
	ID       int
	Offset   time.Duration // of the backend's clock from the true one
	Skew     time.Duration // by how much Offset may be wrong
	Server   time.Duration // of the store's clock from the true one, if it judges leases

	// Time is by whose clock the backend judges leases, ExtendTime by whose it extends
	// them, nil if by the same.
	Time       lockspec.Authority
	ExtendTime *lockspec.Authority

	// Settle returns when no request of the backend can still take effect, so that a call of
	// unknown outcome happened by then or never. If it is nil or fails, such a call may happen
	// at any later time, and a history with many of them takes very long to check.
	Settle func() error

	// Cut breaks what the client has under way, as its death would; nil if it cannot.
	Cut func()

	// Forgets says that the store may forget a write that it did not answer with success,
	// though others saw it: it waits for a replica, which is then promoted.
	Forgets bool

	// Certain says that a call did nothing, and used up no fence, unless its error says that
	// the outcome is unknown. It keeps histories of outages short.
	Certain bool

	settling sync.WaitGroup
}

// Acquire records and makes a call; an error is recorded as an unknown outcome, and the next
// try need not wait for it to settle.
//
// A call that took longer than a lease lives may have taken the lock, lost the reply, and taken
// it anew. For each such time an acquisition of unknown outcome is recorded beside it.
func (c *Client) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	called := time.Since(c.Recorder.start)
	res, err := c.Backend.Acquire(ctx, req)
	out := output{ok: res.OK, unknown: err != nil, until: c.trueTime(res.Deadline), ends: c.sinceStart(res.ExpiresAtMs)}
	if res.OK {
		var perr error
		if out.fence, perr = lock.ParseFence(string(res.Fence)); perr != nil {
			err = errors.Join(err, perr)
		}
	}
	in := input{kind: Acquire, key: req.Key, lockID: req.LockID, ttl: req.TTL.Milliseconds(), time: c.Time}
	var outs []output
	if !c.didNothing(err) {
		outs = append(outs, out)
	}
	life := req.TTL + lock.Tolerance
	for took := time.Since(c.Recorder.start) - called; took > life; took -= life {
		outs = append(outs, output{unknown: true})
	}
	switch {
	case len(outs) == 0:
		return res, err
	case !out.unknown:
		c.record(in, called, outs...)
		return res, err
	}
	c.settling.Go(func() { c.record(in, called, outs...) })
	return res, err
}

// Release records and makes a call.
func (c *Client) Release(ctx context.Context, ref lock.Ref) (lock.ReleaseResult, error) {
	called := time.Since(c.Recorder.start)
	res, err := c.Backend.Release(ctx, ref)
	if c.didNothing(err) {
		return res, err
	}
	c.record(input{kind: Release, key: ref.Key, lockID: ref.LockID, time: c.Time}, called, output{ok: res.OK, unknown: err != nil})
	return res, err
}

// Extend records and makes a call. One that was sent twice may have taken effect twice, or
// found its lease over the second time. The unanswered sending may even take effect after the
// call returned.
func (c *Client) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	called := time.Since(c.Recorder.start)
	res, err := c.Backend.Extend(ctx, ref, ttl)
	if c.didNothing(err) {
		return res, err
	}
	in := input{kind: Extend, key: ref.Key, lockID: ref.LockID, ttl: ttl.Milliseconds(), time: c.Time}
	if c.ExtendTime != nil {
		in.time = *c.ExtendTime
	}
	c.record(in, called, output{ok: res.OK, unknown: err != nil, until: c.trueTime(res.Deadline), ends: c.sinceStart(res.ExpiresAtMs)})
	if res.Repeated {
		c.settling.Go(func() { c.record(in, called, output{unknown: true}) })
	}
	return res, err
}

// Break records and makes what an operator does: it ends the lock of a key, whoever has it.
func (c *Client) Break(ctx context.Context, key string) error {
	held, err := lock.GetByKeyRaw(ctx, c.Backend, key)
	if held == nil || err != nil {
		return err
	}
	called := time.Since(c.Recorder.start)
	res, err := c.Backend.Release(ctx, lock.Ref{Key: key, LockID: held.LockID})
	if c.didNothing(err) {
		return err
	}
	c.record(input{kind: Break, key: key, lockID: held.LockID, time: c.Time}, called, output{ok: res.OK, unknown: err != nil})
	return err
}

// didNothing tells whether a call did nothing, and so need not be recorded.
func (c *Client) didNothing(err error) bool {
	e, ok := errors.AsType[*lock.Error](err)
	return ok && !e.OutcomeUnknown && c.Certain
}

// trueTime is a moment of the client's clock on the recorder's.
func (c *Client) trueTime(t time.Time) int64 {
	return int64(t.Add(-c.Offset).Sub(c.Recorder.start))
}

// sinceStart is a Unix time in ms since the recorder's start.
func (c *Client) sinceStart(unixMs int64) int64 {
	return unixMs - c.Server.Milliseconds() - c.Recorder.start.UnixMilli()
}

// record records a call that has returned, and the calls of unknown outcome that it
// may have made too.
func (c *Client) record(in input, called time.Duration, outs ...output) {
	in.called = int64(called)
	if outs[0].unknown && (c.Settle == nil || c.Settle() != nil) {
		in.returned = never
	} else {
		in.returned = int64(time.Since(c.Recorder.start))
	}
	in.offset, in.skew, in.forgets = c.Offset.Milliseconds(), c.Skew.Milliseconds(), c.Forgets
	c.Recorder.add(c.ID, in, outs...)
}

func (r *Recorder) add(client int, in input, outs ...output) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ids[in.lockID] == 0 {
		r.ids[in.lockID] = int64(len(r.ids)) + 1
	}
	in.id = r.ids[in.lockID]
	for _, out := range outs {
		r.ops = append(r.ops, porcupine.Operation{
			ClientId: client, Input: in, Call: in.called, Output: out, Return: in.returned,
		})
	}
}

// next ends a history and begins another, on locks that nobody holds and whose counters
// are known.
func (r *Recorder) next(counters map[string]int64) {
	r.mu.Lock()
	r.ops, r.ids = nil, make(map[string]int64)
	r.mu.Unlock()
	now := int64(time.Since(r.start))
	for key, counter := range counters {
		r.add(0, input{kind: resume, key: key, called: now, returned: now}, output{fence: counter})
	}
}

// Len is the number of recorded calls.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ops)
}

// Verdict is the outcome of Check.
type Verdict string

// The verdicts.
const (
	Linearizable Verdict = "linearizable"
	Violated     Verdict = "violated"
	Undecided    Verdict = "undecided" // the time for the search is used up
)

// Check searches an order that explains the history. If there is none, why shows where the
// longest explanation of a key ends, which may take minutes if many calls overlap.
func (r *Recorder) Check(timeout time.Duration) (_ Verdict, why func() string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ops := slices.Concat(r.ops, takenAgain(r.ops))
	switch porcupine.CheckOperationsTimeout(model, ops, timeout) {
	case porcupine.Ok:
		return Linearizable, func() string { return "" }
	case porcupine.Illegal:
		return Violated, func() string {
			_, info := porcupine.CheckOperationsVerbose(model, ops, timeout)
			return explain(ops, info)
		}
	default:
		return Undecided, func() string { return "" }
	}
}

// takenAgain returns what acquisitions did beside what they answered. If an operator broke a
// lease before its acquisition, whose reply was lost, asked again, that one took the lock twice
// or found it taken.
func takenAgain(ops []porcupine.Operation) (more []porcupine.Operation) {
	acquired := make(map[int64][]porcupine.Operation) // several if the helper tried again
	for _, op := range ops {
		if in := op.Input.(input); in.kind == Acquire {
			acquired[in.id] = append(acquired[in.id], op)
		}
	}
	for _, op := range ops {
		in := op.Input.(input)
		if in.kind != Break {
			continue
		}
		for _, was := range acquired[in.id] {
			if was.Call < op.Return && op.Call < was.Return {
				was.Output = output{unknown: true}
				more = append(more, was)
			}
		}
	}
	return more
}

// explain lists, for each key that cannot be explained, the end of the longest explanation,
// with the last calls that may have changed something, and the first calls that it leaves out.
func explain(ops []porcupine.Operation, info porcupine.LinearizationInfo) string {
	const context = 6
	var text strings.Builder
	for i, partials := range info.PartialLinearizationsOperations() {
		all := partition(ops)[i]
		var longest []porcupine.Operation // none if not even the first call can be explained
		for _, partial := range partials {
			if len(partial) > len(longest) {
				longest = partial
			}
		}
		if len(longest) == len(all) {
			continue
		}
		explained := make(map[input]bool)
		var effective []porcupine.Operation
		for _, op := range longest {
			explained[op.Input.(input)] = true
			if out := op.Output.(output); out.ok || out.unknown {
				effective = append(effective, op)
			}
		}
		list := func(ops []porcupine.Operation) {
			for _, op := range ops {
				fmt.Fprintf(&text, "  %d: %+v -> %+v\n", op.ClientId, op.Input, op.Output)
			}
		}
		fmt.Fprintf(&text, "%d of %d calls explained; the last that may have changed something:\n", len(longest), len(all))
		list(effective[max(0, len(effective)-context):])
		fmt.Fprintf(&text, "the last:\n")
		list(longest[max(0, len(longest)-context):])
		left := slices.DeleteFunc(slices.Clone(all), func(op porcupine.Operation) bool { return explained[op.Input.(input)] })
		slices.SortFunc(left, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		fmt.Fprintf(&text, "not explained:\n")
		list(left[:min(context, len(left))])
	}
	return text.String()
}

// state is one lock: what the store holds, and what its holder believes.
type state struct {
	// The store's lock. Answers do not fix every time: early has the earliest possible ends,
	// late the latest.
	early, late lockspec.Lock

	until  int64 // ns since the start: the holder stops
	broken int64 // the id whose lease an operator broke last
	now    int64 // ns since the start: the earliest moment of the last call
}

var model = (&porcupine.NondeterministicModel{
	Partition: partition,
	Init:      func() []any { return []any{state{}} },
	Step: func(s, in, out any) []any {
		var next []any
		for _, n := range step(s.(state), in.(input), out.(output)) {
			next = append(next, n)
		}
		return next
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	DescribeState:     func(s any) string { return fmt.Sprintf("%+v", s) },
}).ToModel()

// partition splits a history by key: locks are independent.
func partition(ops []porcupine.Operation) [][]porcupine.Operation {
	byKey := make(map[string][]porcupine.Operation)
	for _, op := range ops {
		key := op.Input.(input).key
		byKey[key] = append(byKey[key], op)
	}
	parts := make([][]porcupine.Operation, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		parts = append(parts, byKey[key])
	}
	return parts
}

// slack is by how much times in whole milliseconds may be off.
const slack = 2

const tolerance = int64(lock.Tolerance / time.Millisecond)

// rules are those of the store that was called.
func (in input) rules() lockspec.Rules { return lockspec.Rules{Time: in.time, Tolerance: tolerance} }

// earliest and latest are what the clocks may have shown to a call.
func (in input) earliest(s state) lockspec.Clocks {
	at := s.now/int64(time.Millisecond) - slack
	return lockspec.Clocks{Local: at + in.offset - in.skew, Server: at, Commit: at}
}

func (in input) latest() lockspec.Clocks {
	at := in.returned/int64(time.Millisecond) + slack
	return lockspec.Clocks{Local: at + in.offset + in.skew, Server: at, Commit: at}
}

// reading is what the clocks showed to a call that wrote an end; false if they cannot have. A
// call may read them early and then wait for another, which only makes its lease end sooner.
func (in input) reading(ends int64) (lockspec.Clocks, bool) {
	from, to, at := in.earliest(state{now: in.called}), in.latest(), ends-in.ttl
	c := lockspec.Clocks{Local: at, Server: at, Commit: from.Commit}
	switch in.time {
	case lockspec.ServerTime:
		return c, from.Server <= at && at <= to.Server
	case lockspec.ClientTime:
		return c, from.Local <= at && at <= to.Local
	case lockspec.GuardedTime: // the later of both
		c.Server = min(at, to.Server)
		if in.kind == Extend { // over only if over by both; the server's clock may be an estimate, which is late
			c.Server = min(at, from.Server)
			return c, at <= max(to.Server, to.Local)
		}
		return c, from.Server <= at && at <= max(to.Server, to.Local)
	}
	return c, false
}

// lease is the state after a lease with an end was written.
func (in input) lease(s state, l lockspec.Lock, ends, until int64) state {
	s.early, s.late, s.until = l, l, until
	s.early.Ends, s.late.Ends = ends, ends
	if l.ServerEnds != 0 {
		s.late.ServerEnds = in.latest().Commit + in.ttl + tolerance
	}
	return s
}

// step returns the states after a call with this answer; none if it is not a step of the
// specification, or grants a lease while the last holder relies on its own.
func step(s state, in input, out output) []state {
	s.now = max(s.now, in.called)
	if s.now > in.returned {
		return nil
	}
	rules, holder := in.rules(), s.early.Holder
	// free is the state in which the holder's time is over, if the call can
	// have taken effect then.
	free := s
	free.now = max(s.now, s.until)
	canBeOver := holder != 0 && free.now <= in.returned && !rules.Live(s.early, in.latest())
	if holder == 0 {
		free, canBeOver = s, true
	}
	canBeLive := rules.Live(s.late, in.earliest(s))

	switch in.kind {
	case resume:
		s.early.Counter, s.late.Counter = out.fence, out.fence
		return []state{s}
	case Acquire:
		switch {
		case out.unknown && !canBeOver:
			return []state{s}
		case out.unknown:
			// Nobody knows whether it was granted, so no time is protected, not even from its
			// holder: an earlier try may have been granted too late and given back.
			granted := in.unknown(free)
			if !in.forgets {
				return []state{s, granted}
			}
			forgotten := granted // later; until then others were refused
			forgotten.early.Counter, forgotten.late.Counter = s.early.Counter, s.late.Counter
			return []state{s, granted, forgotten}
		case !out.ok && canBeLive && holder != in.id:
			return []state{s}
		case !out.ok:
			return nil
		case holder == in.id && out.fence == s.early.Fence && s.early.Ends <= out.ends && out.ends <= s.late.Ends:
			s.early.Ends, s.late.Ends, s.until = out.ends, out.ends, out.until // an earlier try was granted
			return []state{s}
		case !canBeOver:
			return nil
		}
		clocks, can := in.reading(out.ends)
		granted, ans := rules.Acquire(s.early, in.id, in.ttl, clocks)
		if !can || !ans.OK || ans.Found || ans.Fence != out.fence {
			return nil
		}
		return []state{in.lease(free, granted, out.ends, out.until)}
	case Release, Break:
		gone := s
		released, _ := rules.Release(s.late, in.id, in.earliest(s))
		gone.early, gone.late, gone.until = released, released, 0
		if in.kind == Break {
			gone.broken = in.id
		}
		switch {
		case out.unknown && holder == in.id:
			return []state{s, gone}
		case out.unknown:
			return []state{s}
		case out.ok && holder == in.id && canBeLive:
			if !in.forgets {
				return []state{gone}
			}
			undone := s // later; until then others were granted it
			undone.early.Ends, undone.until = -never, 0
			return []state{gone, undone}
		case out.ok && s.broken == in.id:
			return []state{s} // it was sent again, found the lock gone, and counted that as its own release (B-03)
		case out.ok:
			return nil
		case holder == in.id && canBeLive && canBeOver:
			return []state{free, gone} // a first sending released it, and a later one, after its end, found nothing
		}
	case Extend:
		switch {
		case out.unknown && holder == in.id:
			return []state{s, in.unsure(s)}
		case out.unknown:
			return []state{s}
		case out.ok:
			clocks, can := in.reading(out.ends)
			extended, ans := rules.Extend(s.late, in.id, in.ttl, s.late.Fence, clocks)
			if !can || !ans.OK {
				return nil
			}
			return []state{in.lease(s, extended, out.ends, out.until)}
		}
	}
	// A refusal: not the holder, or no longer.
	switch {
	case holder != in.id:
		return []state{s}
	case canBeOver:
		return []state{free}
	}
	return nil
}

// unknown is the state after a grant whose answer is unknown. The backend may give the lease
// back at any time.
func (in input) unknown(s state) state {
	s.late, _ = in.rules().Acquire(lockspec.Lock{Counter: s.early.Counter}, in.id, in.ttl, in.latest())
	s.early, s.until = s.late, 0
	s.early.Ends = -never
	return s
}

// unsure is the state after an extension of which only the call is known.
func (in input) unsure(s state) state {
	sooner, a := in.rules().Extend(s.late, in.id, in.ttl, s.late.Fence, in.earliest(s))
	later, b := in.rules().Extend(s.late, in.id, in.ttl, s.late.Fence, in.latest())
	if !a.OK {
		return s
	}
	if !b.OK { // at the latest when the lease was about to be over
		later.Ends += tolerance + in.ttl
		if later.ServerEnds != 0 {
			later.ServerEnds += in.ttl + tolerance
		}
	}
	s.early.Ends, s.late.Ends = min(s.early.Ends, sooner.Ends), max(s.late.Ends, later.Ends)
	if s.early.ServerEnds == 0 || sooner.ServerEnds != 0 {
		s.early.ServerEnds = sooner.ServerEnds
	}
	s.late.ServerEnds = later.ServerEnds
	return s
}
