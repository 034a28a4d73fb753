package domain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func pending(id domain.OrderID, since time.Time) domain.Order {
	return domain.Order{ID: id, Status: domain.OrderPending, PendingSince: since}
}

// F-ORD-05
func TestWaits_SayWhatTheLatestCycleFound(t *testing.T) {
	var waits domain.Waits
	if w := waits.Of(pending("O-1", noon)); len(w) != 1 || w[0].Reason != domain.WaitNoDepot {
		t.Errorf("without a depot %v", w)
	}
	waits.AddDepot("empty", nil)
	if w := waits.Of(pending("O-1", noon)); len(w) != 1 || w[0].Reason != domain.WaitNoCycle || w[0].DepotID != "empty" {
		t.Errorf("without a cycle %v", w)
	}
	waits = domain.Waits{}
	waits.AddDepot("full", &domain.Cycle{
		ID: "C-1", SnapshotTime: noon, Orders: 4, Assigned: 1, LeftOut: []string{"order O-9: its weight is not a number", "drone D-1: lost"},
		Unserved: []domain.UnservedOrder{
			{OrderID: "O-1", Reason: "no_drone_free", Obstacles: domain.Obstacles{Free: 12, Busy: 28, Taken: 7, Reserve: 5}},
			{OrderID: "O-2", Reason: "publish_failed"},
		},
	})
	waits.AddDepot("cut", &domain.Cycle{
		ID: "C-2", SnapshotTime: noon, Orders: 7, Assigned: 1, Unserved: []domain.UnservedOrder{{OrderID: "O-1", Reason: "out_of_range"}},
	})
	before, after := noon.Add(-time.Minute), noon.Add(time.Second)
	for _, c := range []struct {
		order       domain.Order
		full, cut   string
		short       string // of the first
		firstOfBoth domain.DepotID
	}{
		{pending("O-1", before), "no_drone_free; 12 free: 7 taken, 5 reserve; 28 busy", "out_of_range", "12 free: 7 taken", "full"},
		{pending("O-2", before), "publish_failed", domain.WaitNotListed, "not listed", "cut"},
		{pending("O-3", before), domain.WaitPlanned, domain.WaitNotListed, "decision pending", "full"},
		{pending("O-4", after), domain.WaitNotSeen, domain.WaitNotSeen, "not seen yet", "cut"},
		{pending("O-9", before), domain.WaitLeftOut + ": its weight is not a number", domain.WaitNotListed, "not listed", "cut"},
	} {
		found := waits.Of(c.order)
		if len(found) != 2 || found[0].DepotID != c.firstOfBoth || found[0].Short() != c.short {
			t.Errorf("%s: %+v, in short %q; want %s first with %q", c.order.ID, found, found[0].Short(), c.firstOfBoth, c.short)
		}
		for _, w := range found {
			if want := map[domain.DepotID]string{"full": c.full, "cut": c.cut}[w.DepotID]; w.String() != want {
				t.Errorf("%s at %s: %q, want %q", c.order.ID, w.DepotID, w, want)
			}
		}
	}
	held, assigned := pending("O-1", before), pending("O-1", before)
	held.Held, assigned.Status = true, domain.OrderAssigned
	if w := slices.Concat(waits.Of(held), waits.Of(assigned)); w != nil {
		t.Errorf("orders that do not wait for a drone: %v", w)
	}
}

// F-ORD-05, F-ARE-05: an order that was handed over is explained by the area that plans it
// now, whose cycle has not seen it if it began before.
func TestWaits_SpeakOfTheAreaThatPlansTheOrder(t *testing.T) {
	var waits domain.Waits
	waits.AddDepot("first", &domain.Cycle{ID: "C-1", SnapshotTime: noon, Orders: 1, Unserved: []domain.UnservedOrder{{OrderID: "O-1", Reason: "no_drone_free"}}})
	waits.AddDepot("next", &domain.Cycle{ID: "C-2", DepotIDs: []domain.DepotID{"next", "beside"}, SnapshotTime: noon, Orders: 1, Assigned: 1})
	before, after := noon.Add(-time.Second), noon.Add(time.Second)
	for _, c := range []struct {
		planner      domain.DepotID
		since        time.Time
		from, reason string
	}{
		{"first", time.Time{}, "first", "no_drone_free"},
		{"next", after, "next", domain.WaitNotSeen},
		{"next", before, "next", domain.WaitPlanned},
		{"beside", after, "next", domain.WaitNotSeen}, // a depot of the same area
		{"first", after, "first", "no_drone_free"},    // its cycle listed it all the same
	} {
		o := pending("O-1", noon.Add(-time.Hour))
		o.PlanningDepotID, o.PlanningSince = c.planner, c.since
		if w := waits.Of(o); len(w) != 1 || string(w[0].DepotID) != c.from || w[0].Reason != c.reason {
			t.Errorf("planned by %s since %s: %+v, want %q from %s", c.planner, c.since, w, c.reason, c.from)
		}
	}
	unknown := pending("O-1", before)
	unknown.PlanningDepotID = "gone"
	if w := waits.Of(unknown); len(w) != 2 {
		t.Errorf("planned by no depot: %+v, want an entry of each area", w)
	}
}

