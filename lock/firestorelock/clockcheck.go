package firestorelock

import (
	"context"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
)

// Clock policy: the skew between a client's clock and the server's, either way.
// Synchronised clocks (NTP) are a precondition of every client.
const (
	SkewTarget = 100 * time.Millisecond // keep every client within
	SkewWarn   = 200 * time.Millisecond // alert from here
	SkewBlock  = 500 * time.Millisecond // fail the deployment from here
)

const clockReads = 5

// ClockLevel grades a skew.
type ClockLevel string

// The levels.
const (
	ClockOK    ClockLevel = "ok"
	ClockWarn  ClockLevel = "warn"
	ClockBlock ClockLevel = "block"
)

// ClockReport is the outcome of CheckClock.
type ClockReport struct {
	Offset      time.Duration // server's clock minus local clock
	Uncertainty time.Duration // the true offset is that close to Offset
	Level       ClockLevel
}

// CheckClock measures the skew between the local and the server's clock: five
// reads, of which the fastest counts. It blocks only if the skew is at least
// SkewBlock however the uncertainty fell. A deployment should refuse to start
// on ClockBlock and alert on ClockWarn.
func (b *Backend) CheckClock(ctx context.Context) (ClockReport, error) {
	fail := func(err error) (ClockReport, error) {
		return ClockReport{}, classify(ctx, err).At("checkClock", "", "")
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	// A document nobody writes; a missing one has a read time too.
	probe := b.locks.Doc("clock-check")
	report, err := read(ctx, b, func(ctx context.Context) (ClockReport, error) {
		best := ClockReport{Uncertainty: time.Duration(1<<63 - 1)}
		for range clockReads {
			asked := b.clock.Now()
			docs, err := b.client.GetAll(ctx, []*firestore.DocumentRef{probe})
			if err != nil {
				return ClockReport{}, err
			}
			roundTrip := b.clock.Now().Sub(asked)
			if uncertainty := roundTrip / 2; uncertainty < best.Uncertainty {
				best.Uncertainty = uncertainty
				best.Offset = docs[0].ReadTime.Sub(asked.Add(uncertainty))
			}
		}
		best.Level = levelOf(best.Offset, best.Uncertainty)
		return best, nil
	})
	if err != nil {
		return fail(err)
	}
	return report, nil
}

func levelOf(offset, uncertainty time.Duration) ClockLevel {
	switch skew := offset.Abs(); {
	case skew-uncertainty >= SkewBlock:
		return ClockBlock
	case skew >= SkewWarn:
		return ClockWarn
	default:
		return ClockOK
	}
}
