package firestoretx_test

import (
	"testing"
	"time"
	"unsafe"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-TEL-03, F-DLQ-01: only the server's clock decides what is too far ahead. With a slow, fast or
// set local clock, no good report is refused and no bad one accepted. A drone whose clock is ahead
// makes the applier ask the server now and then, not with every report.
func TestStore_JudgesFutureTimestampsByTheServersClock(t *testing.T) {
	for name, off := range map[string]time.Duration{"slow": -time.Minute, "right": 0, "fast": time.Minute} {
		t.Run(name, func(t *testing.T) {
			server := clockwork.NewFakeClockAt(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
			emutest.ServeFirestore(t, firestoreemu.Options{Clock: server})
			clients := emutest.Clients(t)
			store := firestoretx.New(clients.Firestore, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return server.Now().Add(off) }})
			applier := store.NewTelemetryApplier()
			const asked = 3 // RPCs of a transaction
			report := func(ahead time.Duration, want policy.Reason, rpcs int64) {
				t.Helper()
				before := clients.Meter.FirestoreTotals()
				err := applier.Apply(t.Context(), []domain.Telemetry{idle("D1", server.Now().Add(ahead))})[0]
				if got, _ := policy.ReasonOf(err); got != want || (err != nil) != (want != "") {
					t.Errorf("a report %s ahead: %v, want %q", ahead, err, want)
				}
				cost := clients.Meter.FirestoreTotals()
				if got := cost.RPCs - before.RPCs; got != rpcs {
					t.Errorf("a report %s ahead cost %d calls, want %d", ahead, got, rpcs)
				}
			}
			report(5001*time.Millisecond, policy.ReasonFutureTimestamp, asked)
			report(0, "", asked)
			server.Advance(10 * time.Second)
			report(4*time.Second, "", 1)
			server.Advance(time.Minute) // the last reading of the server's clock is too old
			report(4*time.Second, "", asked)
			for _, set := range []time.Duration{-30 * time.Second, 30 * time.Second} {
				server.Advance(5 * time.Second)
				off += set
				report(6*time.Second, policy.ReasonFutureTimestamp, asked)
				report(4*time.Second, "", 1)
			}

			report(time.Minute, policy.ReasonFutureTimestamp, 0)
			server.Advance(9 * time.Second)
			report(time.Minute, policy.ReasonFutureTimestamp, 0)
			server.Advance(2 * time.Second)
			report(time.Minute, policy.ReasonFutureTimestamp, asked)
			report(time.Minute, policy.ReasonFutureTimestamp, 0)
			report(5001*time.Millisecond, policy.ReasonFutureTimestamp, 0)
			report(5*time.Second, "", 1)
		})
	}
}

// F-DEC-02: the server's clock dates when a drone became idle. By a local clock that had
// stood still, a plan from before the drone's absence would still be accepted.
func TestStore_DatesIdleDronesByTheServersClock(t *testing.T) {
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	server := clockwork.NewFakeClockAt(began)
	emutest.ServeFirestore(t, firestoreemu.Options{Clock: server})
	store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return began }})
	applier := store.NewTelemetryApplier()
	for _, status := range []domain.DroneStatus{domain.DroneIdle, domain.DroneCharging, domain.DroneIdle} {
		report := idle("D1", server.Now())
		report.Status = status
		if err := applier.Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
			t.Fatalf("%s: %v", status, err)
		}
		server.Advance(4 * time.Second)
	}
	d, err := store.Drone(t.Context(), "D1")
	if want := began.Add(8 * time.Second); err != nil || d.IdleSince.Before(want) {
		t.Errorf("idle since %s, %v; want %s or later", d.IdleSince, err, want)
	}
}

// slept returns t as read on a machine that has slept since: its wall clock advanced, its
// monotonic one did not. Package time cannot create such times, so slept changes the wall
// seconds, which are stored above 30 bits of nanoseconds.
func slept(tb testing.TB, t time.Time, d time.Duration) time.Time {
	tb.Helper()
	woken := t
	*(*uint64)(unsafe.Pointer(&woken)) += uint64(d/time.Second) << 30
	if woken.Sub(t) != 0 || woken.Round(0).Sub(t.Round(0)) != d {
		tb.Fatal("package time has another memory layout")
	}
	return woken
}

// F-TEL-03, F-DLQ-01: a reading of the server's clock is void if the machine has slept since
// the answer, or before it read the answer. No good report is refused then.
func TestStore_RefusesNoGoodReportAfterTheMachineSlept(t *testing.T) {
	const (
		answered = 4 // the look at the clock that follows a transaction's answer
		never    = -1
	)
	for name, asleepAt := range map[string]int{"since the answer": never, "before it read the answer": answered} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			server := clockwork.NewFakeClockAt(began)
			emutest.ServeFirestore(t, firestoreemu.Options{Clock: server})
			var looks int
			var asleep time.Duration
			sleep := func() {
				asleep = time.Hour
				server.Advance(asleep)
			}
			store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time {
				if looks++; looks == asleepAt {
					sleep()
				}
				return slept(t, began, asleep)
			}})
			applier := store.NewTelemetryApplier()
			report := func(measured time.Time, want policy.Reason) {
				t.Helper()
				err := applier.Apply(t.Context(), []domain.Telemetry{idle("D1", measured)})[0]
				if got, _ := policy.ReasonOf(err); got != want || (err != nil) != (want != "") {
					t.Errorf("%v, want %q", err, want)
				}
			}
			report(server.Now(), "")
			if asleepAt == never {
				sleep()
			}
			if asleep == 0 {
				t.Fatal("the machine has not slept")
			}
			report(server.Now(), "")
			report(server.Now().Add(5001*time.Millisecond), policy.ReasonFutureTimestamp)
		})
	}
}
