package firestoretx_test

import (
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/firestore"
	"google.golang.org/genproto/googleapis/type/latlng"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
)

func (v *visiting) stocks(id domain.WarehouseID, at domain.Position) error {
	_, err := v.ApplyWarehouse(v.t.Context(), domain.Warehouse{ID: id, Position: at, ProductTypes: []string{"BLOOD"}}, closing)
	return err
}

func northOf(p domain.Position, degrees float64) domain.Position {
	p.Lat += degrees
	return p
}

// F-STP-05: a warehouse that a mission still flies to cannot be moved. When another is moved,
// decisions from older snapshots expire. A correction within the tolerance is not a move.
func TestStore_MovesNoWarehouseThatAMissionFliesTo(t *testing.T) {
	v := newVisiting(t)
	v.must(v.stocks("W1", depot.Position))
	early, flown := v.decide("W1"), v.decide("W1")
	v.must(v.stocks("W1", northOf(depot.Position, 0.00008))) // 9 m
	if entry := v.assign(flown); entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("after a correction: %+v", entry)
	}
	moved := northOf(depot.Position, 0.01)
	err := v.stocks("W1", moved)
	if reason, _ := policy.ReasonOf(err); reason != policy.ReasonInUse || !strings.Contains(err.Error(), "drone "+string(flown.DroneID)) {
		t.Errorf("while a mission flies there: %v", err)
	}
	_, err = v.ApplyWarehouse(t.Context(), domain.Warehouse{ID: "W1", Position: moved}, firestoretx.Change{By: "ann", Why: "moved", DryRun: true})
	if reason, _ := policy.ReasonOf(err); reason != policy.ReasonInUse {
		t.Errorf("a dry run: %v", err)
	}
	v.must(v.CancelOrder(firestoretx.By(t.Context(), "ann"), flown.OrderIDs[0], "obsolete"))
	v.must(v.stocks("W1", moved))
	if entry := v.assign(early); entry.Reason != string(policy.ReasonDecisionExpired) || !strings.Contains(entry.Detail, "warehouse W1 was moved or deleted") {
		t.Errorf("a decision from before the move: %+v", entry)
	}
	late := v.decide("W1")
	if entry := v.assign(late); entry.Reason != string(policy.ReasonStopMisplaced) {
		t.Errorf("a decision to the old place: %+v", entry)
	}
	late = v.decide("W1")
	late.Route[0].Position = moved
	if entry := v.assign(late); entry.Outcome != domain.OutcomeApplied {
		t.Errorf("a decision to the new place: %+v", entry)
	}
}

// A malformed warehouse is repaired while missions fly there, and decisions from older
// snapshots expire.
func TestStore_RepairsAWarehouseThatMissionsFlyTo(t *testing.T) {
	v := newVisiting(t)
	v.must(v.stocks("W1", depot.Position))
	early := v.decide("W1")
	if entry := v.assign(v.decide("W1")); entry.Outcome != domain.OutcomeApplied {
		t.Fatal(entry)
	}
	_, err := v.client.Doc("warehouses/W1").Update(t.Context(), []firestore.Update{{Path: "position", Value: "Paris"}})
	v.must(err)
	v.must(v.stocks("W1", depot.Position))
	if entry := v.assign(early); entry.Reason != string(policy.ReasonDecisionExpired) {
		t.Errorf("a decision from before the repair: %+v", entry)
	}
	if entry := v.assign(v.decide("W1")); entry.Outcome != domain.OutcomeApplied {
		t.Errorf("a decision after the repair: %+v", entry)
	}
}

