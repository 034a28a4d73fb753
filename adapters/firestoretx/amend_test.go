package firestoretx_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// inFlight has D1 fly a mission with the orders, of which it has named revision 1.
func (f *fleet) inFlight(t *testing.T, orders ...domain.OrderID) domain.MissionID {
	t.Helper()
	f.mustReport(t, idle("D1", f.now))
	for _, id := range []domain.OrderID{"O1", "O2"} {
		f.mustOrder(t, id)
	}
	entry := f.assign(t, f.decision("DEC-1", "D1", orders...))
	if entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v", entry)
	}
	f.mustReport(t, f.names(entry.MissionID, 1, time.Second, 0))
	return entry.MissionID
}

// names is a report of D1 on a revision of its mission, measured some time from now.
func (f *fleet) names(id domain.MissionID, revision int, in time.Duration, completed int) domain.Telemetry {
	return domain.Telemetry{
		DroneID: "D1", Timestamp: f.now.Add(in), Position: domain.Position{Lat: 48.9, Lon: 2.5}, Battery: 80, SpeedKmh: 50, Status: domain.DroneMoving,
		MissionID: id, MissionRevision: revision, SupportsAmendments: true, CompletedStops: &completed,
	}
}

func (f *fleet) amendment(id domain.DecisionID, mission domain.MissionID, revision int, orders ...domain.OrderID) domain.Decision {
	d := f.decision(id, "D1", orders...)
	d.AmendsMissionID, d.AmendsRevision = mission, revision
	return d
}

// F-AMD-01 F-AMD-03: an added order is bound by the commit, and stays when the drone names
// the revision. The mission's document keeps everything about the amendment.
func TestStore_AmendsAMissionUnderWay(t *testing.T) {
	f := newFleet(t)
	f.noteOffers()
	id := f.inFlight(t, "O1")
	f.offered = nil
	d := f.amendment("DEC-2", id, 1, "O1", "O2")
	entry := f.assign(t, d)
	if entry.Outcome != domain.OutcomeApplied || entry.MissionID != id || entry.Revision != 2 || !slices.Equal(entry.AddedIDs, []domain.OrderID{"O2"}) {
		t.Fatalf("%+v", entry)
	}
	if stored, err := f.LedgerEntry(t.Context(), "DEC-2"); err != nil || stored.Revision != 2 || stored.AmendsMissionID != id || stored.AmendsRevision != 1 || !slices.Equal(stored.AddedIDs, entry.AddedIDs) {
		t.Errorf("ledger %+v, %v", stored, err)
	}
	m := f.mission(t, id)
	if m.RouteRevision != 1 || m.Amendment == nil || m.Amendment.Revision != 2 || m.Amendment.DecisionID != "DEC-2" || cmp.Diff(m.Amendment.Route, d.Route) != "" {
		t.Errorf("mission %+v, amendment %+v", m, m.Amendment)
	}
	if o := f.order(t, "O2"); o.Status != domain.OrderAssigned || o.AssignedMissionID != id {
		t.Errorf("order %+v", o)
	}
	if len(f.offered) != 1 || f.offered[0].Command().Mission.RouteRevision != 2 || len(f.offered[0].Command().Mission.Route) != 4 {
		t.Errorf("the outbox was given %+v", f.offered)
	}
	if again := f.assign(t, d); cmp.Diff(again, entry) != "" { // F-DEC-04
		t.Errorf("a redelivery came to %+v", again)
	}
	f.mustReport(t, f.names(id, 2, 2*time.Second, 0))
	if m := f.mission(t, id); m.RouteRevision != 2 || m.Amendment != nil || len(m.Route) != 4 || !slices.Equal(m.EarlierRoutes, []domain.EarlierRoute{{Revision: 1, Shared: 2}}) {
		t.Errorf("mission %+v", m)
	}
	f.mustReport(t, f.names(id, 2, 3*time.Second, 4))
	if m := f.mission(t, id); m.Status != domain.MissionCompleted || f.order(t, "O2").Status != domain.OrderDelivered {
		t.Errorf("mission %+v", m)
	}
}

