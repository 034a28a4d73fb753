package firestoretx_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// far is a depot some 40 km from the first, in an area of its own.
var far = domain.Depot{ID: "A-FAR", Position: domain.Position{Lat: 48.86, Lon: 2.9}}

// areasOf says in how many areas each order is planned, read from all depots at one time.
func (f *fleet) areasOf(t *testing.T, depots ...domain.DepotID) map[domain.OrderID]int {
	t.Helper()
	seen, areas := map[domain.OrderID]int{}, map[domain.DepotID]bool{}
	for _, id := range depots {
		snap, err := f.Snapshot(t.Context(), firestoretx.SnapshotRequest{Depot: id, AreaRadius: 3, Limits: policy.Limits{MaxSilence: time.Hour}})
		_, malformed := errors.AsType[*firestoretx.MalformedError](err)
		if malformed || errors.Is(err, firestoretx.ErrNotFound) {
			continue // it has no cycles
		}
		if err != nil {
			t.Fatal(err)
		}
		if areas[snap.Depot.ID] {
			continue
		}
		areas[snap.Depot.ID] = true
		for _, o := range snap.Orders {
			seen[o.ID]++
		}
	}
	return seen
}

// F-ARE-04: whatever happens to the depots, every order that waits is planned by one area,
// at once and after the sweeper has found it a depot.
func TestStore_EveryOrderIsPlannedByOneArea(t *testing.T) {
	f := newFleet(t)
	all := []domain.DepotID{depot.ID, far.ID, "NEAR"}
	ids := []domain.OrderID{"EARLY", "OLD", "HERE", "THERE"}
	check := func(when string, adopted int, want map[domain.OrderID]domain.DepotID) {
		t.Helper()
		for _, swept := range []bool{false, true} {
			if swept {
				if result, err := f.Sweep(t.Context(), nil); err != nil || result.OrdersAdopted != adopted {
					t.Errorf("%s: the sweeper adopts %d orders, %v; want %d", when, result.OrdersAdopted, err, adopted)
				}
			}
			seen := f.areasOf(t, all...)
			for id := range want {
				if seen[id] != 1 {
					t.Errorf("%s, swept %t: order %s is planned by %d areas", when, swept, id, seen[id])
				}
			}
		}
		for id, depot := range want {
			if got := f.order(t, id).PlanningDepotID; got != depot {
				t.Errorf("%s: order %s is planned by %q, want %q", when, id, got, depot)
			}
		}
	}
	f.remove(t, depot.ID)
	if err := f.Setup(t.Context(), nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	f.Store = firestoretx.New(f.client, firestoretx.Config{PlanUnregistered: true, Now: func() time.Time { return f.now }})
	f.mustOrder(t, "EARLY") // before any depot exists
	f.mustOrder(t, "OLD")
	// As an earlier version and another tool leave it.
	if _, err := f.client.Doc("orders/OLD").Update(t.Context(), []firestore.Update{{Path: "planningDepotId", Value: firestore.Delete}, {Path: "planningSince", Value: firestore.Delete}}); err != nil {
		t.Fatal(err)
	}
	if err := f.Setup(t.Context(), []domain.Depot{depot, far}, nil, nil); err != nil {
		t.Fatal(err)
	}
	f.mustOrder(t, "HERE")
	there := domain.OrderRequest{ID: "THERE", OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: far.Position}}
	if err := f.IngestOrder(t.Context(), there, f.now); err != nil {
		t.Fatal(err)
	}
	check("depots were added", 2, map[domain.OrderID]domain.DepotID{"EARLY": depot.ID, "OLD": depot.ID, "HERE": depot.ID, "THERE": far.ID})
	if err := f.Setup(t.Context(), []domain.Depot{{ID: "NEAR", Position: depot.Position}}, nil, nil); err != nil { // the areas are others
		t.Fatal(err)
	}
	check("areas were regrouped", 0, map[domain.OrderID]domain.DepotID{"EARLY": depot.ID, "HERE": depot.ID, "THERE": far.ID})
	f.remove(t, depot.ID)
	check("a depot was deleted", 3, map[domain.OrderID]domain.DepotID{"EARLY": "NEAR", "OLD": "NEAR", "HERE": "NEAR", "THERE": far.ID})
	if _, err := f.client.Doc("depots/NEAR").Update(t.Context(), []firestore.Update{{Path: "position", Value: "nowhere"}}); err != nil {
		t.Fatal(err)
	}
	check("a depot is malformed", 3, map[domain.OrderID]domain.DepotID{"EARLY": far.ID, "THERE": far.ID})
	for _, id := range ids {
		o := f.order(t, id)
		events, err := f.EventsOf(t.Context(), "orderId", string(id))
		if err != nil || len(events.Items) == 0 {
			t.Fatal(events, err)
		}
		if last := events.Items[len(events.Items)-1]; last.Revision != o.Revision || last.State["planningDepotId"] != string(o.PlanningDepotID) { // F-DOC-01
			t.Errorf("order %s is at revision %d, planned by %s; its last event says %d, %v", id, o.Revision, o.PlanningDepotID, last.Revision, last.State["planningDepotId"])
		}
	}
}

