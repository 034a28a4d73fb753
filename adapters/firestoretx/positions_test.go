package firestoretx_test

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/jonboulle/clockwork"
	"google.golang.org/genproto/googleapis/type/latlng"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// foretelling is a fleet whose reports are written if they say something new, with what that costs.
type foretelling struct {
	*fleet
	meter *meter.Meter
	clock *clockwork.FakeClock // of the server, and of each process
}

func newForetelling(t *testing.T, drones int) *foretelling {
	t.Helper()
	clock := clockwork.NewFakeClockAt(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	emutest.ServeFirestore(t, firestoreemu.Options{Clock: clock})
	clients := emutest.Clients(t)
	f := &foretelling{&fleet{client: clients.Firestore, now: clock.Now()}, clients.Meter, clock}
	f.Store = f.again()
	f.applier = f.NewTelemetryApplier()
	emutest.IssueFences(t, f.client, "000000000000099", depot.ID, "", "_")
	var fleet []domain.Drone
	for i := range drones {
		fleet = append(fleet, domain.Drone{ID: droneID(i), HomeDepotID: depot.ID, PayloadCapacityKg: 5})
	}
	if err := f.Setup(t.Context(), []domain.Depot{depot}, nil, fleet); err != nil {
		t.Fatal(err)
	}
	return f
}

func droneID(i int) domain.DroneID { return domain.DroneID(fmt.Sprintf("D%d", i+1)) }

// again is the store of another process.
func (f *foretelling) again() *firestoretx.Store {
	return firestoretx.New(f.client, firestoretx.Config{PlanUnregistered: true, Limits: atOnce, Foretelling: policy.DefaultForetelling(), Now: func() time.Time { return f.now }})
}

func (f *foretelling) pass(d time.Duration) {
	f.clock.Advance(d)
	f.now = f.clock.Now().UTC()
}

// costs are the reads and writes of do.
func (f *foretelling) costs(do func()) meter.Firestore {
	before := f.meter.FirestoreTotals()
	do()
	after := f.meter.FirestoreTotals()
	return meter.Firestore{RPCs: after.RPCs - before.RPCs, Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes}
}

// tick is a second later: every drone reports what say returns.
func (f *foretelling) tick(t *testing.T, drones int, say func(domain.DroneID) domain.Telemetry) {
	t.Helper()
	f.pass(time.Second)
	reports := make([]domain.Telemetry, drones)
	for i := range reports {
		reports[i] = say(droneID(i))
		reports[i].Timestamp = f.now
	}
	for i, err := range f.applier.Apply(t.Context(), reports) {
		if err != nil {
			t.Fatalf("%s: %v", reports[i].DroneID, err)
		}
	}
}

func rests(id domain.DroneID) domain.Telemetry { return idle(id, time.Time{}) }

// F-POS-01: a drone that rests costs a write each heartbeat and no read. Another process goes on from
// what is written, and so does one that restarts.
func TestTelemetryApplier_WritesTheHeartbeat(t *testing.T) {
	f := newForetelling(t, 2)
	f.tick(t, 2, rests)
	cost := f.costs(func() {
		for range 80 {
			f.tick(t, 2, rests)
		}
	})
	if cost != (meter.Firestore{RPCs: 10, Writes: 20}) {
		t.Errorf("80 s of two drones cost %+v, want 10 commits of 2 drones", cost)
	}
	f.tick(t, 1, rests) // not due
	if age := f.now.Sub(f.drone(t, "D1").SeenAt); age != time.Second {
		t.Errorf("D1 was seen %s ago, want 1s", age)
	}
	f.applier = f.again().NewTelemetryApplier()
	f.mustReport(t, idle("D1", f.now.Add(-time.Millisecond))) // to this process it is news
	f.tick(t, 1, rests)
	if d := f.drone(t, "D1"); d.Status != domain.DroneIdle || f.now.Sub(d.LastUpdate) > 2*time.Second {
		t.Errorf("after a restart: %+v", d)
	}
}

// F-POS-01, F-POS-03: a report that is not due is answered; its redelivery is stale; what proves a
// stop, names a mission or is a fault is written at once, although decisions do not reach the cache.
func TestTelemetryApplier_WritesWhatSaysSomethingNew(t *testing.T) {
	f := newForetelling(t, 1)
	f.tick(t, 1, rests)
	f.tick(t, 1, rests)
	wantReason(t, f.report(t, idle("D1", f.now)), policy.ReasonStaleTelemetry)

	f.mustOrder(t, "O1")
	if e := f.assign(t, f.decision("DEC-1", "D1", "O1")); e.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v", e)
	}
	f.tick(t, 1, rests) // it does not know yet
	mission := f.drone(t, "D1").CurrentMissionID
	flies := func(at domain.Position) func(domain.DroneID) domain.Telemetry {
		return func(id domain.DroneID) domain.Telemetry {
			return domain.Telemetry{DroneID: id, Position: at, Battery: 80, SpeedKmh: 36, Status: domain.DroneMoving, MissionID: mission}
		}
	}
	f.tick(t, 1, flies(depot.Position))
	if d := f.drone(t, "D1"); !d.MissionAcked || !d.LastUpdate.Equal(f.now) {
		t.Fatalf("it names its mission: %+v", d)
	}
	far := depot.Position.Moved(-5000, 0)
	f.tick(t, 1, flies(far))
	for range 3 {
		f.tick(t, 1, flies(far))
	}
	if d := f.drone(t, "D1"); f.now.Sub(d.LastUpdate) < 2*time.Second {
		t.Fatalf("it hovers far from its stops, and each report is written: %+v", d)
	}
	f.tick(t, 1, flies(collected))
	if o := f.order(t, "O1"); o.Status != domain.OrderInDelivery {
		t.Errorf("at the first stop its order is %s", o.Status)
	}
	f.tick(t, 1, flies(domain.Position{Lat: 48.86, Lon: 2.36}))
	if o := f.order(t, "O1"); o.Status != domain.OrderDelivered {
		t.Errorf("at the second stop its order is %s", o.Status)
	}
	f.tick(t, 1, func(id domain.DroneID) domain.Telemetry {
		r := rests(id)
		r.Status = domain.DroneProblem
		return r
	})
	if d := f.drone(t, "D1"); d.Status != domain.DroneProblem {
		t.Errorf("after a fault: %+v", d)
	}
}

