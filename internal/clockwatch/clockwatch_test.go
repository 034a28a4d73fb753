package clockwatch_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/internal/clockwatch"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OBS-01, F-TEL-09: each measurement of the clock is reported at once; it is logged
// only if the clock is wrong.
func TestWatch_ReportsEachMeasurement(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"right": 0, "wrong": -5 * time.Minute} {
		server, err := simclock.New(simclock.Rate{Epoch: time.Now(), Speed: 1, Ahead: ahead})
		if err != nil {
			t.Fatal(err)
		}
		emutest.ServeFirestore(t, firestoreemu.Options{Clock: server})
		clients := emutest.Clients(t)
		var logged bytes.Buffer
		log := slog.New(slog.NewTextHandler(&logged, nil))
		locks, err := clients.Locks(simclock.Real(), log)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		told := make(chan lock.ClockReport, 1)
		clockwatch.Watch(ctx, locks, clients.Meter, log, func(r lock.ClockReport) {
			told <- r
			stop()
		})
		report := <-told
		if offset, measured := clients.Meter.ClockOffset.Last(); !measured || offset != report.Offset || (offset-ahead).Abs() > time.Minute {
			t.Errorf("%s clock: reported %+v, metered %v", name, report, offset)
		}
		if says := strings.Contains(logged.String(), "the local clock is off"); says != (name == "wrong") {
			t.Errorf("%s clock: log %q", name, &logged)
		}
		if err := locks.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
