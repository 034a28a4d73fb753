package shutdown

import (
	"context"
	"time"
)

// Phase names a part of a shutdown.
type Phase string

// The phases of a State Manager, in order. Other programs have some of them.
const (
	Drain    Phase = "drain"     // messages being processed are finished; the rest is nacked when the phase ends
	Acks     Phase = "acks"      // the last acks and nacks reach Pub/Sub
	GiveBack Phase = "give back" // telemetry that no commit took is dropped; Pub/Sub delivers it again
	Commands Phase = "commands"  // unsent mission commands are published
	Locks    Phase = "locks"     // locks are released
	HTTP     Phase = "http"      // HTTP requests under way are answered
	Export   Phase = "export"    // the last traces and metrics reach the collector
)

// Plan lists the phases of a shutdown in order.
type Plan []Step

// Step is one phase of a plan.
type Step struct {
	Phase Phase
	Limit time.Duration
}

// DefaultDrain is how long a State Manager may take to finish messages being processed.
const DefaultDrain = 15 * time.Second

// StateManager returns the plan of a State Manager: drain, and 6 s for the rest.
// F-FLOW-01 allows 25 s in all. Cloud Run kills after 10 s, which leaves room for
// a drain of 3 s.
func StateManager(drain time.Duration) Plan {
	return Plan{
		{Drain, drain},
		{Acks, 2 * time.Second},
		{GiveBack, time.Second},
		{Commands, time.Second},
		{Locks, time.Second},
		{HTTP, 500 * time.Millisecond},
		{Export, 500 * time.Millisecond},
	}
}

// Optimizer returns the plan of an optimizer, which ends within the 10 s that
// Cloud Run allows. While HTTP requests finish, the cycle under way is recorded.
func Optimizer() Plan {
	return Plan{{HTTP, 5 * time.Second}, {Locks, 2 * time.Second}, {Export, 2 * time.Second}}
}

// Gateway returns the plan of a gateway: its drones leave, the last reports reach Pub/Sub. A
// drain of 14 s ends within the 25 s of F-GW-07.
func Gateway(drain time.Duration) Plan {
	return Plan{{Drain, drain}, {Acks, 9 * time.Second}, {HTTP, 500 * time.Millisecond}, {Export, 500 * time.Millisecond}}
}

// Limit is how long one phase takes at most; 0 for a phase that is not planned.
func (p Plan) Limit(phase Phase) time.Duration {
	for _, step := range p {
		if step.Phase == phase {
			return step.Limit
		}
	}
	return 0
}

// End is when a phase must end, counted from the order to stop. The phase must be planned.
func (p Plan) End(phase Phase) time.Duration {
	var end time.Duration
	for _, step := range p {
		end += step.Limit
		if step.Phase == phase {
			return end
		}
	}
	panic("shutdown: phase " + string(phase) + " is not planned")
}

// Total is when the process must end, counted from the order to stop.
func (p Plan) Total() time.Duration {
	var total time.Duration
	for _, step := range p {
		total += step.Limit
	}
	return total
}

// Context returns a context for work that outlives ctx. The end of ctx is the order to stop;
// the returned context has the values of ctx and ends when the phase must end. Call cancel
// when the work is done.
func (p Plan) Context(ctx context.Context, phase Phase) (outliving context.Context, cancel context.CancelFunc) {
	end := p.End(phase)
	outliving, over := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(end, over)
		context.AfterFunc(outliving, func() { timer.Stop() })
	})
	return outliving, func() { stop(); over() }
}
