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

	"github.com/dronefleet/dronefleet/lock"
)

// Kind is what was asked.
type Kind string

// The kinds.
const (
	Acquire Kind = "acquire"
	Release Kind = "release"
	Extend  Kind = "extend"
)

// input is a call. returned is in the input because the model needs to know
// how late the call can have taken effect.
type input struct {
	kind     Kind
	key      string
	lockID   string
	called   int64 // ns since the start
	returned int64
}

// output is an answer.
type output struct {
	ok      bool
	unknown bool  // the caller cannot know the outcome
	fence   int64 // of a granted acquisition
	until   int64 // ns since the start: when the holder stops
}

// never is later than everything.
const never = int64(1) << 62

// Recorder collects a history. It is safe for concurrent use.
type Recorder struct {
	start time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
}

// NewRecorder begins a history now.
func NewRecorder() *Recorder { return &Recorder{start: time.Now()} }

// Client is a backend as one client uses it, every acquisition, release and
// extension recorded. It is used by one goroutine.
type Client struct {
	lock.Backend
	Recorder *Recorder
	ID       int
	Offset   time.Duration // of the backend's clock from the true one

	// Settle returns when no request that the backend ever sent can still take
	// effect. With it, a call of unknown outcome happened by then or never; nil,
	// or if it fails: such a call may happen at any later time, and a history
	// with many of them takes for ever to check.
	Settle func() error

	settling sync.WaitGroup
}

