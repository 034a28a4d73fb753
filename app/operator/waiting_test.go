package operator_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
)

// F-ORD-05: a dispatcher sees why an order waits: the counts of a depot's latest cycle and
// its age, within 100 columns in the list, and for every depot in the audit.
func TestDesk_SaysWhyAnOrderWaits(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	const waiting, fresh = "O-adca8b66-5490-4c15-9a4e-2c0b6f6a7d1e", "O-new"
	list := func() string {
		return o.says(o.desk.ListOrders(ctx, firestoretx.OrderFilter{}, firestoretx.Page{}))
	}
	o.order(waiting)
	o.expect(list(), "WAITS", waiting, "no depot")
	if err := o.desk.Store.Setup(ctx, []domain.Depot{{ID: "NEAR"}, {ID: "FAR"}, {ID: "NEW"}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	o.expect(list(), "WAITS", waiting, "no cycle", "WAITS is what the last cycles saw: depot FAR never, depot NEAR never, depot NEW never.")

	seen := time.Now()
	for depot, found := range map[domain.DepotID]domain.UnservedOrder{
		"NEAR": {OrderID: waiting, Reason: "no_drone_free", Obstacles: domain.Obstacles{Free: 12, Busy: 28, Payload: 1, ColdChain: 2, Battery: 1, Taken: 5, Reserve: 3, Deadline: 4}},
		"FAR":  {OrderID: waiting, Reason: "out_of_range", Obstacles: domain.Obstacles{Free: 40, Range: 40}},
	} {
		err := o.desk.Store.RecordCycle(ctx, domain.Cycle{
			ID: domain.CycleID("C-" + depot), DepotID: depot, Outcome: domain.CyclePublished, StartedAt: seen, SnapshotTime: seen,
			Orders: 2, Assigned: 1, Unserved: []domain.UnservedOrder{found},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	o.order(fresh)
	o.order("O-held")
	o.says(o.desk.PrintOrder(o.desk.HoldOrder(ctx, "O-held", "address in doubt")))
	o.desk.Now = func() time.Time { return seen.Add(8 * time.Second) }

	text := list()
	o.expect(text, waiting, "PENDING", "CRITICAL", "12 free: 5 taken", fresh, "not seen yet",
		`WAITS is what the last cycles saw: depot FAR 8s ago, depot NEAR 8s ago, depot NEW never. "audit order" shows each depot.`)
	for line := range strings.Lines(text) {
		if at := strings.Index(line, "12 free: 5 taken"); at+len("12 free: 5 taken") > 100 {
			t.Errorf("the column ends at %d:\n%s", at, text)
		}
		if strings.HasPrefix(line, "O-held") && (strings.Contains(line, "free") || strings.Contains(line, "seen")) {
			t.Errorf("a held order is shown as waiting for a drone: %s", line)
		}
	}
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectOrder, waiting)),
		"Order "+waiting+": PENDING",
		"  waits: depot NEAR: no_drone_free; 12 free: 1 payload, 2 cold chain, 1 battery, 5 taken, 3 reserve (4 late); 28 busy\n",
		"    by cycle C-NEAR of "+seen.UTC().Format("2006-01-02 15:04:05"), ", 8s ago\n",
		"  waits: depot FAR: out_of_range; 40 free: 40 range\n", "  waits: depot NEW: no_cycle\n", "new: PENDING")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectOrder, fresh)), "waits: depot ", ": not_seen_yet\n")
	if held := o.says(o.desk.Audit(ctx, operator.SubjectOrder, "O-held")); strings.Contains(held, "waits") {
		t.Errorf("a held order:\n%s", held)
	}
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectCycle, "C-NEAR")), "DRONES", waiting, "no_drone_free", "12 free: 1 payload, 2 cold chain")

	o.desk.JSON = true
	type waits struct {
		ID      string
		Waiting []struct {
			DepotID, CycleID, Reason                                                             string
			SnapshotTime                                                                         time.Time
			FreeDrones, BusyDrones, Payload, ColdChain, Battery, Range, Taken, Reserve, Deadline int
		}
	}
	var page struct{ Orders []waits }
	if err := json.Unmarshal([]byte(list()), &page); err != nil {
		t.Fatal(err)
	}
	var story struct{ Order waits }
	if err := json.Unmarshal([]byte(o.says(o.desk.Audit(ctx, operator.SubjectOrder, waiting))), &story); err != nil {
		t.Fatal(err)
	}
	for _, got := range []waits{page.Orders[0], story.Order} {
		if len(got.Waiting) != 3 || got.ID != waiting {
			t.Fatalf("JSON %+v", got)
		}
		near, far := got.Waiting[0], got.Waiting[1]
		if near.DepotID != "NEAR" || near.CycleID != "C-NEAR" || near.Reason != "no_drone_free" || near.SnapshotTime.IsZero() ||
			near.FreeDrones != 12 || near.BusyDrones != 28 || near.Payload != 1 || near.ColdChain != 2 || near.Battery != 1 || near.Taken != 5 || near.Reserve != 3 || near.Deadline != 4 ||
			far.Range != 40 || got.Waiting[2].Reason != "no_cycle" {
			t.Errorf("JSON %+v", got)
		}
	}
	for _, o := range page.Orders[1:] {
		if o.ID == "O-held" && o.Waiting != nil {
			t.Errorf("a held order in JSON: %+v", o)
		}
	}
}
