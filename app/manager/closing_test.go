package manager_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/manager"
)

// F-FLOW-01: a process has 25 s from the order to stop, and 10 s where its drain
// is that of Cloud Run; before that order it has no limit.
func TestClosing_EndsWithinTheTimeOfAProcess(t *testing.T) {
	for _, c := range []struct{ drain, limit time.Duration }{
		{pubsubio.DefaultDrainTimeout, 25 * time.Second}, {3 * time.Second, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			closing, end := manager.Closing(ctx, c.drain)
			defer end()
			time.Sleep(time.Hour)
			if closing.Err() != nil {
				t.Error("over before the order to stop")
			}
			stop()
			began := time.Now()
			<-closing.Done()
			if took := time.Since(began); took <= c.drain || took >= c.limit {
				t.Errorf("with a drain of %s it ends after %s, want less than %s", c.drain, took, c.limit)
			}
		})
	}
}
