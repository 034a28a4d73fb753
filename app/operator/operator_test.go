package operator_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) {
	leaktest.Main(m)
}

// office is a desk whose output a test can read.
type office struct {
	t       *testing.T
	clients *connect.Clients
	desk    *operator.Desk
	out     bytes.Buffer
}

func openOffice(t *testing.T) *office { return openOfficeAt(t, emutest.Hosts(t)) }

func openOfficeAt(t *testing.T, hosts connect.Config) *office {
	t.Helper()
	// If the variable is set, the Firestore library opens a connection of its own that
	// nobody closes.
	t.Setenv(connect.FirestoreHost, "")
	o := &office{t: t, clients: emutest.Connect(t, hosts)}
	locks, err := o.clients.Locks(simclock.Real(), emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	o.desk = &operator.Desk{
		Commands: operator.Commands{Store: firestoretx.New(o.clients.Firestore, firestoretx.Config{PlanUnregistered: true}), Locks: locks, PubSub: o.clients.PubSub, By: "ann@example.org"},
		Now:      time.Now, Out: &o.out,
	}
	emutest.IssueFences(t, o.clients.Firestore, "7", "", "DEPOT-1")
	return o
}

// says returns what the desk printed since the last call. The command must have
// succeeded.
func (o *office) says(err error) string {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
	text := o.out.String()
	o.out.Reset()
	return text
}

// expect checks that text holds every part, in order.
func (o *office) expect(text string, parts ...string) {
	o.t.Helper()
	rest := text
	for _, part := range parts {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			o.t.Fatalf("%q is missing, or not where it should be, in:\n%s", part, text)
		}
		rest = after
	}
}

// refused checks that err is one line with a policy's reason.
func (o *office) refused(err error, reason policy.Reason) {
	o.t.Helper()
	got, ok := policy.ReasonOf(err)
	if !ok || got != reason || strings.Contains(err.Error(), "\n") {
		o.t.Errorf("error %v, want one line with %s", err, reason)
	}
	if o.out.Len() > 0 {
		o.t.Errorf("a refused command printed %q", o.out.String())
	}
}

var (
	home     = domain.Position{Lat: 48.8566, Lon: 2.3522}
	hospital = domain.Position{Lat: 48.86, Lon: 2.36}
)

func (o *office) order(id domain.OrderID) {
	o.t.Helper()
	err := o.desk.Store.IngestOrder(o.t.Context(), domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
		Priority: domain.PriorityCritical, ProductType: "BLOOD", Pickup: &home, Delivery: hospital,
	}}, time.Now())
	if err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) report(reports ...domain.Telemetry) {
	o.t.Helper()
	for _, err := range o.desk.Store.NewTelemetryApplier().Apply(o.t.Context(), reports) {
		if err != nil {
			o.t.Fatal(err)
		}
	}
}

func (o *office) decide(id domain.DecisionID, drone domain.DroneID, order domain.OrderID) domain.LedgerEntry {
	o.t.Helper()
	now := time.Now()
	d := domain.Decision{
		ID: id, CycleID: "C1", Fence: "7", SnapshotTime: now, DroneID: drone, OrderIDs: []domain.OrderID{order},
		Route: []domain.Waypoint{
			{Type: domain.WaypointDepotStart, Position: home},
			{Type: domain.WaypointWarehousePickup, OrderID: order, WarehouseID: "W1", Position: home},
			{Type: domain.WaypointHospitalDelivery, OrderID: order, Position: hospital},
			{Type: domain.WaypointDepotReturn, Position: home},
		},
		EstimatedBatteryConsumption: 5, EstimatedDurationMinutes: 3,
	}
	d.PayloadHash = wire.DecisionHash(d)
	entry, err := o.desk.Store.AssignMission(o.t.Context(), d, policy.Delivery{MessageID: "m1", PublishedAt: now, ReceivedAt: now})
	if err != nil {
		o.t.Fatal(err)
	}
	return entry
}

