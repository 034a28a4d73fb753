package solver

import (
	"context"
	"time"
)

const (
	// endgame is the part of the limit kept for assembling the plan.
	endgame = 2 * time.Millisecond
	// leastFill is kept for adding late deliveries, however short the construction
	// was.
	leastFill = time.Millisecond
	// insertionFactor is about how many times as long as the preparation inserting
	// all orders takes, when drones are few.
	insertionFactor = 20
)

// budget is the time or the steps that one Solve may spend.
type budget struct {
	cancelled  func() bool // the caller's context has ended
	clock      func() time.Time
	start      time.Time
	limit      time.Duration // of all of Solve
	iterations int           // steps per worker; above 0 they are the budget and time is not

	searchEnd    time.Duration // when the search ends
	constructEnd time.Duration // the first construction goes on until then, even beyond the limit
	prepareEnd   time.Duration // when the preparation was done
	firstPlan    time.Duration // when the first plan was there
}

func newBudget(ctx context.Context, o Options) *budget {
	cancelled := func() bool { return ctx.Err() != nil }
	return &budget{cancelled: cancelled, clock: o.Clock, start: o.Clock(), limit: o.TimeLimit, iterations: o.Iterations, searchEnd: o.TimeLimit}
}

// prepared sets what follows from the time that the preparation took.
func (b *budget) prepared(orders, drones int) {
	b.prepareEnd = b.elapsed()
	b.constructEnd = insertionFactor * b.prepareEnd
	if orders <= tinyProblem {
		b.searchEnd = min(b.searchEnd, tinyTime+time.Duration(drones)*tinyDrone)
	}
}

func (b *budget) elapsed() time.Duration { return b.clock().Sub(b.start) }

// timed reports whether time is the budget.
func (b *budget) timed() bool { return b.iterations <= 0 }

// over reports whether it is time to assemble the plan.
func (b *budget) over() bool {
	return b.cancelled() || b.timed() && b.elapsed() > b.limit-endgame
}

// constructionOver reports whether it is time to end the first construction. With very many
// orders, or on a busy machine, it goes on beyond the limit: otherwise no drone would fly in
// any cycle, and the backlog would keep growing.
func (b *budget) constructionOver() bool {
	return b.over() && (b.cancelled() || b.elapsed() > b.constructEnd)
}

// lateFillOver reports whether adding late deliveries to one more of n clusters
// would take too long, judging by what construction took.
func (b *budget) lateFillOver(n, workers int) bool {
	each := 3 * b.construction() / 2 * time.Duration(min(n, workers)) / time.Duration(n)
	return b.timed() && b.elapsed()+each > b.limit-endgame
}

// reserve is the part of the time that the search leaves to what follows it:
// adding late deliveries repeats a construction, and the plan is assembled.
func (b *budget) reserve() time.Duration {
	return endgame + min(max(leastFill, b.construction()), b.searchEnd/4)
}

// construction is how long the first construction took.
func (b *budget) construction() time.Duration { return b.firstPlan - b.prepareEnd }

// spent returns a function that gives the spent share of the budget from now to the end of
// the search, after a chain's steps. It is 2 once the context has ended.
func (b *budget) spent() func(steps int64) float64 {
	if !b.timed() {
		return b.orCancelled(func(steps int64) float64 { return float64(steps) / float64(b.iterations) })
	}
	began := b.elapsed()
	span := b.searchEnd - b.reserve() - began
	return b.orCancelled(func(int64) float64 {
		if span <= 0 {
			return 2
		}
		return float64(b.elapsed()-began) / float64(span)
	})
}

// orCancelled returns f, or 2 once the context has ended.
func (b *budget) orCancelled(f func(steps int64) float64) func(steps int64) float64 {
	return func(steps int64) float64 {
		if b.cancelled() {
			return 2
		}
		return f(steps)
	}
}
