package policy

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

var threeDepots = []domain.Depot{
	{ID: "B", Position: domain.Position{Lat: 48.86, Lon: 2.3}}, {ID: "A", Position: domain.Position{Lat: 48.86, Lon: 2.3}}, {ID: "C", Position: domain.Position{Lat: 48.9, Lon: 2.5}},
}

// F-ARE-04: the nearest depot plans a new order, the first id of several; other content
// keeps it, another place of delivery finds it anew.
func TestOrderPolicy_FindsThePlanningDepot(t *testing.T) {
	p := DefaultOrderPolicy()
	now := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	ingest := func(before *domain.Order, lat float64, kg float64, depots ...domain.Depot) domain.Order {
		t.Helper()
		p.Depots = depots
		now = now.Add(time.Second)
		req := domain.OrderRequest{ID: "O1", OrderContent: domain.OrderContent{Priority: domain.PriorityHigh, Delivery: domain.Position{Lat: lat, Lon: 2.3}, WeightKg: kg}}
		change, err := p.IngestOrder(before, nil, req, now, now)
		if err != nil || len(change.Orders) != 1 || change.Events[0].State["planningDepotId"] != string(change.Orders[0].PlanningDepotID) {
			t.Fatalf("change %+v, %v", change, err)
		}
		return change.Orders[0]
	}
	o := ingest(nil, 48.85, 1, threeDepots...)
	if o.PlanningDepotID != "A" || !o.PlanningSince.Equal(now) {
		t.Errorf("new order: planned by %q since %s", o.PlanningDepotID, o.PlanningSince)
	}
	o.PlanningDepotID, o.HandedOverBy = "C", []domain.DepotID{"A"}
	if o = ingest(&o, 48.85, 2, threeDepots...); o.PlanningDepotID != "C" || len(o.HandedOverBy) != 1 {
		t.Errorf("other weight: planned by %q, handed over by %v", o.PlanningDepotID, o.HandedOverBy)
	}
	if o = ingest(&o, 48.86, 2, threeDepots...); o.PlanningDepotID != "A" || len(o.HandedOverBy) != 0 {
		t.Errorf("other place: planned by %q, handed over by %v", o.PlanningDepotID, o.HandedOverBy)
	}
	if o = ingest(nil, 48.86, 2); o.PlanningDepotID != "" {
		t.Errorf("without depots: planned by %q", o.PlanningDepotID)
	}
}

// F-ARE-04: the sweeper finds a depot for orders that none plans, and leaves the others.
func TestSweepPlanningDepot_AdoptsOrders(t *testing.T) {
	now := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		what   string
		order  domain.Order
		depots []domain.Depot
		want   domain.DepotID
		why    string
	}{
		{"no depot yet", domain.Order{Status: domain.OrderPending}, nil, "", ""},
		{"never planned", domain.Order{Status: domain.OrderPending, Held: true}, threeDepots, "A", "it had no depot to plan it"},
		{"its depot is gone", domain.Order{Status: domain.OrderPending, PlanningDepotID: "X", HandedOverBy: []domain.DepotID{"A"}}, threeDepots, "A", "depot X, which planned it, is gone or malformed"},
		{"planned", domain.Order{Status: domain.OrderPending, PlanningDepotID: "C"}, threeDepots, "", ""},
		{"under way", domain.Order{Status: domain.OrderAssigned, PlanningDepotID: "X"}, threeDepots, "", ""},
	} {
		c.order.Delivery = domain.Position{Lat: 48.85, Lon: 2.3}
		change := SweepPlanningDepot(c.order, c.depots, now)
		if c.want == "" {
			if !change.Empty() {
				t.Errorf("%s: %+v", c.what, change)
			}
			continue
		}
		if o, e := change.Orders[0], change.Events[0]; o.PlanningDepotID != c.want || len(o.HandedOverBy) > 0 || e.Cause != domain.CauseSweeper || e.Reason != c.why {
			t.Errorf("%s: planned by %q, handed over by %v, because %q by %s", c.what, o.PlanningDepotID, o.HandedOverBy, e.Reason, e.Cause)
		}
	}
}