// F-POS-03: while a drone reports, sweeps take it for silent no more than cycles do.
func TestTelemetryApplier_DroneThatReportsIsNeverSilent(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, 3 * time.Second, 5 * time.Second, 7 * time.Second, 11 * time.Second} {
		f := newForetelling(t, 1)
		f.tick(t, 1, rests)
		for range 12 {
			f.pass(max(0, pause-time.Second-time.Millisecond))
			if _, err := f.Sweep(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if d := f.drone(t, "D1"); d.Status != domain.DroneIdle {
				t.Fatalf("it reports every %s and is %s; it was seen %s ago", pause, d.Status, f.now.Sub(d.SeenAt))
			}
			f.tick(t, 1, rests)
		}
	}
}

// F-POS-03, F-TEL-01: an older report that needs a read is not newer than those that were acked unwritten.
func TestTelemetryApplier_ReadsMoveNoDroneBack(t *testing.T) {
	f := newForetelling(t, 1)
	for range 4 {
		f.tick(t, 1, rests)
	}
	late := rests("D1")
	late.Timestamp, late.Status, late.MissionID = f.now.Add(-1500*time.Millisecond), domain.DroneMoving, "M-UNKNOWN" // that may hold it by now
	wantReason(t, f.report(t, late), policy.ReasonStaleTelemetry)
	if d := f.drone(t, "D1"); d.Status != domain.DroneIdle {
		t.Errorf("a late report made it %+v", d)
	}
}

// F-POS-01, F-POS-03: when two processes get reports of a drone in turn, one notices at its next write,
// and then every report is written: what one of them says nothing new about, the other may have changed.
func TestTelemetryApplier_WritesAllOfADroneThatTwoProcessesServe(t *testing.T) {
	f := newForetelling(t, 1)
	appliers := []*firestoretx.TelemetryApplier{f.NewTelemetryApplier(), f.again().NewTelemetryApplier()}
	say := func(status domain.DroneStatus) func(domain.DroneID) domain.Telemetry {
		return func(id domain.DroneID) domain.Telemetry {
			r := rests(id)
			r.Status = status
			return r
		}
	}
	statuses := []domain.DroneStatus{domain.DroneProblem, domain.DroneCharging} // one that only flips between reports
	wrong := 0
	for second := range 60 {
		f.applier = appliers[second%2]
		f.tick(t, 1, say(statuses[second%2]))
		if d := f.drone(t, "D1"); d.ReportedStatus != statuses[second%2] {
			if wrong++; second > 16 {
				t.Fatalf("after %d s it says %s, and the document %s", second, statuses[second%2], d.ReportedStatus)
			}
		}
	}
	t.Logf("%d reports of 60 were missed until both processes had noticed", wrong)
	f.applier = appliers[0]
	for range 62 { // the other gets no more
		f.tick(t, 1, rests)
	}
	if cost := f.costs(func() {
		for range 16 {
			f.tick(t, 1, rests)
		}
	}); cost.Writes != 2 {
		t.Errorf("a minute later 16 s cost %+v, want 2 writes", cost)
	}
}