// F-ORD-04: operators hold, release and cancel orders; a repeated command changes nothing
// and says so.
func TestDesk_HoldsReleasesAndCancelsOrders(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	o.expect(o.says(o.desk.ListOrders(ctx, firestoretx.OrderFilter{}, firestoretx.Page{})), "No orders yet.")
	o.order("O1")
	o.order("O2")
	o.expect(o.says(o.desk.PrintOrder(o.desk.HoldOrder(ctx, "O1", "address in doubt"))), "order O1 is PENDING, held: address in doubt")
	held := o.says(o.desk.ListOrders(ctx, firestoretx.OrderFilter{Held: true}, firestoretx.Page{Limit: 10}))
	o.expect(held, "ORDER", "O1", "PENDING", "CRITICAL", "BLOOD", "held", "address in doubt")
	if strings.Contains(held, "O2") {
		t.Errorf("O2 is not held:\n%s", held)
	}
	o.expect(o.says(o.desk.PrintOrder(o.desk.ReleaseOrder(ctx, "O2", "no reason"))), "already done: order O2 is PENDING\n")
	o.expect(o.says(o.desk.PrintOrder(o.desk.ReleaseOrder(ctx, "O1", "confirmed by phone"))), "order O1 is PENDING\n")
	o.expect(o.says(o.desk.ListOrders(ctx, firestoretx.OrderFilter{Held: true}, firestoretx.Page{})), "No orders are held.")
	o.expect(o.says(o.desk.PrintOrder(o.desk.CancelOrder(ctx, "O1", "no longer needed"))), "order O1 is CANCELLED")
	o.expect(o.says(o.desk.PrintOrder(o.desk.CancelOrder(ctx, "O1", "again"))), "already done: order O1 is CANCELLED\n")
	o.refused(o.desk.PrintOrder(o.desk.ReleaseOrder(ctx, "O1", "too late")), policy.ReasonNotHeld)
	o.refused(o.desk.PrintOrder(o.desk.HoldOrder(ctx, "O1", "too late")), policy.ReasonNotPending)
	o.refused(o.desk.PrintOrder(o.desk.HoldOrder(ctx, "O9", "unknown")), policy.ReasonNotFound)
	for _, err := range []error{o.desk.PrintOrder(o.desk.HoldOrder(ctx, "O2", " \t")), o.desk.PrintOrder(o.desk.HoldOrder(ctx, "O2", strings.Repeat("x", 501))), o.desk.PrintOrder(o.desk.HoldOrder(ctx, "O2", "\xff")), o.desk.PrintOrder(o.desk.HoldOrder(ctx, "a/b", "x")), o.desk.PrintCleared(o.desk.ClearDrone(ctx, "", "x"))} {
		if err == nil || o.out.Len() > 0 {
			t.Errorf("error %v, printed %q", err, o.out.String())
		}
	}
	o.expect(o.says(o.desk.PrintOrder(o.desk.HoldOrder(ctx, "O2", "two\nlines"))), "order O2 is PENDING, held: two lines (by ann@example.org)\n")
	o.expect(o.says(o.desk.PrintOrder(o.desk.HoldOrder(ctx, "O2", "again"))), "already done: order O2 is PENDING, held: two lines (by ann@example.org)\n")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectOrder, "O2")), "OPERATOR", "because two lines (by ann@example.org)")
	// A cancelled order is no longer due.
	cancelled, err := o.desk.Store.Order(ctx, "O1")
	if err != nil {
		t.Fatal(err)
	}
	o.expect(o.says(o.desk.ListOrders(ctx, firestoretx.OrderFilter{Status: domain.OrderCancelled}, firestoretx.Page{})),
		"O1", "CANCELLED", cancelled.Deadline.UTC().Format(time.DateOnly+" 15:04:05"))
	page := o.says(o.desk.ListOrders(ctx, firestoretx.OrderFilter{}, firestoretx.Page{Limit: 1}))
	o.expect(page, "O1", "There are more; give --cursor="+entity.Cursor("orders", "O1")+"\n")
	o.desk.JSON = true
	var listed struct {
		Orders     []struct{ ID, Status string }
		NextCursor string
	}
	if err := json.Unmarshal([]byte(o.says(o.desk.ListOrders(ctx, firestoretx.OrderFilter{}, firestoretx.Page{Limit: 1, After: "O1"}))), &listed); err != nil {
		t.Fatal(err)
	}
	if len(listed.Orders) != 1 || listed.Orders[0].ID != "O2" || listed.NextCursor != "" {
		t.Errorf("page %+v", listed)
	}
}

// F-ORD-04: a table shows ids exactly, spaces included, and the --cursor it prints can be
// pasted into a shell whatever the id.
func TestDesk_ShowsIDsExactly(t *testing.T) {
	o := openOffice(t)
	ids := []string{"-dash", "a  b", "d\u00a0\t\x1b[2J", "z"}
	for _, id := range ids {
		o.order(domain.OrderID(id))
	}
	list := func(p firestoretx.Page) string {
		return o.says(o.desk.ListOrders(t.Context(), firestoretx.OrderFilter{}, p))
	}
	o.expect(list(firestoretx.Page{}), "\n-dash  ", "\na  b  ", "\nd\\u00a0\\u0009\\u001b[2J  ", "\nz  ")
	for i := range 3 {
		cursor := entity.Cursor("orders", ids[i])
		o.expect(list(firestoretx.Page{Limit: i + 1}), "There are more; give --cursor="+cursor+"\n")
		if strings.Trim(cursor, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("a shell would not take %q as one word", cursor)
		}
	}
}

// F-ORD-04: columns are aligned by their width on the terminal.
func TestDesk_AlignsWideAndCombiningCharacters(t *testing.T) {
	o := openOffice(t)
	for _, id := range []domain.OrderID{"O-12345", "血液-1", "e\u0301te\u0301", "🚁"} {
		o.order(id)
	}
	o.expect(o.says(o.desk.ListOrders(t.Context(), firestoretx.OrderFilter{}, firestoretx.Page{})),
		"ORDER    STATUS ", "\nO-12345  PENDING ", "\ne\u0301te\u0301      PENDING ", "\n血液-1   PENDING ", "\n🚁       PENDING ")
}

// F-ORD-04, F-DLQ-01: documents, messages and logs show the operator's name on one line;
// a command with an unsuitable name changes nothing.
func TestCommands_RequireANameThatCanBeRecorded(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	o.order("O1")
	for name, part := range map[string]string{
		"": "give your name", strings.Repeat("é", 129): "has 129 characters; give at most 128", " \t": "is blank", "ann\nbob": `is "ann\nbob"`, "\x1b[2J": "printable characters", "\xff": "UTF-8",
	} {
		commands := operator.Commands{Store: o.desk.Store, PubSub: o.clients.PubSub, By: name}
		_, holdErr := commands.HoldOrder(ctx, "O1", "doubt")
		_, replayErr := commands.ReplayDeadLetters(ctx, operator.LetterFilter{All: true})
		for _, err := range []error{holdErr, replayErr} {
			if err == nil || !strings.HasPrefix(err.Error(), "by ") || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: error %v, want %q", name, err, part)
			}
		}
	}
	longest := strings.Repeat("é", 128)
	held, err := operator.Commands{Store: o.desk.Store, By: longest}.HoldOrder(ctx, "O1", "doubt")
	if err != nil || held.Now.HeldReason != "doubt (by "+longest+")" {
		t.Errorf("held because %q, %v", held.Now.HeldReason, err)
	}
}