// F-ARE-05: only an order that waits with the depot that hands it over changes hands, to a
// depot that exists and has not planned it before, and not for ever.
func TestHandOverOrder(t *testing.T) {
	now := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	waits := domain.Order{ID: "O1", Status: domain.OrderPending, PlanningDepotID: "A", PendingSince: now.Add(-time.Hour), Revision: 3}
	but := func(change func(*domain.Order)) *domain.Order {
		o := waits
		change(&o)
		return &o
	}
	toB := domain.HandOver{OrderID: "O1", From: "A", To: "B", Reason: "no_drone_free"}
	toNone := domain.HandOver{OrderID: "O1", From: "A", To: "NONE"}
	alone, joined := []domain.Area{{Depots: threeDepots[1:2]}, {Depots: threeDepots[:1]}}, []domain.Area{{Depots: []domain.Depot{{ID: "0"}, {ID: "A"}}}, {Depots: threeDepots[:1]}}
	for _, c := range []struct {
		what  string
		order *domain.Order
		areas []domain.Area
		by    domain.DepotID
		h     domain.HandOver
		want  Reason
	}{
		{"no order", nil, alone, "A", toB, ReasonNotFound},
		{"assigned", but(func(o *domain.Order) { o.Status = domain.OrderAssigned }), alone, "A", toB, ReasonNotPending},
		{"held", but(func(o *domain.Order) { o.Held = true }), alone, "A", toB, ReasonOrderHeld},
		{"another depot's", but(func(o *domain.Order) { o.PlanningDepotID = "C" }), alone, "A", toB, ReasonPlannedElsewhere},
		{"handed over already", but(func(o *domain.Order) { o.PlanningDepotID = "B" }), alone, "A", toB, ReasonPlannedElsewhere},
		{"another area's", &waits, alone, "B", toB, ReasonPlannedElsewhere},
		{"its depot has joined another area", &waits, joined, "A", toB, ReasonPlannedElsewhere},
		{"its depot is gone", &waits, alone[1:], "A", toB, ReasonPlannedElsewhere},
		{"to no depot", &waits, alone, "A", toNone, ReasonDepotUnknown},
		{"to itself", &waits, alone, "A", domain.HandOver{OrderID: "O1", From: "A", To: "A"}, ReasonHandedOverBefore},
		{"back", but(func(o *domain.Order) { o.HandedOverBy = []domain.DepotID{"B"} }), alone, "A", toB, ReasonHandedOverBefore},
		{"too often", but(func(o *domain.Order) { o.HandedOverBy = []domain.DepotID{"C", "D", "E", "F"} }), alone, "A", toB, ReasonTooManyHandOvers},
		{"by the area that its depot has joined", &waits, joined, "0", toB, ""},
		{"waits", &waits, alone, "A", toB, ""},
	} {
		change, err := HandOverOrder(c.order, c.areas, domain.HandOvers{CycleID: "CYCLE", DepotID: c.by}, c.h, now)
		if got, _ := ReasonOf(err); got != c.want || (err == nil) == change.Empty() {
			t.Errorf("%s: %v, want %q; change %+v", c.what, err, c.want, change)
		}
		if err != nil {
			continue
		}
		o, e := change.Orders[0], change.Events[0]
		if o.PlanningDepotID != "B" || len(o.HandedOverBy) != 1 || o.HandedOverBy[0] != "A" || !o.PlanningSince.Equal(now) || !o.PendingSince.Equal(waits.PendingSince) {
			t.Errorf("handed over: %+v", o)
		}
		if e.Cause != domain.CauseCycle || e.CycleID != "CYCLE" || e.Reason != "handed over by depot A to B: no_drone_free" || e.Revision != 4 {
			t.Errorf("event %+v", e)
		}
	}
}
