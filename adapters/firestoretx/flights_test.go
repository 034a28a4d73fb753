package firestoretx_test

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// wanted asks for idle drones and those in flight.
var wanted = firestoretx.SnapshotRequest{Depot: depot.ID, Flights: true}

func (f *fleet) snapshot(t *testing.T, req firestoretx.SnapshotRequest) domain.Snapshot {
	t.Helper()
	snap, err := f.Snapshot(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// F-AMD-01: a snapshot has the drones in flight that can be amended, with what they have
// left to do, but not while an amendment waits for the drone.
func TestStore_SnapshotHasDronesInFlight(t *testing.T) {
	f := newFleet(t)
	id := f.inFlight(t, "O1")
	f.mustReport(t, f.names(id, 1, 2*time.Second, 1)) // picked up
	f.mustReport(t, idle("D2", f.now))

	snap := f.snapshot(t, wanted)
	if len(snap.Drones) != 1 || snap.Drones[0].ID != "D2" || len(snap.Flights) != 1 {
		t.Fatalf("%d idle, in flight %+v", len(snap.Drones), snap.Flights)
	}
	flight := snap.Flights[0]
	if flight.Drone.ID != "D1" || flight.Mission.ID != id || flight.Mission.ReachedStops != 1 || flight.Mission.RouteRevision != 1 ||
		len(flight.Orders) != 1 || flight.Orders[0].ID != "O1" || flight.Orders[0].Status != domain.OrderInDelivery || !flight.ReachedAt.Equal(f.now.Add(2*time.Second).Truncate(time.Microsecond)) {
		t.Errorf("%+v", flight)
	}
	if len(snap.Orders) != 1 || snap.Orders[0].ID != "O2" {
		t.Errorf("waiting %+v", snap.Orders)
	}
	idleOnly := wanted
	idleOnly.Flights = false
	if snap := f.snapshot(t, idleOnly); len(snap.Drones) != 1 || len(snap.Flights) > 0 {
		t.Errorf("without flights: %+v", snap)
	}
	f.assign(t, f.amendment("DEC-2", id, 1, "O1", "O2"))
	if snap := f.snapshot(t, wanted); len(snap.Flights) > 0 {
		t.Errorf("while an amendment waits: %+v", snap.Flights)
	}
}

// F-DEC-02: a snapshot has the drones on their way home, until they have landed.
func TestStore_SnapshotHasDronesOnTheirWayHome(t *testing.T) {
	f := newFleet(t)
	id := f.inFlight(t, "O1")
	f.mustReport(t, f.names(id, 1, 2*time.Second, 2)) // put down
	snap := f.snapshot(t, wanted)
	if len(snap.Flights) != 1 || snap.Flights[0].Mission.Status != domain.MissionCompleted || len(snap.Flights[0].Orders) > 0 {
		t.Fatalf("in flight %+v", snap.Flights)
	}
	f.mustReport(t, idle("D1", f.now.Add(4*time.Second)))
	if snap := f.snapshot(t, wanted); len(snap.Flights) > 0 || len(snap.Drones) != 1 {
		t.Errorf("after landing: %+v", snap)
	}
}

// Drones in flight cost two RPCs, and a read for each drone, mission and order.
func TestStore_SnapshotCostsTwoRPCsForFlights(t *testing.T) {
	clients := emutest.Clients(t)
	f := &fleet{client: clients.Firestore, now: time.Now().UTC()}
	f.noteOffers()
	emutest.IssueFences(t, f.client, "000000000000001", "")
	if err := f.Setup(t.Context(), []domain.Depot{depot}, nil, nil); err != nil {
		t.Fatal(err)
	}
	f.inFlight(t, "O1", "O2")
	cost := func(req firestoretx.SnapshotRequest) meter.Firestore {
		before := clients.Meter.FirestoreTotals()
		f.snapshot(t, req)
		after := clients.Meter.FirestoreTotals()
		return meter.Firestore{RPCs: after.RPCs - before.RPCs, Reads: after.Reads - before.Reads}
	}
	idleOnly := wanted
	idleOnly.Flights = false
	without, with := cost(idleOnly), cost(wanted)
	if without.RPCs != 6 || with.RPCs != 8 || with.Reads-without.Reads > 4 {
		t.Errorf("cost %+v, without flights %+v", with, without)
	}
}