// F-ORD-04, F-DLQ-01: an unsuitable reason is refused with an explanation, not with the
// store's error.
func TestCheckReason_ExplainsWhatIsWrong(t *testing.T) {
	for reason, want := range map[string]string{
		strings.Repeat("é", 250): "", strings.Repeat("é", 250) + ".": "has 501 bytes; give at most 500", "doubt\xff": "is not valid UTF-8",
	} {
		if err := operator.CheckReason(reason); fmt.Sprint(err) != cmp.Or(want, "<nil>") {
			t.Errorf("%q: error %v, want %q", reason, err, want)
		}
	}
}

// The error of a command names its subject, whether the store, a document or a policy
// failed it.
func TestCommands_FailuresNameTheirSubject(t *testing.T) {
	o := openOffice(t)
	c := operator.Commands{Store: o.desk.Store, By: "ann@example.org"}
	if _, err := o.clients.Firestore.Doc("orders/ODD").Set(t.Context(), map[string]any{"status": 7}); err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tt := range []struct {
		ctx  context.Context
		id   domain.OrderID
		want string
	}{
		{ended, "O1", "order O1: "},
		{t.Context(), "O1", "order O1: NOT_FOUND"},
		{t.Context(), "ODD", "order ODD: document "},
	} {
		if _, err := c.HoldOrder(tt.ctx, tt.id, "ask the ward"); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("error %v, want it to begin with %q", err, tt.want)
		}
	}
	if _, err := c.ClearDrone(ended, "D1", "inspected"); err == nil || !strings.HasPrefix(err.Error(), "drone D1: ") {
		t.Errorf("error %v, want it to name drone D1", err)
	}
}

// F-TEL-08: only an operator clears a reported emergency.
func TestDesk_ClearsEmergencies(t *testing.T) {
	o := openOffice(t)
	ctx, began := t.Context(), time.Now().Add(-10*time.Second)
	o.expect(o.says(o.desk.ListDrones(ctx, firestoretx.DroneFilter{Status: domain.DroneEmergency}, firestoretx.Page{})), "No drones are EMERGENCY.")
	o.refused(o.desk.PrintCleared(o.desk.ClearDrone(ctx, "D1", "looked at it")), policy.ReasonNotFound)
	o.report(domain.Telemetry{DroneID: "D1", Timestamp: began, Position: home, Battery: 80, Status: domain.DroneIdle})
	o.expect(o.says(o.desk.PrintCleared(o.desk.ClearDrone(ctx, "D1", "looked at it"))), "already done: drone D1 is IDLE\n")
	o.report(domain.Telemetry{DroneID: "D1", Timestamp: began.Add(time.Second), Position: home, Battery: 80, Status: domain.DroneEmergency})
	o.expect(o.says(o.desk.ListDrones(ctx, firestoretx.DroneFilter{}, firestoretx.Page{})), "D1", "EMERGENCY", "80 %", "emergency latched")
	o.expect(o.says(o.desk.PrintCleared(o.desk.ClearDrone(ctx, "D1", "looked at it"))), "drone D1 is UNKNOWN")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectDrone, "D1")),
		"Drone D1: UNKNOWN", "new: UNKNOWN", "IDLE -> EMERGENCY; emergencyLatched=true",
		"OPERATOR", "EMERGENCY -> UNKNOWN; emergencyLatched=false because looked at it")
}

// F-OPR-02: a recalled mission keeps its orders until its drone has left it; a repeated
// command changes and records nothing, and a second recall is refused.
func TestDesk_RecallsMissions(t *testing.T) {
	o := openOffice(t)
	ctx, began := t.Context(), time.Now().Add(-10*time.Second)
	o.refused(o.desk.PrintMission(o.desk.RecallMission(ctx, "M-X", "storm")), policy.ReasonNotFound)
	o.report(domain.Telemetry{DroneID: "D1", Timestamp: began, Position: home, Battery: 80, Status: domain.DroneIdle})
	o.order("O1")
	o.decide("X", "D1", "O1")
	o.expect(o.says(o.desk.PrintMission(o.desk.RecallMission(ctx, "M-X", "storm"))), "mission M-X is recalled; its orders are PENDING again when drone D1 has left it\n")
	o.expect(o.says(o.desk.PrintMission(o.desk.RecallMission(ctx, "M-X", "storm"))), "already done: mission M-X is recalled; its orders")
	o.refused(o.desk.PrintMission(o.desk.RecallMission(ctx, "M-X", "again")), policy.ReasonAlreadyRecalled)
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectMission, "M-X")), "recalled ", "stays ACTIVE; recalled=true because storm (by ")
	m, err := o.desk.Store.Mission(ctx, "M-X")
	if err != nil || m.Status != domain.MissionActive || !m.RevokePending || m.CommandPending || m.Revision != 2 {
		t.Errorf("mission %+v, %v; want it ACTIVE, at revision 2, and owing its revocation only", m, err)
	}
}