func (f *fleet) remove(t *testing.T, id domain.DepotID) {
	t.Helper()
	if _, err := f.client.Doc("depots/" + string(id)).Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// handOvers are those of a cycle of the first depot.
func handOvers(fence string, orders ...domain.OrderID) domain.HandOvers {
	h := domain.HandOvers{CycleID: "C1", DepotID: depot.ID, Fence: fence}
	for _, id := range orders {
		h.List = append(h.List, domain.HandOver{OrderID: id, From: depot.ID, To: far.ID, Reason: "no_drone_free"})
	}
	return h
}

// F-ARE-05: a hand-over passes with the fence of the lock's holder only, each order for
// itself; repeated it changes nothing. Its fence counts for what comes after.
func TestStore_HandsOrdersOver(t *testing.T) {
	c := newCycles(t)
	if err := c.Setup(t.Context(), []domain.Depot{depot, far}, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range []domain.OrderID{"O-A", "O-B", "O-C"} {
		c.mustOrder(t, id)
	}
	refused := func(h domain.HandOvers, want policy.Reason) {
		t.Helper()
		_, err := c.HandOver(t.Context(), h)
		wantReason(t, err, want)
		if o := c.order(t, "O-A"); o.PlanningDepotID != depot.ID || o.Revision != 1 {
			t.Fatalf("after %s: %+v", want, o)
		}
	}
	first := c.begin(t, depot.ID)
	refused(handOvers("", "O-A"), policy.ReasonFenceMissing)
	refused(handOvers("000000000000077", "O-A"), policy.ReasonFenceUnknown)
	second := c.begin(t, depot.ID)
	one := handOvers(second, "O-A", "O-B", "NONE")
	one.List[1].To = "NOWHERE"
	refusals, err := c.HandOver(t.Context(), one)
	if err != nil || len(refusals) != 3 || refusals[0] != nil {
		t.Fatal(refusals, err)
	}
	wantReason(t, refusals[1], policy.ReasonDepotUnknown)
	wantReason(t, refusals[2], policy.ReasonNotFound)
	if o := c.order(t, "O-A"); o.PlanningDepotID != far.ID || !slices.Equal(o.HandedOverBy, []domain.DepotID{depot.ID}) || o.Revision != 2 {
		t.Errorf("handed over: %+v", o)
	}
	if o := c.order(t, "O-B"); o.PlanningDepotID != depot.ID || o.Revision != 1 {
		t.Errorf("to no depot: %+v", o)
	}
	// The depots are regrouped: one with a lower id joins the area, and names it.
	if err := c.Setup(t.Context(), []domain.Depot{{ID: "A-NEAR", Position: depot.Position}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	late := handOvers(second, "O-B")
	late.AreaRadius = 3
	if refusals, err = c.HandOver(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	wantReason(t, refusals[0], policy.ReasonPlannedElsewhere)
	late.DepotID, late.Fence = far.ID, c.begin(t, far.ID) // another area's cycle
	if refusals, err = c.HandOver(t.Context(), late); err != nil {
		t.Fatal(err)
	}
	wantReason(t, refusals[0], policy.ReasonPlannedElsewhere)
	if o := c.order(t, "O-B"); o.PlanningDepotID != depot.ID || o.Revision != 1 {
		t.Errorf("handed over by another area: %+v", o)
	}
	refusals, err = c.HandOver(t.Context(), handOvers(second, "O-A"))
	if err != nil {
		t.Fatal(err)
	}
	wantReason(t, refusals[0], policy.ReasonPlannedElsewhere)
	if o := c.order(t, "O-A"); o.Revision != 2 {
		t.Errorf("handed over again: %+v", o)
	}
	_, err = c.HandOver(t.Context(), handOvers(first, "O-C"))
	wantReason(t, err, policy.ReasonStaleFence)
	c.expect(t, c.next(t, depot.ID, first), policy.ReasonStaleFence)
	c.expect(t, c.next(t, depot.ID, second), "")
}

// F-ARE-05: of many hand-overs of one order and decisions about it, made at the same time,
// one hand-over and one decision win at most, and the events fold to the order.
func TestStore_HandOverRacesWithDecisions(t *testing.T) {
	t.Parallel()
	c := newCycles(t)
	var depots []domain.Depot
	for i := range 4 {
		depots = append(depots, domain.Depot{ID: domain.DepotID(fmt.Sprint("TO-", i)), Position: far.Position})
	}
	if err := c.Setup(t.Context(), append(depots, depot), nil, nil); err != nil {
		t.Fatal(err)
	}
	fence := c.begin(t, depot.ID)
	for round := range 4 {
		c.now = time.Now().UTC().Truncate(time.Microsecond) // on a busy server a round takes seconds, and old reports show no idle drone
		d := c.next(t, depot.ID, fence)
		id := d.OrderIDs[0]
		var writers sync.WaitGroup
		passed := make([]bool, len(depots))
		for i, to := range depots {
			writers.Go(func() {
				h := handOvers(fence, id)
				h.List[0].To = to.ID
				refusals, err := c.HandOver(t.Context(), h)
				if err != nil {
					t.Error(err)
					return
				}
				passed[i] = refusals[0] == nil
			})
		}
		var entry domain.LedgerEntry
		writers.Go(func() {
			var err error
			if entry, err = c.AssignMission(t.Context(), d, policy.Delivery{MessageID: "m"}); err != nil {
				t.Error(err)
			}
		})
		writers.Wait()
		won := 0
		for _, ok := range passed {
			if ok {
				won++
			}
		}
		o := c.order(t, id)
		if won > 1 || len(o.HandedOverBy) != won || entry.Outcome != domain.OutcomeApplied || o.Status != domain.OrderAssigned || o.Revision != int64(2+won) {
			t.Errorf("round %d: %d hand-overs passed, the decision is %s %s: %+v", round, won, entry.Outcome, entry.Reason, o)
		}
		events, err := c.EventsOf(t.Context(), "orderId", string(id))
		if err != nil {
			t.Fatal(err)
		}
		revisions := map[int64]domain.Event{}
		for _, e := range events.Items {
			if e.Entity == domain.EntityOrder {
				revisions[e.Revision] = e
			}
		}
		if last := revisions[o.Revision]; len(revisions) != int(o.Revision) || last.State["planningDepotId"] != string(o.PlanningDepotID) { // F-DOC-01
			t.Errorf("round %d: events %+v do not fold to %+v", round, revisions, o)
		}
	}
}
