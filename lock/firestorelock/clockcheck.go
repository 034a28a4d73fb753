package firestorelock

import (
	"context"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
)

// CheckClock implements lock.ClockChecker.
func (b *Backend) CheckClock(ctx context.Context) (lock.ClockReport, error) {
	fail := func(err error) (lock.ClockReport, error) {
		return lock.ClockReport{}, classify(ctx, err).At("checkClock", "", "")
	}
	if ctx.Err() != nil {
		return fail(lock.AbortedBy(ctx))
	}
	// Nobody writes this document; a missing one has a read time too.
	probe := b.locks.Doc("clock-check")
	report, err := tasks.Read(ctx, &b.tasks, func(ctx context.Context) (lock.ClockReport, error) {
		return lock.MeasureClock(b.clock, func() (time.Time, error) {
			docs, err := b.client.GetAll(ctx, []*firestore.DocumentRef{probe})
			if err != nil {
				return time.Time{}, err
			}
			return docs[0].ReadTime, nil
		})
	})
	if err != nil {
		return fail(err)
	}
	return report, nil
}
