package firestoretx_test

import (
	"context"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// lateFleet is a fleet whose clock the test sets, with D1 on a mission of O1.
type lateFleet struct {
	*firestoretx.Store
	t       *testing.T
	clock   *clockwork.FakeClock // the server's and ours
	faults  *fault.Injector
	began   time.Time
	applier *firestoretx.TelemetryApplier
	meter   *meter.Meter
	again   []domain.OrderID // picked up again

	delivered []domain.Order // as commits told
}

var (
	latePickup   = domain.Position{Lat: 48.87, Lon: 2.35}
	lateDelivery = domain.Position{Lat: 48.88, Lon: 2.36}
)

func newLateFleet(t *testing.T) *lateFleet {
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	clock := clockwork.NewFakeClockAt(began)
	faults := fault.New(1)
	emutest.ServeFirestore(t, firestoreemu.Options{Clock: clock, Faults: faults})
	clients := emutest.Clients(t)
	f := &lateFleet{t: t, faults: faults, clock: clock, began: began, meter: clients.Meter}
	f.Store = firestoretx.New(clients.Firestore, firestoretx.Config{
		PlanUnregistered: true,
		Now:              clock.Now,
		PickedUpAgain:    func(_ context.Context, o domain.OrderID) { f.again = append(f.again, o) },
		Delivered:        func(_ context.Context, o domain.Order) { f.delivered = append(f.delivered, o) },
	})
	f.applier = f.NewTelemetryApplier()
	emutest.IssueFences(t, clients.Firestore, "1", "")
	f.says("D1", 0, domain.DroneIdle, "", depot.Position)
	f.must(f.IngestOrder(t.Context(), domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{
		Priority: domain.PriorityHigh, ProductType: "BLOOD", Pickup: &latePickup, Delivery: lateDelivery,
	}}, clock.Now()))
	f.assign("1", "D1", "M-1", 1)
	f.says("D1", 2, domain.DroneMoving, "M-1", depot.Position)
	return f
}

func (f *lateFleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *lateFleet) at(seconds float64) time.Time {
	return f.began.Add(time.Duration(seconds * float64(time.Second)))
}

// advance moves the clocks forward to a time.
func (f *lateFleet) advance(seconds float64) { f.clock.Advance(f.at(seconds).Sub(f.clock.Now())) }

func (f *lateFleet) assign(id domain.DecisionID, drone domain.DroneID, want domain.MissionID, seconds float64) {
	f.t.Helper()
	f.advance(seconds)
	entry, err := f.AssignMission(f.t.Context(), domain.Decision{
		ID: id, Fence: "1", DroneID: drone, OrderIDs: []domain.OrderID{"O1"}, SnapshotTime: f.clock.Now(), PayloadHash: string(id),
		Route: []domain.Waypoint{
			{Type: domain.WaypointDepotStart, Position: depot.Position},
			{Type: domain.WaypointWarehousePickup, Position: latePickup, OrderID: "O1"},
			{Type: domain.WaypointHospitalDelivery, Position: lateDelivery, OrderID: "O1"},
		},
	}, policy.Delivery{MessageID: string(id), PublishedAt: f.clock.Now(), ReceivedAt: f.clock.Now()})
	f.must(err)
	if entry.MissionID != want {
		f.t.Fatalf("decision %s: %+v", id, entry)
	}
}

// says delivers a report as soon as it is measured.
func (f *lateFleet) says(drone domain.DroneID, seconds float64, status domain.DroneStatus, mission domain.MissionID, p domain.Position) {
	f.t.Helper()
	f.advance(seconds)
	f.must(f.late(drone, seconds, status, mission, p))
}

// late delivers a report that was measured earlier.
func (f *lateFleet) late(drone domain.DroneID, seconds float64, status domain.DroneStatus, mission domain.MissionID, p domain.Position) error {
	return f.applier.Apply(f.t.Context(), []domain.Telemetry{{
		DroneID: drone, Timestamp: f.at(seconds), Position: p, Battery: 80, Status: status, MissionID: mission,
	}})[0]
}

func (f *lateFleet) expect(status domain.OrderStatus, held bool, mission domain.MissionStatus, stops int) {
	f.t.Helper()
	o, err := f.Order(f.t.Context(), "O1")
	f.must(err)
	m, err := f.Mission(f.t.Context(), "M-1")
	f.must(err)
	if o.Status != status || o.Held != held || m.Status != mission || m.ReachedStops != stops {
		f.t.Errorf("order %s, held %t, mission %s, %d stops; want %s, %t, %s, %d", o.Status, o.Held, m.Status, m.ReachedStops, status, held, mission, stops)
	}
}