// F-OPR-03: the event of an operator's change says old and new.
func TestDesk_ChangesPriorityAndDeadline(t *testing.T) {
	o := openOffice(t)
	ctx, due := t.Context(), time.Now().Add(2*time.Hour).UTC().Truncate(time.Second)
	o.refused(o.desk.PrintUrgency(o.desk.SetPriority(ctx, "O1", domain.PriorityHigh, "ward")), policy.ReasonNotFound)
	o.order("O1")
	o.expect(o.says(o.desk.PrintUrgency(o.desk.SetPriority(ctx, "O1", domain.PriorityHigh, "ward"))), "order O1 is PENDING, HIGH, due ")
	o.expect(o.says(o.desk.PrintUrgency(o.desk.SetPriority(ctx, "O1", domain.PriorityHigh, "ward"))), "already done: order O1 is PENDING, HIGH")
	o.refused(o.desk.PrintUrgency(o.desk.SetDeadline(ctx, "O1", time.Now().Add(-time.Second), "late")), policy.ReasonDeadlinePassed)
	o.expect(o.says(o.desk.PrintUrgency(o.desk.SetDeadline(ctx, "O1", due, "surgery"))), "due "+due.Format("2006-01-02 15:04:05"))
	o.expect(o.says(o.desk.PrintUrgency(o.desk.SetDeadline(ctx, "O1", due, "surgery"))), "already done: order O1 is PENDING")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectOrder, "O1")),
		"stays PENDING; priority=HIGH (was CRITICAL)", " because ward (by ", "stays PENDING; deadline="+due.Format(time.RFC3339)+" (was ", " because surgery (by ")
	order, err := o.desk.Store.Order(ctx, "O1")
	if err != nil || order.Revision != 3 {
		t.Errorf("order %+v, %v; want revision 3", order, err)
	}
}

// F-OPR-05
func TestDesk_PinsOrdersAndForbidsDrones(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	for _, id := range []domain.DroneID{"D1", "D2"} {
		o.report(domain.Telemetry{DroneID: id, Timestamp: time.Now(), Position: home, Battery: 90, Status: domain.DroneIdle})
	}
	o.refused(o.desk.PrintAllowed(o.desk.PinOrder(ctx, "O1", "D1", "trained crew")), policy.ReasonNotFound)
	o.order("O1")
	o.refused(o.desk.PrintAllowed(o.desk.PinOrder(ctx, "O1", "D9", "trained crew")), policy.ReasonDroneUnknown)
	o.expect(o.says(o.desk.PrintAllowed(o.desk.PinOrder(ctx, "O1", "D1", "trained crew"))), "order O1 is PENDING, for drone D1 only\n")
	o.expect(o.says(o.desk.PrintAllowed(o.desk.PinOrder(ctx, "O1", "D1", "again"))), "already done: order O1 is PENDING, for drone D1 only\n")
	o.refused(o.desk.PrintAllowed(o.desk.ForbidDrone(ctx, "O1", "D1", "noise")), policy.ReasonDronePinned)
	o.decide("X", "D2", "O1")
	entry, err := o.desk.Store.LedgerEntry(ctx, "X")
	if err != nil || entry.Reason != string(policy.ReasonDroneNotAllowed) || entry.Detail != "order O1: it is pinned to drone D1" {
		t.Errorf("a decision for D2: %+v, %v", entry, err)
	}
	o.expect(o.says(o.desk.PrintAllowed(o.desk.PinOrder(ctx, "O1", "D2", "D1 is away"))), "for drone D2 only\n")
	o.expect(o.says(o.desk.PrintAllowed(o.desk.UnpinOrder(ctx, "O1", "it landed"))), "order O1 is PENDING, for every drone\n")
	o.expect(o.says(o.desk.PrintAllowed(o.desk.UnpinOrder(ctx, "O1", "again"))), "already done: ")
	o.expect(o.says(o.desk.PrintAllowed(o.desk.ForbidDrone(ctx, "O1", "D1", "noise"))), "for every drone but D1\n")
	o.expect(o.says(o.desk.PrintAllowed(o.desk.ForbidDrone(ctx, "O1", "D2", "noise"))), "for every drone but D1, D2\n")
	o.expect(o.says(o.desk.PrintAllowed(o.desk.AllowDrone(ctx, "O1", "D1", "quiet"))), "for every drone but D2\n")
	o.expect(o.says(o.desk.PrintAllowed(o.desk.AllowDrone(ctx, "O1", "D1", "again"))), "already done: ")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectOrder, "O1")), "for every drone but D2\n",
		"stays PENDING; pinnedDroneId=D1 because trained crew (by ", "pinnedDroneId=D2 (was D1)", "pinnedDroneId=none (was D2)", "forbiddenDroneIds=D2 (was D1, D2)")
}

// F-OPR-04
func TestDesk_AcknowledgesAlerts(t *testing.T) {
	o := openOffice(t)
	ctx, id := t.Context(), "CONTACT_LOST:"+strings.Repeat("d", 128)+":2026-11-21T12:00:00Z"
	o.expect(o.says(o.desk.PrintAck(o.desk.AcknowledgeAlert(ctx, id, "on my way"))), "alert CONTACT_LOST:ddd", " is acknowledged by ", ": on my way\n")
	o.expect(o.says(o.desk.PrintAck(o.desk.AcknowledgeAlert(ctx, id, "again"))), "already done: alert ", ": on my way\n")
	for _, bad := range []string{"", "O1", "late:O1", "GHOST:", "GHOST:a/b", "GHOST:" + strings.Repeat("d", 600)} {
		if err := o.desk.PrintAck(o.desk.AcknowledgeAlert(ctx, bad, "seen")); err == nil || !strings.HasPrefix(err.Error(), "id ") {
			t.Errorf("alert %q: error %v, want one about its id", bad, err)
		}
	}
}