// F-ORD-05: the depot that could serve the order comes first, then the one that
// looked last.
func TestWaits_PutTheNearestToServingFirst(t *testing.T) {
	var waits domain.Waits
	depot := func(id domain.DepotID, at time.Time, o domain.Obstacles) {
		waits.AddDepot(id, &domain.Cycle{ID: domain.CycleID(id), SnapshotTime: at, Orders: 1, Unserved: []domain.UnservedOrder{{OrderID: "O-1", Reason: "r", Obstacles: o}}})
	}
	depot("far", noon, domain.Obstacles{Free: 90, Range: 90})
	depot("stale", noon.Add(-time.Hour), domain.Obstacles{})
	depot("near", noon, domain.Obstacles{Free: 3, Battery: 1, Taken: 2})
	depot("fresh", noon, domain.Obstacles{})
	var order []domain.DepotID
	for _, w := range waits.Of(pending("O-1", noon.Add(-2*time.Hour))) {
		order = append(order, w.DepotID)
	}
	if want := []domain.DepotID{"near", "far", "fresh", "stale"}; !slices.Equal(order, want) {
		t.Errorf("depots %v, want %v", order, want)
	}
}

// F-ORD-05: the column of a table stays narrow and has numbers.
func TestWait_ShortFitsAColumn(t *testing.T) {
	for want, o := range map[string]domain.Obstacles{
		"no drone free":            {},
		"0 free; 1000 busy":        {Busy: 1000},
		"1000 free: 900 warehouse": {Free: 1000, Warehouse: 900, Taken: 100},
		"120 free: 80 cold chain":  {Free: 120, ColdChain: 80, Unused: 40, Busy: 7},
		"2 free: 1 payload":        {Free: 2, Payload: 1, Unused: 1},
	} {
		if got := (domain.Wait{Reason: "no_drone_free: why in detail", Obstacles: o}).Short(); got != want || len(got) > 25 {
			t.Errorf("%+v: %q, want %q", o, got, want)
		}
	}
}

// F-ORD-05: what no waiting mends comes before the numbers of drones.
func TestWait_ShortSaysFirstWhatNoWaitingMends(t *testing.T) {
	for reason, want := range map[string]string{
		"no_compatible_warehouse":              "no compatible warehouse",
		"out_of_range: it is far":              "out of range",
		"over_capacity":                        "over capacity",
		"no_drone_allowed":                     "no drone allowed",
		"invalid_input: weightKg is negative":  "invalid input",
		"left_out: its weight is not a number": "left out",
		"kept_for_critical":                    "0 free; 1 busy",
	} {
		w := domain.Wait{Reason: reason, Obstacles: domain.Obstacles{Busy: 1}}
		if got := w.Short(); got != want || w.Hopeless() == (want == "0 free; 1 busy") {
			t.Errorf("%s: %q, hopeless %t; want %q", reason, got, w.Hopeless(), want)
		}
	}
}

// F-ORD-05: a cycle that found no orders cannot have given one to a drone.
func TestWaits_KnowCyclesWithoutOrders(t *testing.T) {
	var waits domain.Waits
	waits.AddDepot("D", &domain.Cycle{ID: domain.QuietCycleID("D"), SnapshotTime: noon, WithoutOrders: 14, LeftOut: []string{"order O-9: lost"}})
	for id, want := range map[domain.OrderID]string{"O-1": domain.WaitNotSeen, "O-9": "left_out: lost"} {
		for _, since := range []time.Time{noon.Add(-time.Hour), noon.Add(time.Second)} {
			if id == "O-9" && since.After(noon) {
				continue
			}
			if w := waits.Of(pending(id, since)); len(w) != 1 || w[0].Reason != want || w[0].WithoutOrders != 14 || !w[0].SnapshotTime.Equal(noon) {
				t.Errorf("%s since %s: %+v, want %s", id, since, w, want)
			}
		}
	}
}
