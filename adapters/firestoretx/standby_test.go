package firestoretx_test

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// standsBy has D1, at the depot, on a mission without orders: to charge, and then to wait.
func (f *fleet) standsBy(t *testing.T) domain.Mission {
	t.Helper()
	r := idle("D1", f.now)
	r.Position, r.SupportsAmendments, r.SupportsStandby = depot.Position, true, true
	f.mustReport(t, r)
	f.mustOrder(t, "O1")
	entry := f.assign(t, f.standby("DEC-1"))
	if entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v", entry)
	}
	f.mustReport(t, f.waits(entry.MissionID, 1, time.Second, 0))
	return f.mission(t, entry.MissionID)
}

func (f *fleet) standby(id domain.DecisionID) domain.Decision {
	d := f.decision(id, "D1")
	d.OrderIDs = nil
	d.Route = []domain.Waypoint{
		{Type: domain.WaypointCharge, Position: depot.Position, ChargeToPercent: 95},
		{Type: domain.WaypointWait, Position: depot.Position, WaitUntil: f.now.Add(time.Hour).Truncate(time.Microsecond)},
	}
	return d
}

func (f *fleet) waits(id domain.MissionID, revision int, in time.Duration, completed int) domain.Telemetry {
	r := f.names(id, revision, in, completed)
	r.Position, r.Status, r.SupportsStandby = depot.Position, domain.DroneCharging, true
	return r
}

// F-AMD-06: a mission without orders is kept whole in its document, is in the snapshot as a
// flight without orders, and gives way to one.
func TestStore_StandbyGivesWayToAnOrder(t *testing.T) {
	f := newFleet(t)
	m := f.standsBy(t)
	if diff := cmp.Diff(m.Route, f.standby("").Route); diff != "" || len(m.OrderIDs) > 0 || m.Status != domain.MissionActive {
		t.Errorf("%+v: %s", m, diff)
	}
	snap := f.snapshot(t, wanted)
	if len(snap.Flights) != 1 || len(snap.Flights[0].Orders) > 0 || !snap.Flights[0].Mission.Standby() || !snap.Flights[0].Drone.SupportsStandby {
		t.Fatalf("in flight %+v", snap.Flights)
	}
	f.mustReport(t, f.waits(m.ID, 1, 2*time.Second, 1))
	if entry := f.assign(t, f.amendment("DEC-2", m.ID, 1, "O1")); entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v", entry)
	}
	f.mustReport(t, f.names(m.ID, 2, 3*time.Second, 0))
	f.mustReport(t, f.names(m.ID, 2, 4*time.Second, 2))
	if o := f.order(t, "O1"); o.Status != domain.OrderDelivered || f.mission(t, m.ID).Status != domain.MissionCompleted {
		t.Errorf("%+v of %+v", o, f.mission(t, m.ID))
	}
}

// F-AMD-06: what cannot be flown is rejected, recorded, and changes nothing.
func TestStore_RejectsStandbyOfNoUse(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	d := f.standby("DEC-1")
	if entry := f.assign(t, d); entry.Reason != string(policy.ReasonStandbyUnsupported) {
		t.Errorf("%+v", entry)
	}
	r := idle("D1", f.now.Add(time.Second))
	r.SupportsAmendments, r.SupportsStandby = true, true
	f.mustReport(t, r)
	d = f.standby("DEC-2")
	d.Route[0].Position.Lat++
	if entry := f.assign(t, d); entry.Reason != string(policy.ReasonLowBattery) && entry.Reason != string(policy.ReasonBadCharge) {
		t.Errorf("%+v", entry)
	}
	if drone := f.drone(t, "D1"); drone.Bound() || drone.Status != domain.DroneIdle {
		t.Errorf("%+v", drone)
	}
}

// F-AMD-06, I1: of many decisions about a drone on standby, with orders and without, amending
// and not, one is applied.
func TestStore_OneOfManyDecisionsEndsStandby(t *testing.T) {
	f := newFleet(t)
	m := f.standsBy(t)
	var wg sync.WaitGroup
	outcomes := make([]domain.LedgerEntry, 9)
	for i := range outcomes {
		id := domain.DecisionID(fmt.Sprintf("RACE-%d", i))
		d := f.amendment(id, m.ID, 1, "O1")
		switch i % 3 {
		case 1:
			d = f.decision(id, "D1", "O1")
		case 2:
			d = f.standby(id)
			d.AmendsMissionID, d.AmendsRevision = m.ID, 1
		}
		wg.Go(func() { outcomes[i] = f.assign(t, d) })
	}
	wg.Wait()
	applied := 0
	for _, e := range outcomes {
		if e.Outcome == domain.OutcomeApplied {
			applied++
		}
	}
	if o, drone := f.order(t, "O1"), f.drone(t, "D1"); applied != 1 || drone.CurrentMissionID != m.ID || o.AssignedMissionID != "" && o.AssignedMissionID != m.ID {
		t.Errorf("%d were applied: %+v, %+v", applied, o, drone)
	}
}

// F-CHG-01: a snapshot has the drones in slots where their number is limited.
func TestStore_SnapshotHasChargingDrones(t *testing.T) {
	f := newFleet(t)
	f.mustReport(t, idle("D1", f.now))
	r := idle("D1", f.now.Add(time.Second))
	r.Status, r.Battery = domain.DroneCharging, 15
	f.mustReport(t, r)
	if snap := f.snapshot(t, wanted); len(snap.Charging) != 0 {
		t.Errorf("without a limit: %+v", snap.Charging)
	}
	limited := depot
	limited.ChargingSlots = 2
	if err := f.Setup(t.Context(), []domain.Depot{limited}, nil, nil); err != nil {
		t.Fatal(err)
	}
	snap := f.snapshot(t, wanted)
	if len(snap.Charging) != 1 || snap.Charging[0].ID != "D1" || snap.Depot.ChargingSlots != 2 || len(snap.Drones) > 0 {
		t.Errorf("%+v", snap)
	}
}

// F-CHG-01: a depot's document with an impossible number of slots is named as malformed; 0, as
// earlier versions wrote it, means no limit. A drone's charge rate of 0 or less means unknown.
func TestStore_ReadsSlotsAndChargeRates(t *testing.T) {
	f := newFleet(t)
	write := func(path string, data map[string]any) {
		t.Helper()
		if _, err := f.client.Doc(path).Set(t.Context(), data, firestore.MergeAll); err != nil {
			t.Fatal(err)
		}
	}
	for stored, want := range map[any]int{int64(0): 0, int64(4): 4, 4.0: 4} {
		write("depots/DEPOT-1", map[string]any{"chargingSlots": stored})
		if snap := f.snapshot(t, wanted); snap.Depot.ChargingSlots != want {
			t.Errorf("%v: %d slots", stored, snap.Depot.ChargingSlots)
		}
	}
	for _, stored := range []any{int64(-1), 1.5, math.NaN(), "many"} {
		write("depots/DEPOT-1", map[string]any{"chargingSlots": stored})
		if _, err := f.Snapshot(t.Context(), wanted); err == nil || !strings.Contains(err.Error(), "depots/DEPOT-1: field chargingSlots ") {
			t.Errorf("%v: error %v", stored, err)
		}
	}
	for stored, want := range map[any]float64{12.5: 12.5, int64(0): 10, -3.0: 10, math.Inf(1): 10} {
		write("drones/D1", map[string]any{"chargeRate": stored})
		if d := f.drone(t, "D1"); d.ChargePerMinute() != want {
			t.Errorf("%v: %v %% a minute", stored, d.ChargePerMinute())
		}
	}
}