// F-OPR-01: a grounded drone takes no mission until it is released; a repeated command
// changes and records nothing.
func TestDesk_GroundsDrones(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	o.refused(o.desk.PrintDrone(o.desk.GroundDrone(ctx, "D1", "rotor")), policy.ReasonNotFound)
	o.report(domain.Telemetry{DroneID: "D1", Timestamp: time.Now().Add(-time.Second), Position: home, Battery: 80, Status: domain.DroneIdle})
	o.expect(o.says(o.desk.PrintDrone(o.desk.GroundDrone(ctx, "D1", "rotor 3"))), "drone D1 is IDLE, grounded: rotor 3 (by ")
	o.expect(o.says(o.desk.PrintDrone(o.desk.GroundDrone(ctx, "D1", "again"))), "already done: drone D1 is IDLE, grounded: rotor 3 (by ")
	o.expect(o.says(o.desk.ListDrones(ctx, firestoretx.DroneFilter{}, firestoretx.Page{})), "D1", "grounded")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectDrone, "D1")), "  grounded: rotor 3", "stays IDLE; grounded=true because rotor 3")
	o.expect(o.says(o.desk.PrintDrone(o.desk.ReleaseDrone(ctx, "D1", "replaced"))), "drone D1 is IDLE\n")
	o.expect(o.says(o.desk.PrintDrone(o.desk.ReleaseDrone(ctx, "D1", "replaced"))), "already done: drone D1 is IDLE\n")
	d, err := o.desk.Store.Drone(ctx, "D1")
	if err != nil || d.Revision != 4 { // registered, IDLE, grounded, released
		t.Errorf("drone %+v, %v; want revision 4", d, err)
	}
}

// F-DOC-01: the story of an entity is in order and includes rejections, whatever the ids
// of its decisions.
func TestDesk_AuditTellsTheStoryInOrder(t *testing.T) {
	o := openOffice(t)
	ctx, began := t.Context(), time.Now().Add(-10*time.Second)
	if err := o.desk.Store.Setup(ctx, []domain.Depot{{ID: "DEPOT-1", Position: home}}, nil, []domain.Drone{{ID: "D1", HomeDepotID: "DEPOT-1"}}); err != nil {
		t.Fatal(err)
	}
	o.order("O1")
	if e := o.decide("DEC-2", "D1", "O1"); e.Outcome != domain.OutcomeRejected {
		t.Fatalf("decision %+v", e)
	}
	o.report(domain.Telemetry{DroneID: "D1", Timestamp: began, Position: home, Battery: 90, Status: domain.DroneIdle})
	applied := o.decide("DEC-1", "D1", "O1")
	if applied.Outcome != domain.OutcomeApplied {
		t.Fatalf("decision %+v", applied)
	}
	mission := applied.MissionID
	o.report(
		domain.Telemetry{DroneID: "D1", Timestamp: began.Add(time.Second), Position: home, Battery: 88, Status: domain.DroneMoving, MissionID: mission},
		domain.Telemetry{DroneID: "D1", Timestamp: began.Add(2 * time.Second), Position: hospital, Battery: 85, Status: domain.DroneDelivering, MissionID: mission},
	)
	if err := o.desk.Store.RecordCycle(ctx, domain.Cycle{
		ID: "C1", DepotID: "DEPOT-1", Fence: "7", Holder: "host/1", SnapshotTime: began, StartedAt: began, EndedAt: began.Add(time.Second),
		Drones: 1, Orders: 2, Missions: 1, Assigned: 1, Outcome: "PUBLISHED", Unserved: []domain.UnservedOrder{{OrderID: "O2", Reason: "no drone free"}},
		LeftOut: []string{"document warehouses/WH-9: field position should be a place"},
	}); err != nil {
		t.Fatal(err)
	}
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectOrder, "O1")),
		"Order O1: DELIVERED, CRITICAL BLOOD", "delivered",
		"order O1: new: PENDING",
		"decision DEC-2: REJECTED because DRONE_NOT_IDLE",
		"decision DEC-1: APPLIED", "drone D1, orders O1, mission "+string(mission)+", cycle C1, fence 7",
		"PENDING -> ASSIGNED", "drone D1, mission "+string(mission),
		"ASSIGNED -> IN_DELIVERY", "TELEMETRY", "IN_DELIVERY -> DELIVERED")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectMission, string(mission))),
		"Mission "+string(mission)+": COMPLETED, drone D1, orders O1", "decision DEC-1, cycle C1",
		"Route:", "DEPOT_START", "WAREHOUSE_PICKUP", "W1", "yes", "HOSPITAL_DELIVERY", "yes", "DEPOT_RETURN",
		"decision DEC-1: APPLIED", "new: ACTIVE", "ACTIVE -> COMPLETED")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectDecision, "DEC-2")),
		"Decision DEC-2: REJECTED because DRONE_NOT_IDLE", "drone D1, orders O1, cycle C1, fence 7", "message m1", "decision DEC-2: REJECTED")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectDecision, "DEC-1")),
		"Decision DEC-1: APPLIED", "Mission "+string(mission), "Route:", "decision DEC-1: APPLIED", "PENDING -> ASSIGNED")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectCycle, "C1")),
		"Cycle C1 of depot DEPOT-1: PUBLISHED", "host/1, fence 7", "left out: document warehouses/WH-9", "Not assigned:", "O2", "no drone free",
		"decision DEC-2: REJECTED", "decision DEC-1: APPLIED")
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectDrone, "D1")),
		"Drone D1: DELIVERING", "new: UNKNOWN", "UNKNOWN -> IDLE", "IDLE -> MOVING", "missionAcked=true", "MOVING -> DELIVERING")
	if err := o.desk.Audit(ctx, operator.SubjectOrder, "O9"); err == nil || !strings.Contains(err.Error(), `nothing is recorded about order "O9"`) {
		t.Errorf("error %v", err)
	}
	if err := o.desk.Audit(ctx, "hospital", "H1"); err == nil {
		t.Error("an unknown kind of entity is accepted")
	}
	o.desk.JSON = true
	var story struct {
		Order     struct{ Status string }
		Events    []struct{ From, To, Cause string }
		Decisions []struct{ ID, Outcome string }
	}
	if err := json.Unmarshal([]byte(o.says(o.desk.Audit(ctx, operator.SubjectOrder, "O1"))), &story); err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, e := range story.Events {
		steps = append(steps, e.From+">"+e.To)
	}
	if got := strings.Join(steps, " "); got != ">PENDING PENDING>ASSIGNED ASSIGNED>IN_DELIVERY IN_DELIVERY>DELIVERED" || len(story.Decisions) != 2 {
		t.Errorf("story %s, decisions %+v", got, story.Decisions)
	}
}

