package firestoretx_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
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

// meteredFleet is a fleet with a depot whose calls are counted.
func meteredFleet(t *testing.T) (*fleet, *connect.Clients) {
	t.Helper()
	clients := emutest.Clients(t)
	f := &fleet{client: clients.Firestore, now: time.Now().UTC()}
	f.noteOffers()
	emutest.IssueFences(t, f.client, "000000000000001", "")
	if err := f.Setup(t.Context(), []domain.Depot{depot}, nil, nil); err != nil {
		t.Fatal(err)
	}
	return f, clients
}

// Drones in flight cost two RPCs, and a read for each drone, mission and order.
func TestStore_SnapshotCostsTwoRPCsForFlights(t *testing.T) {
	f, clients := meteredFleet(t)
	f.inFlight(t, "O1", "O2")
	cost := func(req firestoretx.SnapshotRequest) meter.Firestore {
		return spent(clients.Meter.FirestoreTotals, func() { f.snapshot(t, req) })
	}
	idleOnly := wanted
	idleOnly.Flights = false
	without, with := cost(idleOnly), cost(wanted)
	if without.RPCs != 6 || with.RPCs != 8 || with.Reads-without.Reads > 4 {
		t.Errorf("cost %+v, without flights %+v", with, without)
	}
}

// F-CYC-01: whatever happens to a mission in flight and to its orders, with and without the drone, what a
// cycle remembers is what it would read at the same time.
func TestStore_RemembersFlightsAsTheyAre(t *testing.T) {
	f := newFleet(t)
	f.noteOffers()
	random := rand.New(rand.NewPCG(3, 4))
	ann := firestoretx.By(t.Context(), "ann")
	req := wanted
	req.Known = &firestoretx.FlightCache{}
	req.Limits.MaxSilence = time.Hour
	var mission domain.MissionID
	n, revision, completed, flown := 0, 1, 0, 0
	order := func() domain.OrderID { return domain.OrderID(fmt.Sprint("O", max(1, n-random.IntN(3)))) }
	done := map[string]int{}
	for range 150 {
		f.now = time.Now().UTC().Truncate(time.Microsecond)
		what, err := "", error(nil)
		switch random.IntN(12) {
		case 0:
			what = "begin"
			n += 2
			f.mustReport(t, idle("D1", f.now))
			for _, id := range []int{n - 1, n} {
				f.mustOrder(t, domain.OrderID(fmt.Sprint("O", id)))
			}
			entry := f.assign(t, f.decision(domain.DecisionID(fmt.Sprint("D", n)), "D1", domain.OrderID(fmt.Sprint("O", n-1))))
			if entry.Outcome == domain.OutcomeApplied {
				mission, revision, completed = entry.MissionID, 1, 0
				done["begun"]++
			}
		case 1, 2:
			what = "report"
			err = f.report(t, f.names(mission, revision, 0, completed))
		case 3:
			what = "reach"
			completed++
			err = f.report(t, f.names(mission, revision, 0, completed))
		case 4:
			what = "amend"
			last := domain.OrderID(fmt.Sprint("O", n))
			if entry := f.assign(t, f.amendment(domain.DecisionID(fmt.Sprint("A", f.now.UnixNano())), mission, revision, domain.OrderID(fmt.Sprint("O", n-1)), last)); entry.Outcome == domain.OutcomeApplied {
				revision = entry.Revision
				done["amended"]++
			}
		case 5:
			what = "priority"
			p := domain.Priorities[random.IntN(len(domain.Priorities))]
			err = f.ChangeOrder(ann, order(), domain.OrderChange{Priority: &p}, "why")
		case 6:
			what = "deadline"
			at := f.now.Add(time.Duration(random.IntN(100)) * time.Millisecond)
			err = f.ChangeOrder(ann, order(), domain.OrderChange{Deadline: &at}, "why")
		case 7:
			what = "sweep"
			_, err = f.Sweep(t.Context(), nil)
		case 8:
			what = "pin"
			err = f.PinOrder(ann, policy.Pin{Order: order(), Drone: "D1", Why: "why"})
		case 9:
			what = "cancel"
			err = f.CancelOrder(ann, order(), "why")
		case 10:
			what = "sent"
			err = f.MarkCommandsPublished(t.Context(), f.offered)
			f.offered = nil
		case 11:
			if random.IntN(4) == 0 && mission != "" {
				what = "recall"
				err = f.RecallMission(ann, mission, "why")
			}
		}
		if _, refused := policy.ReasonOf(err); err != nil && !refused {
			t.Fatalf("%s: %v", what, err)
		}
		if err == nil {
			done[what]++
		}
		diff, err := differentFlights(t.Context(), f.Store, req)
		if err != nil || diff != "" {
			t.Fatalf("after %s: remembered, and read: %s, %v", what, diff, err)
		}
		flown += len(f.snapshot(t, req).Flights)
	}
	for _, what := range []string{"begun", "report", "reach", "amended", "priority", "deadline", "pin", "cancel", "sent"} {
		if done[what] == 0 {
			t.Errorf("no %s was done: %v", what, done)
		}
	}
	if flown < 20 {
		t.Errorf("only %d flights were compared", flown)
	}
}

// F-CYC-01: a cycle reads a mission in flight and its orders once for each of their changes. The
// comparison of the test above notices an order that is changed without its drone.
func TestStore_ReadsFlightsOnceForEachChange(t *testing.T) {
	f, clients := meteredFleet(t)
	mission := f.inFlight(t, "O1")
	req := wanted
	req.Known = &firestoretx.FlightCache{}
	req.Limits.MaxSilence = time.Hour
	cost := func() meter.Firestore {
		return spent(clients.Meter.FirestoreTotals, func() {
			if snap := f.snapshot(t, req); len(snap.Flights) != 1 || len(snap.Flights[0].Orders) != 1 {
				t.Fatalf("flights %+v", snap.Flights)
			}
		})
	}
	first, second := cost(), cost()
	f.mustReport(t, f.names(mission, 1, 2*time.Second, 0)) // a position
	third := cost()
	f.mustReport(t, f.names(mission, 1, 4*time.Second, 1)) // picked up
	fourth := cost()
	if second.RPCs != first.RPCs-2 || second.Reads != first.Reads-2 || third != second || fourth != first {
		t.Errorf("cost %+v, then %+v, after a position %+v, after a stop %+v", first, second, third, fourth)
	}
	if _, err := f.client.Doc("orders/O1").Update(t.Context(), []firestore.Update{{Path: "priority", Value: "CRITICAL"}}); err != nil {
		t.Fatal(err)
	}
	if diff, err := differentFlights(t.Context(), f.Store, req); err != nil || diff == "" {
		t.Errorf("the comparison does not notice an order that was changed by hand, %v", err)
	}
}
