package firestoretx_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/internal/firestoreemu"
	"github.com/dronefleet/dronefleet/policy"
)

// F-TEL-03, F-DLQ-01: what the server would take is not too far ahead. A local
// clock that is slow, or is set back, refuses no good report, whose drone would
// have no other for as long; and a drone whose clock is really ahead makes the
// applier ask now and then, not with every report.
func TestStore_SlowLocalClockRefusesNoGoodReport(t *testing.T) {
	server := clockwork.NewFakeClockAt(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	emutest.ServeFirestore(t, firestoreemu.Options{Clock: server})
	clients := emutest.Clients(t)
	slow := time.Minute
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Now: func() time.Time { return server.Now().Add(-slow) }})
	applier := store.NewTelemetryApplier()
	const asked = 3 // RPCs of a transaction
	report := func(drone domain.DroneID, ahead time.Duration, want policy.Reason, rpcs int64) {
		t.Helper()
		before := clients.Meter.FirestoreTotals()
		err := applier.Apply(t.Context(), []domain.Telemetry{idle(drone, server.Now().Add(ahead))})[0]
		if got, _ := policy.ReasonOf(err); got != want || (err != nil) != (want != "") {
			t.Errorf("a report %s ahead: %v, want %q", ahead, err, want)
		}
		cost := clients.Meter.FirestoreTotals()
		if got := cost.RPCs - before.RPCs; got != rpcs {
			t.Errorf("a report %s ahead cost %d calls, want %d", ahead, got, rpcs)
		}
	}
	report("D1", 0, "", asked)
	server.Advance(30 * time.Second)
	report("D1", 4*time.Second, "", 1)
	server.Advance(20 * time.Second)
	slow += 30 * time.Second
	report("D1", 4*time.Second, "", asked)

	report("D1", time.Minute, policy.ReasonFutureTimestamp, 0)
	server.Advance(9 * time.Second)
	report("D1", time.Minute, policy.ReasonFutureTimestamp, 0)
	server.Advance(2 * time.Second)
	report("D1", time.Minute, policy.ReasonFutureTimestamp, asked)
	report("D1", time.Minute, policy.ReasonFutureTimestamp, 0)
	report("D1", 5001*time.Millisecond, policy.ReasonFutureTimestamp, 0)
	report("D1", 5*time.Second, "", 1)
}