// Acquire records and makes a call. Errors are recorded as unknown outcomes.
// The client need not wait for such a call to settle: its next try may come
// before what the backend still does about this one.
//
// A call that took longer than a lease lives may have been granted one whose reply
// was lost, found it over, and taken the lock anew. For each such time an
// acquisition of unknown outcome is recorded beside it.
func (c *Client) Acquire(ctx context.Context, req lock.AcquireRequest) (lock.AcquireResult, error) {
	called := time.Since(c.Recorder.start)
	res, err := c.Backend.Acquire(ctx, req)
	out := output{ok: res.OK, unknown: err != nil, until: c.trueTime(res.Deadline)}
	if res.OK {
		var perr error
		if out.fence, perr = lock.ParseFence(string(res.Fence)); perr != nil {
			err = errors.Join(err, perr)
		}
	}
	in := input{kind: Acquire, key: req.Key, lockID: req.LockID}
	outs := []output{out}
	life := req.TTL + lock.Tolerance
	for took := time.Since(c.Recorder.start) - called; took > life; took -= life {
		outs = append(outs, output{unknown: true})
	}
	if !out.unknown {
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
	c.record(input{kind: Release, key: ref.Key, lockID: ref.LockID}, called, output{ok: res.OK, unknown: err != nil})
	return res, err
}

// Extend records and makes a call.
func (c *Client) Extend(ctx context.Context, ref lock.Ref, ttl time.Duration) (lock.ExtendResult, error) {
	called := time.Since(c.Recorder.start)
	res, err := c.Backend.Extend(ctx, ref, ttl)
	c.record(input{kind: Extend, key: ref.Key, lockID: ref.LockID}, called,
		output{ok: res.OK, unknown: err != nil, until: c.trueTime(res.Deadline)})
	return res, err
}

// trueTime is a moment of the client's clock on the recorder's.
func (c *Client) trueTime(t time.Time) int64 {
	return int64(t.Add(-c.Offset).Sub(c.Recorder.start))
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
	c.Recorder.mu.Lock()
	defer c.Recorder.mu.Unlock()
	for _, out := range outs {
		c.Recorder.ops = append(c.Recorder.ops, porcupine.Operation{
			ClientId: c.ID, Input: in, Call: in.called, Output: out, Return: in.returned,
		})
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

// Check searches an order that explains the history. If there is none, the text
// shows where the longest explanation of a key ends.
func (r *Recorder) Check(timeout time.Duration) (Verdict, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result, info := porcupine.CheckOperationsVerbose(model, r.ops, timeout)
	switch result {
	case porcupine.Ok:
		return Linearizable, ""
	case porcupine.Illegal:
		return Violated, r.explain(info)
	default:
		return Undecided, ""
	}
}

// explain lists, for each key that cannot be explained wholly, the last calls of
// the longest explanation and the first it leaves out.
func (r *Recorder) explain(info porcupine.LinearizationInfo) string {
	const context = 6
	var text strings.Builder
	for i, partials := range info.PartialLinearizationsOperations() {
		all := partition(r.ops)[i]
		var longest []porcupine.Operation // none if not even the first call can be explained
		for _, partial := range partials {
			if len(partial) > len(longest) {
				longest = partial
			}
		}
		if len(longest) == len(all) {
			continue
		}
		fmt.Fprintf(&text, "%d of %d calls explained; the last:\n", len(longest), len(all))
		explained := make(map[input]bool)
		for j, op := range longest {
			explained[op.Input.(input)] = true
			if j >= len(longest)-context {
				fmt.Fprintf(&text, "  %d: %+v -> %+v\n", op.ClientId, op.Input, op.Output)
			}
		}
		left := slices.DeleteFunc(slices.Clone(all), func(op porcupine.Operation) bool { return explained[op.Input.(input)] })
		slices.SortFunc(left, func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
		fmt.Fprintf(&text, "not explained:\n")
		for _, op := range left[:min(context, len(left))] {
			fmt.Fprintf(&text, "  %d: %+v -> %+v\n", op.ClientId, op.Input, op.Output)
		}
	}
	return text.String()
}

// state is one lock. now is the earliest moment at which the calls so far can
// have taken effect.
type state struct {
	holder string
	fence  int64
	until  int64
	now    int64
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

// step returns the states after a call that was answered so; none if it cannot
// have been.
func step(s state, in input, out output) []state {
	s.now = max(s.now, in.called)
	if s.now > in.returned {
		return nil
	}
	// free is the state in which the holder's time is over, if the call can
	// have taken effect then.
	free, canBeOver := s, max(s.now, s.until) <= in.returned
	free.now = max(s.now, s.until)

	granted := func(s state) state {
		s.holder, s.fence, s.until = in.lockID, out.fence, out.until
		return s
	}
	switch in.kind {
	case Acquire:
		switch {
		case out.unknown:
			after := []state{s}
			// If it was granted, nobody knows: no time is protected.
			unknown := func(s state) state {
				s.holder, s.fence, s.until = in.lockID, s.fence+1, 0
				return s
			}
			if s.holder == "" {
				return append(after, unknown(s))
			}
			// Also to its holder: an earlier try may have been granted too late, and
			// given back.
			if canBeOver {
				return append(after, unknown(free))
			}
			return after
		case !out.ok:
			if s.holder != "" && s.holder != in.lockID {
				return []state{s}
			}
			return nil
		case s.holder == in.lockID && out.fence == s.fence:
			return []state{granted(s)} // an earlier try was granted
		case out.fence != s.fence+1:
			return nil
		case s.holder == "":
			return []state{granted(s)}
		case canBeOver:
			return []state{granted(free)}
		}
		return nil
	case Release:
		gone := s
		gone.holder, gone.until = "", 0
		switch {
		case out.unknown && s.holder == in.lockID:
			return []state{s, gone}
		case out.unknown:
			return []state{s}
		case out.ok && s.holder == in.lockID:
			return []state{gone}
		case out.ok:
			return nil
		}
	case Extend:
		switch {
		case out.unknown:
			return []state{s}
		case out.ok && s.holder == in.lockID:
			s.until = out.until
			return []state{s}
		case out.ok:
			return nil
		}
	}
	// A refusal: not the holder, or no longer.
	if s.holder != in.lockID {
		return []state{s}
	}
	if canBeOver {
		return []state{free}
	}
	return nil
}