// F-POS-04: of 100 drones in one commit only those are read that another process has changed.
func TestTelemetryApplier_ReadsOnlyDronesThatMoved(t *testing.T) {
	const n = 100
	f := newForetelling(t, n)
	f.tick(t, n, rests)
	charge := 50.0
	say := func(id domain.DroneID) domain.Telemetry {
		r := rests(id)
		r.Battery = charge
		return r
	}
	for _, c := range []struct {
		changed   []domain.DroneID
		mostReads int64
	}{{nil, 0}, {[]domain.DroneID{"D17"}, 1}, {[]domain.DroneID{"D1", "D50", "D51", "D100"}, 4}} {
		for _, id := range c.changed {
			if err := f.GroundDrone(firestoretx.By(t.Context(), "ann"), id, "looks odd"); err != nil {
				t.Fatal(err)
			}
		}
		cost := f.costs(func() { f.tick(t, n, say) })
		if cost.Reads > c.mostReads || cost.RPCs > 1+32+4*int64(len(c.changed))*8 {
			t.Errorf("%v were changed: %+v, want at most %d reads", c.changed, cost, c.mostReads)
		}
		for i := range n {
			if d := f.drone(t, droneID(i)); d.Battery != charge {
				t.Errorf("%s has %g %%, want %g", d.ID, d.Battery, charge)
			}
		}
		for _, id := range c.changed {
			if !f.drone(t, id).Grounded {
				t.Errorf("%s is no longer grounded", id)
			}
			if err := f.ReleaseDrone(firestoretx.By(t.Context(), "ann"), id, "is well"); err != nil {
				t.Fatal(err)
			}
		}
		charge += 10
		f.tick(t, n, say) // caches those that were released
		charge += 10
	}
}

// F-POS-01: documents of an earlier version have no motion, and one beside this version moves a drone
// without it. Readers then see where it was, and its next report is written.
func TestTelemetryApplier_TakesDocumentsOfEarlierVersions(t *testing.T) {
	f := newForetelling(t, 1)
	north := func(id domain.DroneID) domain.Telemetry {
		r := rests(id)
		r.Status, r.Position = domain.DroneMoving, depot.Position.Moved(10*float64(f.now.Second()), 0)
		return r
	}
	f.tick(t, 1, rests)
	f.tick(t, 1, rests)
	f.tick(t, 1, north)
	if d := f.drone(t, "D1"); !d.Foretells() {
		t.Fatalf("it cannot be foretold: %+v", d)
	}
	f.pass(time.Second)
	moved := depot.Position.Moved(0, 700)
	update := func(path string, value any) firestore.Update { return firestore.Update{Path: path, Value: value} }
	by := func(updates ...firestore.Update) {
		if _, err := f.client.Doc("drones/D1").Update(t.Context(), updates); err != nil {
			t.Fatal(err)
		}
	}
	by(update("lastUpdate", f.now), update("seenAt", f.now), update("position", &latlng.LatLng{Latitude: moved.Lat, Longitude: moved.Lon}))
	if d := f.drone(t, "D1"); d.Foretells() || d.WhereaboutsAt(f.now.Add(5*time.Second)).Position != d.Position {
		t.Errorf("it is foretold by the motion of another report: %+v", d)
	}
	f.applier = f.again().NewTelemetryApplier()
	f.tick(t, 1, north)
	if d := f.drone(t, "D1"); !d.Foretells() || !d.LastUpdate.Equal(f.now) {
		t.Errorf("its next report was not written: %+v", d)
	}
	by(update("motion", firestore.Delete))
	if d := f.drone(t, "D1"); d.Foretells() {
		t.Errorf("a drone without motion is foretold: %+v", d)
	}
}