// parked lets D1 park without a report from any stop, until its mission fails.
func (f *lateFleet) parked() {
	f.t.Helper()
	f.says("D1", 60, domain.DroneIdle, "", depot.Position)
	f.expect(domain.OrderAssigned, false, domain.MissionActive, 1)
	f.says("D1", 90.5, domain.DroneIdle, "", depot.Position)
	f.expect(domain.OrderPending, false, domain.MissionFailed, 1)
}

// F-TEL-11: a report from a stop that arrives after a newer one counts, whether or not the
// applier has cached the drone, and moves nothing back.
func TestStore_LateReportProvesAStop(t *testing.T) {
	for name, forget := range map[string]bool{"knows the drone": false, "knows nothing": true} {
		t.Run(name, func(t *testing.T) {
			f := newLateFleet(t)
			f.says("D1", 20, domain.DroneMoving, "M-1", latePickup)
			f.says("D1", 50, domain.DroneMoving, "M-1", depot.Position)
			f.says("D1", 60, domain.DroneIdle, "", depot.Position)
			f.expect(domain.OrderInDelivery, false, domain.MissionActive, 2)
			before, err := f.Drone(t.Context(), "D1")
			f.must(err)
			if forget {
				f.applier = f.NewTelemetryApplier()
			}
			f.must(f.late("D1", 40, domain.DroneDelivering, "M-1", lateDelivery))
			f.expect(domain.OrderDelivered, false, domain.MissionCompleted, 3)
			after, err := f.Drone(t.Context(), "D1")
			f.must(err)
			if after.Position != before.Position || after.Status != before.Status || !after.LastUpdate.Equal(before.LastUpdate) {
				t.Errorf("the drone went from %+v to %+v", before, after)
			}
			if err := f.late("D1", 40, domain.DroneDelivering, "M-1", lateDelivery); !isStale(err) {
				t.Errorf("the same again: %v", err)
			}
			f.says("D1", 61, domain.DroneIdle, "", depot.Position)
			if d, err := f.Drone(t.Context(), "D1"); err != nil || d.Status != domain.DroneIdle || d.Bound() {
				t.Errorf("drone %+v, %v", d, err)
			}
		})
	}
}

