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
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/solver"
)

// F-OPT-04: a cycle's document has the orders that were left with their reasons.
func TestListUnserved(t *testing.T) {
	var c domain.Cycle
	listUnserved(&c, []solver.Unserved{{OrderID: "O-1", Reason: solver.NoDroneFree, Detail: "all are away"}, {OrderID: "O-2", Reason: solver.OutOfRange}})
	want := []domain.UnservedOrder{{OrderID: "O-1", Reason: string(solver.NoDroneFree) + ": all are away"}, {OrderID: "O-2", Reason: string(solver.OutOfRange)}}
	if !slices.Equal(c.Unserved, want) || c.Detail != "" {
		t.Errorf("%+v", c)
	}
}

// F-OPT-04, F-OBS-01: an order that no plan can use waits as any other that is left,
// and nobody would hear of it otherwise.
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

// F-OPT-04: however many orders a cycle leaves and however long their ids are,
// its record fits a document, and what is not listed is counted.
func TestListUnserved_FitsADocument(t *testing.T) {
	const all = 20_000
	store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{})
	for name, id := range map[string]string{"short ids": "%d", "ids of 128 bytes": "%0128d", "ids that others wrote": "%01500d"} {
		t.Run(name, func(t *testing.T) {
			c := domain.Cycle{ID: domain.CycleID(uuid.NewString()), Outcome: domain.CyclePublished}
			for range maxLeftOut + 1 {
				leaveOut(&c, strings.Repeat("x", 1600))
			}
			var unserved []solver.Unserved
			for i := range all {
				unserved = append(unserved, solver.Unserved{OrderID: fmt.Sprintf(id, i), Reason: solver.NoDroneFree, Detail: "those that can lift it are away"})
			}
			listUnserved(&c, unserved)
			if err := store.RecordCycle(t.Context(), c); err != nil {
				t.Fatalf("%d orders listed: %v", len(c.Unserved), err)
			}
			if want := fmt.Sprintf("%d more unserved orders", all-len(c.Unserved)); !strings.HasPrefix(c.Detail, want) || len(c.Unserved) == 0 {
				t.Errorf("%d of %d listed, %q", len(c.Unserved), all, c.Detail)
			}
		})
	}
}

// F-OPT-03: however long what is wrong with a document is, the cycle that left it out
// is on record, without which it would publish nothing.
func TestLeaveOut_FitsADocument(t *testing.T) {
	store := firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{})
	c := domain.Cycle{ID: domain.CycleID(uuid.NewString()), Outcome: domain.CyclePublished}
	var unserved []solver.Unserved
	for i := range 20_000 {
		unserved = append(unserved, solver.Unserved{OrderID: fmt.Sprint(i), Reason: solver.NoDroneFree})
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
