package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-OPT-04, F-ORD-05: a cycle's record has the orders that were left, the most
// urgent first, with their reasons and what kept drones from them.
func TestListUnserved_ListsUrgentOrdersFirst(t *testing.T) {
	var c domain.Cycle
	left := cyclePlan{
		problem:   solver.Problem{Orders: []solver.Order{{ID: "O-1"}, {ID: "O-2", Priority: solver.Critical}}},
		unserved:  []solver.Unserved{{OrderID: "O-1", Reason: solver.NoDroneFree, Detail: "all are away"}, {OrderID: "O-2", Index: 1, Reason: solver.OutOfRange}},
		obstacles: []domain.Obstacles{{Busy: 4}, {Free: 3, Range: 3}},
	}
	listUnserved(&c, unservedOrders(left))
	want := []domain.UnservedOrder{
		{OrderID: "O-2", Reason: string(solver.OutOfRange), Obstacles: domain.Obstacles{Free: 3, Range: 3}},
		{OrderID: "O-1", Reason: string(solver.NoDroneFree) + ": all are away", Obstacles: domain.Obstacles{Busy: 4}},
	}
	if !slices.Equal(c.Unserved, want) || c.Detail != "" {
		t.Errorf("%+v", c)
	}
}

// F-OPT-04, F-OBS-01: an order that cannot be planned counts as unserved; nothing
// else would show it.
func TestCountUnserved_CountsOrdersThatCannotBePlanned(t *testing.T) {
	snap := domain.Snapshot{ReadTime: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	snap.Orders = []domain.Order{
		{ID: "SPOILT", OrderContent: domain.OrderContent{Priority: domain.PriorityCritical}},
		{ID: "NEW", OrderContent: domain.OrderContent{Priority: domain.PriorityHigh}, PendingSince: snap.ReadTime},
	}
	var left []solver.Unserved
	for i, o := range snap.Orders {
		left = append(left, solver.Unserved{OrderID: string(o.ID), Index: i, Reason: solver.InvalidInput})
	}
	want := map[string]int64{}
	for _, p := range domain.Priorities {
		want[p.String()] = 0
	}
	want["CRITICAL"] = 1
	if got := countUnserved(left, snap, time.Minute); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// F-OPT-04: a record fits a document for any number and length of ids, and says how
// many orders it does not list.
func TestListUnserved_FitsADocument(t *testing.T) {
	const all = 20_000
	store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{PlanUnregistered: true})
	for name, id := range map[string]string{"short ids": "%d", "ids of 128 bytes": "%0128d", "ids that others wrote": "%01500d"} {
		t.Run(name, func(t *testing.T) {
			c := domain.Cycle{ID: domain.CycleID(uuid.NewString()), Outcome: domain.CyclePublished}
			for range maxLeftOut + 1 {
				leaveOut(&c, strings.Repeat("x", 1600))
			}
			every := domain.Obstacles{Free: 900, Busy: 90, Warehouse: 100, Payload: 100, ColdChain: 100, Range: 100, Battery: 100, Taken: 100, Reserve: 100, Unused: 100, Deadline: 100}
			var unserved []domain.UnservedOrder
			for i := range all {
				unserved = append(unserved, domain.UnservedOrder{
					OrderID: domain.OrderID(fmt.Sprintf(id, i)), Reason: "no_drone_free: drones that can carry it are not ready at the depot", Obstacles: every,
				})
			}
			listUnserved(&c, unserved)
			if err := store.RecordCycle(t.Context(), c); err != nil {
				t.Fatalf("%d orders listed: %v", len(c.Unserved), err)
			}
			if want := fmt.Sprintf("%d more unserved orders", all-len(c.Unserved)); !strings.HasPrefix(c.Detail, want) || len(c.Unserved) == 0 {
				t.Errorf("%d of %d listed, %q", len(c.Unserved), all, c.Detail)
			}
			stored, err := store.Cycle(t.Context(), c.ID)
			if err != nil || !slices.Equal(stored.Unserved, c.Unserved) || stored.Unserved[0].Obstacles != every {
				t.Errorf("stored %d orders, the first with %+v, %v", len(stored.Unserved), stored.Unserved[0].Obstacles, err)
			}
		})
	}
}

// F-OPT-03: a record fits a document however long the errors of left-out documents
// are; a cycle without a record would publish nothing.
func TestLeaveOut_FitsADocument(t *testing.T) {
	store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{PlanUnregistered: true})
	c := domain.Cycle{ID: domain.CycleID(uuid.NewString()), Outcome: domain.CyclePublished}
	var unserved []domain.UnservedOrder
	for i := range 20_000 {
		unserved = append(unserved, domain.UnservedOrder{OrderID: domain.OrderID(fmt.Sprint(i)), Reason: string(solver.NoDroneFree), Obstacles: domain.Obstacles{Busy: 1}})
	}
	for range maxLeftOut {
		leaveOut(&c, "drone D1: homeDepotId "+strings.Repeat("é", 10<<10)+" names no valid depot")
	}
	listUnserved(&c, unserved)
	if err := store.RecordCycle(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if stored, err := store.Cycle(t.Context(), c.ID); err != nil || len(stored.LeftOut) != maxLeftOut || !strings.HasPrefix(stored.LeftOut[0], "drone D1: homeDepotId é") {
		t.Errorf("%d documents listed as left out, %v", len(stored.LeftOut), err)
	}
}