// F-AMD-04: no drone gets a released order until its drone names the revision. A State Manager that
// cached the drone before the amendment judges its report by the stored documents.
func TestStore_TakesAnOrderAwayWhenTheDroneKnows(t *testing.T) {
	f := newFleet(t)
	id := f.inFlight(t, "O1", "O2")
	f.assign(t, f.amendment("DEC-2", id, 1, "O1"))
	if o := f.order(t, "O2"); o.Status != domain.OrderAssigned || !o.Releasing {
		t.Errorf("order %+v", o)
	}
	f.mustReport(t, idle("D2", f.now))
	if e := f.assign(t, f.decision("DEC-3", "D2", "O2")); e.Reason != string(policy.ReasonOrderNotPending) {
		t.Errorf("%+v", e)
	}
	// The applier knows of revision 1 alone, and must not judge by that: neither here nor
	// when the store fails.
	failing, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.applier.Apply(failing, []domain.Telemetry{f.names(id, 2, 2*time.Second, 0)})[0]; err == nil || errors.As(err, new(*policy.Rejection)) {
		t.Errorf("with the store failing the report came to %v", err)
	}
	f.mustReport(t, f.names(id, 2, 2*time.Second, 0))
	if o := f.order(t, "O2"); o.Status != domain.OrderPending || o.Releasing {
		t.Errorf("order %+v", o)
	}
	if e := f.assign(t, f.decision("DEC-4", "D2", "O2")); e.Outcome != domain.OutcomeApplied {
		t.Errorf("%+v", e)
	}
}

// F-AMD-01: many cycles amend one revision at once, and one of them wins.
func TestStore_OneOfManyAmendmentsWins(t *testing.T) {
	f := newFleet(t)
	id := f.inFlight(t, "O1")
	var wg sync.WaitGroup
	outcomes := make([]string, 6)
	for i := range outcomes {
		wg.Go(func() {
			d := f.amendment(domain.DecisionID("DEC-2"+string(rune('a'+i))), id, 1, "O1", "O2")
			e, err := f.AssignMission(t.Context(), d, policy.Delivery{})
			if err != nil {
				t.Error(err)
			}
			outcomes[i] = string(e.Outcome) + e.Reason
		})
	}
	wg.Wait()
	slices.Sort(outcomes)
	if outcomes[0] != "APPLIED" || outcomes[1] != "REJECTEDREVISION_CHANGED" {
		t.Errorf("outcomes %v", outcomes)
	}
}

// F-AMD-01: amending costs what assigning does; an order that is taken away costs an RPC.
func TestStore_AmendingCostsWhatAssigningDoes(t *testing.T) {
	clients := emutest.Clients(t)
	f := &fleet{client: clients.Firestore, now: time.Now().UTC()}
	f.noteOffers()
	emutest.IssueFences(t, f.client, "000000000000001", "")
	id := f.inFlight(t, "O1", "O2")
	cost := func(d domain.Decision) meter.Firestore {
		before := clients.Meter.FirestoreTotals()
		if e := f.assign(t, d); e.Outcome != domain.OutcomeApplied {
			t.Fatalf("%+v", e)
		}
		after := clients.Meter.FirestoreTotals()
		return meter.Firestore{RPCs: after.RPCs - before.RPCs, Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes}
	}
	if got := cost(f.amendment("DEC-2", id, 1, "O1")); got.RPCs != 4 {
		t.Errorf("taking away cost %+v", got)
	}
	f.mustReport(t, f.names(id, 2, 2*time.Second, 0))
	if got := cost(f.amendment("DEC-3", id, 2, "O1", "O2")); got.RPCs != 3 {
		t.Errorf("adding cost %+v", got)
	}
}