// F-DOC-01: the story of a drone or a cycle names only its own decisions.
func TestDesk_AuditNamesOnlyItsOwnDecisions(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	for _, d := range []domain.Decision{
		{ID: "DEC-1", DroneID: "D1", CycleID: "C1", OrderIDs: []domain.OrderID{"O1"}},
		{ID: "DEC-2", DroneID: "D2", CycleID: "C2", OrderIDs: []domain.OrderID{"O2"}},
	} {
		if entry, err := o.desk.Store.AssignMission(ctx, d, policy.Delivery{MessageID: "m1", PublishedAt: time.Now(), ReceivedAt: time.Now()}); err != nil || entry.Outcome != domain.OutcomeRejected {
			t.Fatalf("decision %+v, %v", entry, err)
		}
	}
	//exhaustive:ignore
	recorded := map[operator.Subject]string{operator.SubjectDrone: "D1", operator.SubjectOrder: "O1", operator.SubjectCycle: "C1"}
	for subject, id := range recorded {
		story := o.says(o.desk.Audit(ctx, subject, id))
		o.expect(story, "decision DEC-1: REJECTED")
		if strings.Contains(story, "DEC-2") {
			t.Errorf("the story of %s %s names a decision of another:\n%s", subject, id, story)
		}
	}
}

// F-ORD-03: an order that was cancelled before it arrived is shown without invented
// fields.
func TestDesk_AuditOfATombstone(t *testing.T) {
	o := openOffice(t)
	if err := o.desk.Store.IngestOrder(t.Context(), domain.OrderRequest{ID: "O1", Cancel: true}, time.Now()); err != nil {
		t.Fatal(err)
	}
	said := o.says(o.desk.Audit(t.Context(), operator.SubjectOrder, "O1"))
	o.expect(said, "Order O1: CANCELLED before it arrived", "new: CANCELLED because cancelled before it arrived")
	if strings.Contains(said, "0.00000") || strings.Contains(said, "created") {
		t.Errorf("an invented position or time:\n%s", said)
	}
}

// F-DOC-01: an entity whose events have been deleted is still shown.
func TestDesk_AuditWithoutEvents(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	if err := o.desk.Store.Setup(ctx, nil, nil, []domain.Drone{{ID: "D1"}}); err != nil {
		t.Fatal(err)
	}
	o.order("O1")
	if err := o.desk.Store.RecordCycle(ctx, domain.Cycle{ID: "C1", DepotID: "DEPOT-1", Outcome: "PUBLISHED"}); err != nil {
		t.Fatal(err)
	}
	docs, err := o.clients.Firestore.Collection("events").Documents(ctx).GetAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		if _, err := doc.Ref.Delete(ctx); err != nil {
			t.Fatal(err)
		}
	}
	//exhaustive:ignore
	recorded := map[operator.Subject]string{operator.SubjectDrone: "D1", operator.SubjectOrder: "O1", operator.SubjectCycle: "C1"}
	for subject, id := range recorded {
		o.expect(strings.ToLower(o.says(o.desk.Audit(ctx, subject, id))), string(subject)+" "+strings.ToLower(id), "no changes are recorded")
	}
}

// The story of an entity without a document is still shown.
func TestDesk_AuditOfADeletedEntity(t *testing.T) {
	o := openOffice(t)
	o.order("O1")
	if _, err := o.clients.Firestore.Doc("orders/O1").Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.expect(o.says(o.desk.Audit(t.Context(), operator.SubjectOrder, "O1")), "order O1 no longer has a document", "new: PENDING")
}

// The story of an entity with a malformed document shows what it was, so that it can be
// repaired. Its messages wait as dead letters meanwhile. F-DLQ-01
func TestDesk_AuditOfAMalformedDocument(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	o.report(domain.Telemetry{DroneID: "D1", Timestamp: time.Now(), Position: home, Battery: 90, Status: domain.DroneIdle})
	o.order("O1")
	o.decide("DEC-1", "D1", "O1")
	for _, path := range []string{"drones/D1", "decisions/DEC-1"} {
		if _, err := o.clients.Firestore.Doc(path).Set(ctx, map[string]any{"status": 5, "outcome": 5}, firestore.MergeAll); err != nil {
			t.Fatal(err)
		}
	}
	for _, asked := range []struct {
		subject operator.Subject
		id      string
		parts   []string
	}{
		{operator.SubjectDrone, "D1", []string{"drone D1 has a malformed document", "IDLE -> MOVING", "Left out: ", "/drones/D1: field status", "Left out: ", "/decisions/DEC-1: field outcome"}},
		{operator.SubjectOrder, "O1", []string{"Order O1: ASSIGNED", "PENDING -> ASSIGNED", "Left out: ", "/decisions/DEC-1: field outcome"}},
		{operator.SubjectMission, "M-DEC-1", []string{"Mission M-DEC-1: ACTIVE", "new: ACTIVE", "Left out: ", "/decisions/DEC-1: field outcome"}},
		{operator.SubjectDecision, "DEC-1", []string{"decision DEC-1 has a malformed document", "IDLE -> MOVING", "Left out: ", "/decisions/DEC-1: field outcome"}},
	} {
		o.expect(o.says(o.desk.Audit(ctx, asked.subject, asked.id)), asked.parts...)
	}
	o.desk.JSON = true
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectDrone, "D1")), `"to": "MOVING"`, `"malformed": [`, "/drones/D1: field status")
}