// F-TEL-11: the sweeper ends the mission of a drone that parked and then fell silent.
func TestStore_SweepEndsAParkedMission(t *testing.T) {
	f := newLateFleet(t)
	f.says("D1", 60, domain.DroneIdle, "", depot.Position)
	f.advance(94)
	if _, err := f.Sweep(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	f.expect(domain.OrderAssigned, false, domain.MissionActive, 1)
	f.advance(95)
	if result, err := f.Sweep(t.Context(), nil); err != nil || result.MissionsFailed != 1 {
		t.Fatal(result, err)
	}
	f.expect(domain.OrderPending, false, domain.MissionFailed, 1)
}

// F-TEL-11, I10: evidence after a mission's end still counts, in one transaction each.
func TestStore_EvidenceAfterTheEndStillCounts(t *testing.T) {
	f := newLateFleet(t)
	f.parked()
	f.must(f.late("D1", 20, domain.DroneMoving, "M-1", latePickup))
	f.expect(domain.OrderPending, true, domain.MissionFailed, 2)
	f.must(f.late("D1", 40, domain.DroneMoving, "M-1", lateDelivery))
	f.expect(domain.OrderDelivered, false, domain.MissionFailed, 3)
	if err := f.late("D1", 40, domain.DroneMoving, "M-1", lateDelivery); !isStale(err) {
		t.Errorf("the same again: %v", err)
	}
	if o, err := f.Order(t.Context(), "O1"); err != nil || !o.DeliveredAt.Equal(f.at(40)) || o.AssignedMissionID != "M-1" {
		t.Errorf("order %+v, %v", o, err)
	}
}

// F-TEL-11: a reassigned order that turns out to be delivered is withdrawn from its new
// mission.
func TestStore_DeliveredOrderIsWithdrawnFromItsNewMission(t *testing.T) {
	f := newLateFleet(t)
	f.parked()
	f.says("D2", 91, domain.DroneIdle, "", depot.Position)
	f.assign("2", "D2", "M-2", 92)
	completed := 3
	f.must(f.applier.Apply(t.Context(), []domain.Telemetry{{
		DroneID: "D1", Timestamp: f.at(50), Position: depot.Position, Battery: 80, Status: domain.DroneMoving, MissionID: "M-1", CompletedStops: &completed,
	}})[0])
	f.expect(domain.OrderDelivered, false, domain.MissionFailed, 3)
	m, err := f.Mission(t.Context(), "M-2")
	if err != nil || m.Status != domain.MissionFailed || m.FailureReason != domain.FailureWithdrawn || !m.RevokePending {
		t.Errorf("mission %+v, %v", m, err)
	}
	if d, err := f.Drone(t.Context(), "D2"); err != nil || d.Bound() {
		t.Errorf("drone %+v, %v", d, err)
	}
}

// F-TEL-11: a parcel that was put down and has been picked up again is flagged once.
func TestStore_FlagsAParcelPickedUpAgain(t *testing.T) {
	f := newLateFleet(t)
	f.parked()
	f.says("D2", 91, domain.DroneIdle, "", depot.Position)
	f.assign("2", "D2", "M-2", 92)
	f.says("D2", 95, domain.DroneMoving, "M-2", latePickup)
	f.must(f.late("D1", 20, domain.DroneMoving, "M-1", latePickup))
	for range 2 {
		_ = f.late("D1", 40, domain.DroneMoving, "M-1", lateDelivery)
	}
	f.expect(domain.OrderInDelivery, false, domain.MissionFailed, 3)
	if len(f.again) != 1 || f.again[0] != "O1" {
		t.Errorf("flagged %v", f.again)
	}
	events, err := f.EventsOf(t.Context(), "orderId", "O1")
	f.must(err)
	notes := 0
	for _, e := range events.Items {
		if e.Reason == string(policy.ReasonPickedUpAgain) {
			notes++
		}
	}
	if notes != 1 {
		t.Errorf("%d notes", notes)
	}
}

// F-TEL-10, F-TEL-11: a ghost's reports cause one read of its mission, not one each.
func TestStore_GhostCostsOneReadOfItsMission(t *testing.T) {
	f := newLateFleet(t)
	f.parked()
	cost := func(seconds float64) meter.Firestore {
		before := f.meter.FirestoreTotals()
		f.says("D1", seconds, domain.DroneMoving, "M-1", domain.Position{Lat: 48.9, Lon: 2.4})
		after := f.meter.FirestoreTotals()
		return meter.Firestore{RPCs: after.RPCs - before.RPCs, Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes}
	}
	cost(91) // flags it, and reads its mission
	if got := cost(92); got != (meter.Firestore{RPCs: 1, Writes: 1}) {
		t.Errorf("another report cost %+v", got)
	}
}

// F-BAT-01, F-TEL-11: what each kind of report costs.
func TestStore_ReportsCostWhatTheirChangesNeed(t *testing.T) {
	f := newLateFleet(t)
	away := domain.Position{Lat: depot.Position.Lat + 0.01, Lon: depot.Position.Lon}
	for _, step := range []struct {
		what string
		do   func()
		want meter.Firestore
	}{
		{"moving on a mission", func() { f.says("D1", 10, domain.DroneMoving, "M-1", away) }, meter.Firestore{RPCs: 1, Writes: 1}},
		{"a stale report of the mission", func() { _ = f.late("D1", 5, domain.DroneMoving, "M-1", away) }, meter.Firestore{}},
		{"reaching a stop", func() { f.says("D1", 20, domain.DroneMoving, "M-1", latePickup) }, meter.Firestore{RPCs: 5, Reads: 3, Writes: 5}},
		{"late evidence of the mission", func() { f.must(f.late("D1", 15, domain.DroneMoving, "M-1", latePickup)) }, meter.Firestore{RPCs: 5, Reads: 3, Writes: 2}},
		{"parking", func() { f.says("D1", 60, domain.DroneIdle, "", depot.Position) }, meter.Firestore{RPCs: 5, Reads: 3, Writes: 1}},
		{"the end of the mission", func() { f.says("D1", 90.5, domain.DroneIdle, "", depot.Position) }, meter.Firestore{RPCs: 5, Reads: 3, Writes: 6}},
		{"late evidence of an ended mission", func() { f.must(f.late("D1", 40, domain.DroneDelivering, "M-1", lateDelivery)) }, meter.Firestore{RPCs: 11, Reads: 5, Writes: 4}},
		{"the same again", func() { _ = f.late("D1", 40, domain.DroneDelivering, "M-1", lateDelivery) }, meter.Firestore{}},
		{"another late report of the ended mission", func() { _ = f.late("D1", 41, domain.DroneMoving, "M-1", away) }, meter.Firestore{}},
		{"a late report of an unknown mission", func() { _ = f.late("D1", 42, domain.DroneMoving, "M-9", away) }, meter.Firestore{RPCs: 6, Reads: 2}},
	} {
		before := f.meter.FirestoreTotals()
		step.do()
		after := f.meter.FirestoreTotals()
		if got := (meter.Firestore{RPCs: after.RPCs - before.RPCs, Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes}); got != step.want {
			t.Errorf("%s cost %+v, want %+v", step.what, got, step.want)
		}
	}
}

// F-ACK-01, F-TEL-11: a late report whose evidence could not be committed is not rejected as
// stale, because that would lose it.
func TestStore_LateReportIsNotStaleWhileTheStoreFails(t *testing.T) {
	for _, ended := range []bool{false, true} {
		f := newLateFleet(t)
		f.says("D1", 55, domain.DroneMoving, "M-1", depot.Position)
		if ended {
			f.parked()
		}
		f.faults.Add(fault.Rule{RPC: "Commit", Times: 1, Do: fault.Fail(codes.DeadlineExceeded)})
		if err := f.late("D1", 20, domain.DroneMoving, "M-1", latePickup); !firestoretx.Retryable(err) {
			t.Errorf("ended %t: %v", ended, err)
		}
		f.must(f.late("D1", 20, domain.DroneMoving, "M-1", latePickup))
	}
}

func isStale(err error) bool {
	reason, _ := policy.ReasonOf(err)
	return reason == policy.ReasonStaleTelemetry
}

// F-OBS-01: each delivery is reported once, by the commit that makes the order DELIVERED. The
// report may be in time, late for an active mission, or about a mission that failed. Repetitions
// are not reported.
func TestStore_TellsOfEachDeliveryOnce(t *testing.T) {
	for name, deliver := range map[string]func(f *lateFleet){
		"in time": func(f *lateFleet) {
			f.says("D1", 20, domain.DroneMoving, "M-1", latePickup)
			f.says("D1", 40, domain.DroneDelivering, "M-1", lateDelivery)
		},
		"late evidence": func(f *lateFleet) {
			f.says("D1", 20, domain.DroneMoving, "M-1", latePickup)
			f.says("D1", 60, domain.DroneIdle, "", depot.Position)
			f.must(f.late("D1", 40, domain.DroneDelivering, "M-1", lateDelivery))
		},
		"evidence about a failed mission": func(f *lateFleet) {
			f.parked()
			f.must(f.late("D1", 20, domain.DroneMoving, "M-1", latePickup))
			f.must(f.late("D1", 40, domain.DroneDelivering, "M-1", lateDelivery))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newLateFleet(t)
			if deliver(f); len(f.delivered) != 1 {
				t.Fatalf("%d deliveries told, want 1", len(f.delivered))
			}
			if o := f.delivered[0]; o.ID != "O1" || o.Late || !o.DeliveredAt.Equal(f.at(40)) || !o.CreatedAt.Equal(f.began) || o.Priority != domain.PriorityHigh {
				t.Errorf("told of %+v", o)
			}
			for range 2 {
				_ = f.late("D1", 40, domain.DroneDelivering, "M-1", lateDelivery) // stale
				f.applier = f.NewTelemetryApplier()
			}
			f.says("D1", 120, domain.DroneIdle, "", depot.Position)
			if len(f.delivered) != 1 {
				t.Errorf("%d deliveries told after repetitions, want 1", len(f.delivered))
			}
		})
	}
}

// F-OBS-01: what is delivered after its deadline is told as late.
func TestStore_TellsOfLateDeliveries(t *testing.T) {
	f := newLateFleet(t)
	late := domain.PriorityHigh.Window().Seconds() + 1
	f.says("D1", 20, domain.DroneMoving, "M-1", latePickup)
	f.says("D1", late, domain.DroneDelivering, "M-1", lateDelivery)
	if len(f.delivered) != 1 || !f.delivered[0].Late {
		t.Errorf("told of %+v, want one that is late", f.delivered)
	}
}
