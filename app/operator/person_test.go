package operator_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
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

// F-AUD-17: the audit of a person has all that they did in a period, whatever it was, and
// nothing of others or of other times.
func TestDesk_AuditsPersons(t *testing.T) {
	o := openLetterOffice(t)
	o.desk.Store = firestoretx.New(o.clients.Firestore, firestoretx.Config{})
	ctx, began := t.Context(), time.Now().Add(-time.Second)
	const ann = "ann@example.org"
	o.order("O1")
	for _, err := range []error{
		second(o.desk.HoldOrder(ctx, "O1", "address in doubt")),
		second(o.desk.AcknowledgeAlert(ctx, "CRITICAL_LATE:O1", "called the ward")),
		o.desk.Store.RecordLockBreak(ctx, domain.LockBreak{Key: "cycle", Fence: "7", BrokenBy: ann, Why: "hangs"}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := o.desk.Store.ApplyDepot(ctx, domain.Depot{ID: "DEPOT-1", Capacity: 4}, firestoretx.Change{By: ann, Why: "new"}); err != nil {
		t.Fatal(err)
	}
	o.refuse("orders", "21", "{", nil)
	o.refuse("orders", "22", "{", nil)
	o.says(o.desk.DiscardDeadLetters(ctx, operator.LetterFilter{IDs: []string{"21"}}, "broken sender", false))
	o.says(o.desk.ReplayDeadLetters(ctx, operator.LetterFilter{IDs: []string{"22"}}, false))
	maintained := map[string]any{"droneId": "D1", "item": "rotor", "at": time.Now(), "by": ann, "why": "worn"}
	if _, _, err := o.clients.Firestore.Collection(firestoretx.Maintenance).Add(ctx, maintained); err != nil {
		t.Fatal(err)
	}
	bob := o.desk.Commands
	bob.By = "bob"
	if err := second(bob.SetPriority(ctx, "O1", domain.PriorityHigh, "bob's")); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Minute)

	text := o.says(o.desk.AuditPerson(ctx, ann, began, until))
	for _, want := range []string{
		"order O1: stays PENDING", "held=true", " because address in doubt\n", "alert CRITICAL_LATE:O1: acknowledged because called the ward", "lock cycle: broken, fence 7 because hangs",
		"depot DEPOT-1: created because new", "message 21 of orders: discarded, refused as UNDECODABLE because broken sender", "message 22 of orders: replayed as ",
		"drone D1: maintenance of rotor because worn",
	} {
		o.expect(text, want)
	}
	if strings.Contains(text, "bob") {
		t.Errorf("what bob did is among it:\n%s", text)
	}
	p, err := o.desk.PersonStory(ctx, ann, began, until)
	if err != nil || len(p.Steps) != 7 || len(p.Events) != 1 || !slices.IsSortedFunc(p.Steps, func(a, b operator.StepJSON) int { return a.At.Compare(b.At) }) {
		t.Errorf("%d steps and %d events, %v; want 7 in order, and 1", len(p.Steps), len(p.Events), err)
	}
	for name, period := range map[string][2]time.Time{"before": {began.Add(-time.Hour), began}, "after": {until, until.Add(time.Hour)}} {
		if p, err := o.desk.PersonStory(ctx, ann, period[0], period[1]); err != nil || len(p.Steps) != 0 {
			t.Errorf("%s: steps %v, %v; want none", name, p.Steps, err)
		}
	}
	o.expect(o.says(o.desk.AuditPerson(ctx, "Ann", time.Time{}, time.Time{})), "Nothing that Ann did is recorded")
	if _, err := o.desk.PersonStory(ctx, ann, until, began); err == nil || !strings.HasPrefix(err.Error(), "from is ") {
		t.Errorf("a period that ends before it begins: error %v", err)
	}
}

// F-AUD-17, F-HIS-03: the audit of a person of a sharded fleet is the same, also by a command that does not know
// the shards, and reads no event of another time.
func TestDesk_AuditsPersonsOfShardedFleets(t *testing.T) {
	emutest.ServeFirestore(t, firestoreemu.Options{Indexes: deploy.ShardedFirestoreIndexes})
	hosts := emutest.Hosts(t)
	o := openOfficeAt(t, hosts)
	o.desk.Store = firestoretx.New(o.clients.Firestore, firestoretx.Config{Sharded: true})
	o.order("O1")
	o.says(o.desk.PrintOrder(o.desk.HoldOrder(t.Context(), "O1", "address in doubt")))
	for range 50 {
		_, _, err := o.clients.Firestore.Collection(firestoretx.Events).Add(t.Context(), map[string]any{
			"entity": "order", "id": "O2", "by": "ann@example.org", "cause": "OPERATOR", "time": time.Now().Add(-time.Hour), "shard": 5,
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	o.desk.Store = firestoretx.New(o.clients.Firestore, firestoretx.Config{})
	from, to := time.Now().Add(-time.Minute), time.Now().Add(time.Minute)
	o.expect(o.says(o.desk.AuditPerson(t.Context(), "ann@example.org", from, to)), "order O1: stays PENDING", "held=true")
	for _, name := range []string{"ann@example.org", ""} {
		before := o.clients.Meter.FirestoreByOperation()["other"].Reads
		deeds, err := o.desk.Store.DeedsOf(t.Context(), name, from, to)
		if reads := o.clients.Meter.FirestoreByOperation()["other"].Reads - before; err != nil || len(deeds.Events) != 1 || reads > 20 {
			t.Errorf("deeds of %q: %d events in %d reads, %v; want the one of the period", name, len(deeds.Events), reads, err)
		}
	}
}
