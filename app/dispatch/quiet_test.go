package dispatch_test

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
)

// F-OPT-03, F-ORD-05: cycles without orders have one record for each area, which counts them
// for all optimizers and is written once a minute. An order that comes later is not seen yet.
func TestRunner_CountsCyclesWithoutOrders(t *testing.T) {
	b := newBench(t)
	store, _ := b.withoutOrders(t)
	optimizer := func() (*dispatch.Memory, func(n int)) {
		r := b.runner(t, store, 15*time.Second)
		memory := r.NewMemory()
		return memory, func(n int) {
			t.Helper()
			for range n {
				if _, err := r.Once(t.Context(), depot.ID, memory); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	memory, first := optimizer()
	other, second := optimizer()
	for _, step := range []struct {
		name            string
		do              func()
		writes, counted int
	}{
		{"the first cycle", func() { first(1) }, 1, 1},
		{"more within a minute", func() { first(5) }, 1, 1},
		{"another optimizer", func() { second(4) }, 2, 2},
		{"a minute later", func() { memory.Age(time.Minute); first(1) }, 3, 8},
		{"the other, later", func() { other.Age(time.Minute); second(1) }, 4, 12},
	} {
		step.do()
		c, err := b.store.Cycle(t.Context(), domain.QuietCycleID(depot.ID))
		if err != nil || store.quiet != step.writes || c.WithoutOrders != step.counted || c.Outcome != domain.CycleEmpty || c.SnapshotTime.IsZero() || c.Fence == "" {
			t.Fatalf("%s: %d writes, want %d; want %d counted: %+v, %v", step.name, store.quiet, step.writes, step.counted, c, err)
		}
	}
	if all, err := b.store.ListCycles(t.Context(), "", firestoretx.Page{}); err != nil || len(all.Items) != 1 || len(store.cycles) != 0 {
		t.Errorf("%d records, %v", len(all.Items), err)
	}
	request := domain.OrderRequest{ID: "NEW", OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: depot.Position}}
	if err := b.store.IngestOrder(t.Context(), request, time.Now()); err != nil {
		t.Fatal(err)
	}
	order, err := b.store.Order(t.Context(), "NEW")
	if err != nil {
		t.Fatal(err)
	}
	waits, _, err := b.store.Waits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if w := waits.Of(order); len(w) != 1 || w[0].Reason != domain.WaitNotSeen || w[0].WithoutOrders != 12 {
		t.Errorf("the order waits %+v", w)
	}
}