// A malformed event is named and does not hide the others. F-DLQ-01
func TestDesk_AuditNamesAMalformedEvent(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	o.order("O1")
	o.says(o.desk.PrintOrder(o.desk.HoldOrder(ctx, "O1", "doubt")))
	o.says(o.desk.PrintOrder(o.desk.ReleaseOrder(ctx, "O1", "resolved")))
	held, err := o.clients.Firestore.Collection(firestoretx.Events).Where("reason", "==", "doubt (by "+o.desk.By+")").Documents(ctx).GetAll()
	if err != nil || len(held) != 1 {
		t.Fatalf("%d events of the hold, %v", len(held), err)
	}
	if _, err := held[0].Ref.Set(ctx, map[string]any{"to": 5}, firestore.MergeAll); err != nil {
		t.Fatal(err)
	}
	named := "/events/" + held[0].Ref.ID + ": field to"
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectOrder, "O1")), "Order O1: PENDING", "new: PENDING", "because resolved", "Left out: ", named)
	o.desk.JSON = true
	o.expect(o.says(o.desk.Audit(ctx, operator.SubjectOrder, "O1")), `"reason": "resolved (by ann@example.org)"`, `"malformed": [`, named)
}

// Ids, products and errors come from anybody. They must not control an operator's
// terminal or forge lines of a story. F-DLQ-01, F-ORD-04
func TestDesk_EscapesControlCharacters(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	const forged = "BLOOD\n2026-01-01 00:00:00.000  OPERATOR  order O1: PENDING -> CANCELLED"
	const hidden = "\x1b[2J\x1b]0;gone\a\u009b31m\u202eO2\x7f\U000e0041" // in a document of another tool
	const disguised = "\u202eO3\U000e0041"                               // not a control character, so a message may contain it
	for id, product := range map[domain.OrderID]string{"O1": forged, hidden: "MEDICINE", disguised: "MEDICINE"} {
		err := o.desk.Store.IngestOrder(ctx, domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: product, Delivery: hospital,
		}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
	}
	o.report(domain.Telemetry{DroneID: "D1" + hidden, Timestamp: time.Now(), Position: home, Battery: 90, Status: domain.DroneIdle})
	for name, print := range map[string]func() error{
		"orders":    func() error { return o.desk.ListOrders(ctx, firestoretx.OrderFilter{}, firestoretx.Page{}) },
		"next page": func() error { return o.desk.ListOrders(ctx, firestoretx.OrderFilter{}, firestoretx.Page{Limit: 1}) },
		"drones":    func() error { return o.desk.ListDrones(ctx, firestoretx.DroneFilter{}, firestoretx.Page{}) },
		"order":     func() error { return o.desk.Audit(ctx, operator.SubjectOrder, "O1") },
		"story":     func() error { return o.desk.Audit(ctx, operator.SubjectOrder, disguised) },
		"hold":      func() error { return o.desk.PrintOrder(o.desk.HoldOrder(ctx, disguised, "doubt \x1b[8m")) },
	} {
		for _, asJSON := range []bool{false, true} {
			o.desk.JSON = asJSON
			text := o.says(print())
			if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
				t.Errorf("%s, JSON %v: prints %q", name, asJSON, text[i:])
			}
			if strings.Contains(text, "\n2026-01-01") {
				t.Errorf("%s, JSON %v: a product forges a line:\n%s", name, asJSON, text)
			}
		}
	}
	o.desk.JSON = true
	var list struct{ Orders []struct{ ID string } }
	if err := json.Unmarshal([]byte(o.says(o.desk.ListOrders(ctx, firestoretx.OrderFilter{}, firestoretx.Page{}))), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Orders) != 3 || !slices.Contains(list.Orders, struct{ ID string }{hidden}) {
		t.Errorf("JSON changes ids: %q", list.Orders)
	}
	// F-API-03: a command refuses such an id with an error that is safe to print.
	err := o.desk.PrintOrder(o.desk.HoldOrder(ctx, hidden, "doubt"))
	if err == nil || !strings.Contains(err.Error(), "control character") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("an id with control characters: %v", err)
	}
}

// A lock is shown by name even if its key, as given or derived from a depot's id, is not
// in the normal form that locks are stored under (L-KEY-02).
func TestDesk_ShowsLocksOfDecomposedKeysByName(t *testing.T) {
	o := openOffice(t)
	const decomposed, composed = "cycle:Lie\u0300ge", "cycle:Li\u00e8ge"
	h, ok, err := lock.TryAcquire(t.Context(), o.desk.Locks, decomposed, lock.WithTTL(time.Minute))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	o.expect(o.says(o.desk.ListLocks(t.Context(), false, []string{decomposed}, firestoretx.Page{})), composed)
	o.expect(o.says(o.desk.ShowLock(t.Context(), decomposed, false)), composed)
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}

