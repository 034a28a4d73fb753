package operator_test

import (
	"context"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
)

// F-AUD-02, F-REC-15: each event that a person caused names them in the field by, and no
// other event has the field.
func TestCommands_EventsNameTheirPerson(t *testing.T) {
	o := openOffice(t)
	ctx, c := t.Context(), o.desk.Commands
	o.report(
		domain.Telemetry{DroneID: "D1", Timestamp: time.Now().Add(-10 * time.Second), Position: home, Battery: 80, Status: domain.DroneIdle},
		domain.Telemetry{DroneID: "D2", Timestamp: time.Now().Add(-10 * time.Second), Position: home, Battery: 80, Status: domain.DroneEmergency},
	)
	for _, id := range []domain.OrderID{"O1", "O2", "O3", "O4"} {
		o.order(id)
	}
	o.decide("X", "D1", "O1")
	o.decide("Y", "D3", "O4") // rejected: no such drone
	commands := map[string]func() error{
		"hold":     func() error { return second(c.HoldOrder(ctx, "O2", "why")) },
		"release":  func() error { return second(c.ReleaseOrder(ctx, "O2", "why")) },
		"priority": func() error { return second(c.SetPriority(ctx, "O2", domain.PriorityHigh, "why")) },
		"deadline": func() error { return second(c.SetDeadline(ctx, "O2", time.Now().Add(time.Hour), "why")) },
		"pin":      func() error { return second(c.PinOrder(ctx, "O2", "D1", "why")) },
		"unpin":    func() error { return second(c.UnpinOrder(ctx, "O2", "why")) },
		"forbid":   func() error { return second(c.ForbidDrone(ctx, "O2", "D1", "why")) },
		"allow":    func() error { return second(c.AllowDrone(ctx, "O2", "D1", "why")) },
		"cancel":   func() error { return second(c.CancelOrder(ctx, "O3", "why")) },
		"recall":   func() error { return second(c.RecallMission(ctx, "M-X", "why")) },
		"clear":    func() error { return second(c.ClearDrone(ctx, "D2", "why")) },
		"ground":   func() error { return second(c.GroundDrone(ctx, "D2", "why")) },
		"ready":    func() error { return second(c.ReleaseDrone(ctx, "D2", "why")) },
	}
	order := []string{"hold", "release", "priority", "deadline", "pin", "unpin", "forbid", "allow", "cancel", "recall", "clear", "ground", "ready"}
	if len(order) != len(commands) {
		t.Fatalf("%d commands in order of %d", len(order), len(commands))
	}
	for _, name := range order {
		before := o.operatorsEvents()
		if err := commands[name](); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if after := o.operatorsEvents(); after == before {
			t.Errorf("%s wrote no event of an operator", name)
		}
	}
	err := o.desk.Store.HoldOrder(context.Background(), "O4", "why")
	if err == nil || firestoretx.Retryable(err) {
		t.Errorf("a change by nobody: error %v; want one that no retry mends", err)
	}
	held, err := o.desk.Store.Order(ctx, "O4")
	if err != nil || held.Held {
		t.Errorf("order %+v, %v; want it not held by nobody", held, err)
	}
}

// operatorsEvents counts the events of operators, and checks the field by of every event.
func (o *office) operatorsEvents() (n int) {
	o.t.Helper()
	docs, err := o.clients.Firestore.Collection(firestoretx.Events).Documents(o.t.Context()).GetAll()
	if err != nil {
		o.t.Fatal(err)
	}
	for _, doc := range docs {
		var want any
		if doc.Data()["cause"] == string(domain.CauseOperator) {
			n++
			want = o.desk.By
		}
		if got := doc.Data()["by"]; got != want {
			o.t.Errorf("by is %v, want %v, in %v", got, want, doc.Data())
		}
	}
	return n
}

func second[E any](_ operator.Changed[E], err error) error { return err }