// F-STP-05: whatever decisions are applied while a warehouse moves, no active mission flies
// to where it was.
func TestStore_MovesRaceWithDecisions(t *testing.T) {
	t.Parallel()
	v := newVisiting(t)
	v.must(v.stocks("W1", depot.Position))
	at := depot.Position
	applied, moves := 0, 0
	for range 8 {
		decisions := []domain.Decision{v.decide("W1"), v.decide("W1")}
		entries := make([]domain.LedgerEntry, len(decisions))
		next := northOf(at, 0.01)
		var moved error
		var all sync.WaitGroup
		for i := range decisions {
			decisions[i].Route[0].Position = at
			all.Go(func() { entries[i] = v.assign(decisions[i]) })
		}
		all.Go(func() { moved = v.stocks("W1", next) })
		all.Wait()
		won := 0
		for i, e := range entries {
			if e.Outcome == domain.OutcomeApplied {
				won++
				v.must(v.CancelOrder(firestoretx.By(t.Context(), "ann"), decisions[i].OrderIDs[0], "done"))
			}
		}
		reason, refused := policy.ReasonOf(moved)
		switch {
		case moved == nil && won > 0, refused && (reason != policy.ReasonInUse || won == 0), moved != nil && !refused:
			t.Errorf("%d decisions applied, the move: %v; %+v", won, moved, entries)
		case moved == nil:
			moves, at = moves+1, next
		}
		applied += won
	}
	t.Logf("%d decisions applied, %d of 8 moves", applied, moves)
}

// F-STP-11: missions that an earlier version made with misplaced stops are named.
func TestStore_NamesMisplacedStopsOfMissions(t *testing.T) {
	v := newVisiting(t)
	v.must(v.stocks("W1", depot.Position))
	sound, off := v.assign(v.decide("W1")), v.assign(v.decide("W1"))
	snap, err := v.client.Doc("missions/" + string(off.MissionID)).Get(t.Context())
	v.must(err)
	route := snap.Data()["route"].([]any)
	route[1].(map[string]any)["position"] = &latlng.LatLng{Latitude: 48.9, Longitude: 2.36}
	_, err = snap.Ref.Update(t.Context(), []firestore.Update{{Path: "route", Value: route}})
	v.must(err)
	faults, err := v.MisplacedStops(t.Context())
	if err != nil || len(faults) != 1 || !strings.HasPrefix(faults[off.MissionID], "stop 1: HOSPITAL_DELIVERY is at 48.900000,2.360000") {
		t.Errorf("%v, %v; mission %s is sound", faults, err, sound.MissionID)
	}
}

// F-STP-04: a decision is compared with warehouses for a read each, and with depots for
// none while they are known.
func TestStore_ComparesStopsWithoutAnRPC(t *testing.T) {
	c := newCycles(t)
	if err := c.Setup(t.Context(), []domain.Depot{depot}, []domain.Warehouse{{ID: "W1", Position: collected, ProductTypes: []string{"BLOOD"}}}, nil); err != nil {
		t.Fatal(err)
	}
	fence := c.begin(t, depot.ID)
	cost := func(home domain.Position, want policy.Reason) meter.Firestore {
		t.Helper()
		d := c.next(t, depot.ID, fence)
		d.Route[0].WarehouseID = "W1"
		d.Route = append(d.Route, domain.Waypoint{Type: domain.WaypointDepotReturn, Position: home})
		before := c.clients.Meter.FirestoreTotals()
		c.expect(t, d, want)
		after := c.clients.Meter.FirestoreTotals()
		return meter.Firestore{RPCs: after.RPCs - before.RPCs, Reads: after.Reads - before.Reads, Writes: after.Writes - before.Writes}
	}
	cost(depot.Position, "") // the first of the cycle, which reads the depots
	if got, want := cost(depot.Position, ""), (meter.Firestore{RPCs: 3, Reads: 5, Writes: 7}); got != want {
		t.Errorf("a sound decision cost %+v, want %+v", got, want)
	}
	if got := cost(northOf(depot.Position, 0.01), policy.ReasonStopMisplaced); got.RPCs != 4 || got.Writes != 1 { // F-STP-08
		t.Errorf("a return to no depot cost %+v, want 4 RPCs", got)
	}
}