// Locks are shown without ids, with which a reader could release them.
func TestDesk_ShowsLocksByHash(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	o.expect(o.says(o.desk.ListLocks(ctx, false, nil, firestoretx.Page{})), "No lock is held.")
	h, ok, err := lock.TryAcquire(ctx, o.desk.Locks, "patients:ward-7", lock.WithTTL(time.Minute))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	sweeper, ok, err := lock.TryAcquire(ctx, o.desk.Locks, manager.SweeperKey, lock.WithTTL(time.Minute))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if err := o.desk.Store.Setup(ctx, []domain.Depot{{ID: "DEPOT-1", Position: home}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := o.clients.Firestore.Doc("depots/BROKEN").Set(ctx, map[string]any{"position": "nowhere"}); err != nil {
		t.Fatal(err)
	}
	known, err := o.desk.KnownKeys(ctx, []string{manager.SweeperKey}, func(d domain.DepotID) string { return "cycle:" + string(d) })
	if err != nil || fmt.Sprint(known) != "["+manager.SweeperKey+" cycle:DEPOT-1]" {
		t.Fatalf("known keys %v, %v", known, err)
	}
	for _, asJSON := range []bool{false, true} {
		o.desk.JSON = asJSON
		hashed := o.says(o.desk.ListLocks(ctx, false, known, firestoretx.Page{})) + o.says(o.desk.ShowLock(ctx, manager.SweeperKey, false))
		o.expect(hashed, lock.HashKey("patients:ward-7"), string(h.Fence()))
		for _, secret := range []string{"patients:ward-7", h.LockID(), sweeper.LockID()} {
			if strings.Contains(hashed, secret) {
				t.Errorf("%q is shown in\n%s", secret, hashed)
			}
		}
		raw := o.says(o.desk.ListLocks(ctx, true, known, firestoretx.Page{}))
		for _, part := range []string{"patients:ward-7", h.LockID(), manager.SweeperKey, sweeper.LockID()} {
			o.expect(raw, part)
		}
	}
	o.desk.JSON = false
	o.expect(o.says(o.desk.ListLocks(ctx, false, known, firestoretx.Page{})), "EXPIRES")
	o.expect(o.says(o.desk.ListLocks(ctx, true, known, firestoretx.Page{})), "EXPIRES", "LOCK ID", "anyone who has one can release the lock")
	o.expect(o.says(o.desk.ShowLock(ctx, manager.SweeperKey, false)), manager.SweeperKey, string(sweeper.Fence()), "in ")
	for _, h := range []*lock.Handle{h, sweeper} {
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
	}
	o.expect(o.says(o.desk.ShowLock(ctx, manager.SweeperKey, false)), "Nobody holds "+manager.SweeperKey)
	o.expect(o.says(o.desk.ShowLock(ctx, "ward\x1b[2J", false)), `Nobody holds ward\u001b[2J.`)
	o.desk.JSON = true
	o.expect(o.says(o.desk.ShowLock(ctx, manager.SweeperKey, false)), `"locked": false`)
	const shown = `; "locks list" shows what is held`
	for key, want := range map[string]string{
		"":                                      "key is empty" + shown,
		"a/b":                                   `key "a/b" is invalid: it has an odd number of slashes` + shown,
		"a//b":                                  `key "a//b" is invalid: it has an empty path segment` + shown,
		"a/__b__/c":                             `key "a/__b__/c" is invalid: it has a path segment reserved by Firestore (., .. or __x__)` + shown,
		"\xff":                                  `key "\xff" is invalid: it is not valid UTF-8` + shown,
		strings.Repeat("k", lock.MaxKeyBytes+1): `key "` + strings.Repeat("k", 80) + `" is invalid: it has 513 bytes in NFC, at most 512 are allowed` + shown,
	} {
		if err := o.desk.ShowLock(ctx, key, false); err == nil || err.Error() != want {
			t.Errorf("key %.20q: error %v, want %s", key, err, want)
		}
	}
}

// L-END-03: an operator breaks the lock of a holder whose clock is an hour ahead. Who did
// it and why is recorded, and the next fence is higher.
func TestDesk_BreaksALock(t *testing.T) {
	o := openOffice(t)
	ctx := t.Context()
	const key = "optimizer:cycle:DEPOT-1"
	o.expect(o.says(o.desk.BreakLock(ctx, key, "stuck")), "Nobody holds "+key)
	h, ok, err := lock.TryAcquire(ctx, o.desk.Locks, key, lock.WithTTL(time.Hour))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer h.Close()
	o.expect(o.says(o.desk.BreakLock(ctx, key, "its clock is\nan hour ahead")), "Broke "+key, string(h.Fence()))
	breaks, err := o.desk.Store.LockBreaks(ctx)
	if err != nil || len(breaks) != 1 || breaks[0].Key != key || breaks[0].Fence != string(h.Fence()) ||
		breaks[0].BrokenBy != o.desk.By || breaks[0].Why != "its clock is an hour ahead" || breaks[0].BrokenAt.IsZero() {
		t.Errorf("on record: %+v, %v", breaks, err)
	}
	next, ok, err := lock.TryAcquire(ctx, o.desk.Locks, key, lock.WithTTL(time.Minute))
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if next.Fence() <= h.Fence() {
		t.Errorf("fence %s after %s", next.Fence(), h.Fence())
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	for reason, want := range map[string]string{" ": "reason is blank"} {
		if err := o.desk.BreakLock(ctx, key, reason); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("reason %q: error %v", reason, err)
		}
	}
}
