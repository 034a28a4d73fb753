package firestorelock

import (
	"context"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

const clockReads = 5

// CheckClock implements lock.ClockChecker with five reads, of which the fastest
// counts.
func (b *Backend) CheckClock(ctx context.Context) (lock.ClockReport, error) {
	fail := func(err error) (lock.ClockReport, error) {
		return lock.ClockReport{}, classify(ctx, err).At("checkClock", "", "")
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	// A document nobody writes; a missing one has a read time too.
	probe := b.locks.Doc("clock-check")
	report, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) (lock.ClockReport, error) {
		best := lock.ClockReport{Uncertainty: time.Duration(1<<63 - 1)}
		for range clockReads {
			asked := b.clock.Now()
			docs, err := b.client.GetAll(ctx, []*firestore.DocumentRef{probe})
			if err != nil {
				return lock.ClockReport{}, err
			}
			roundTrip := b.clock.Now().Sub(asked)
			if uncertainty := roundTrip / 2; uncertainty < best.Uncertainty {
				best.Uncertainty = uncertainty
				best.Offset = docs[0].ReadTime.Sub(asked.Add(uncertainty))
			}
		}
		best.Level = lock.ClockLevelOf(best.Offset, best.Uncertainty)
		return best, nil
	})
	if err != nil {
		return fail(err)
	}
	return report, nil
}
