package policy

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

// lateHazards are stories of reports that arrive late. F-TEL-11, F-TEL-12, I10
var lateHazards = []hazard{
	{"a report from a stop that arrives after a newer one counts", func(w *world) {
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.says(120, domain.DroneMoving, "M-X") // back from the hospital
		w.expectOrder("O1", domain.OrderInDelivery, false)
		before := w.drones["D1"]
		w.lateAt(90, hospitalsAt[0], "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.expectMission("M-X", domain.MissionCompleted, "")
		if o := w.orders["O1"]; !o.DeliveredAt.Equal(at(90)) {
			w.violated("delivered at %s", o.DeliveredAt)
		}
		if after := w.drones["D1"]; after.Position != before.Position || !after.LastUpdate.Equal(before.LastUpdate) || after.Status != before.Status {
			w.violated("drone %+v moved back to %+v", before, after)
		}
	}},
	{"a stop near an earlier one is not reached before its pickup", func(w *world) {
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(30, hospitalsAt[0], domain.DroneMoving, "M-X") // on its way to the warehouse
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.says(70, domain.DroneMoving, "M-X")
		w.expectOrder("O1", domain.OrderInDelivery, false)
		w.lateAt(20, warehouseAt, "M-X") // it had picked up before that
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"evidence that cannot count yet is kept", func(w *world) {
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(5, domain.DroneMoving, "M-X")
		w.saysAt(90, hospitalsAt[0], domain.DroneDelivering, "M-X")
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.lateAt(60, warehouseAt, "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
		if o := w.orders["O1"]; !o.DeliveredAt.Equal(at(90)) {
			w.violated("delivered at %s", o.DeliveredAt)
		}
	}},
	{"a parked drone's orders are not reassigned while late reports may come", func(w *world) {
		w.with(readyDrone("D1"), readyDrone("D2"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.says(120, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneMoving, "M-X")
		w.hearOf("D2", 145)
		w.expectOutcome(fresh(plan("Y", "D2", "O1"), 144), string(ReasonOrderNotPending))
		w.lateAt(90, hospitalsAt[0], "M-X")
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.says(146, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"a parked drone that flies on keeps its mission", func(w *world) {
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(5, domain.DroneMoving, "M-X")
		w.says(10, domain.DroneIdle, "")
		w.says(20, domain.DroneMoving, "M-X")
		w.says(45, domain.DroneIdle, "")
		w.says(70, domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionActive, "")
		w.says(75, domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionFailed, domain.FailureAbortedByDrone)
	}},
	{"an acknowledgement that arrives late keeps the mission", func(w *world) { // F-TEL-06 b
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(12, domain.DroneMoving, "")
		w.lateAt(10, awayAt, "M-X")
		if d := w.drones["D1"]; !d.MissionAcked || !d.MissionMoved || !d.FreeAfter.IsZero() {
			w.violated("drone %+v", d)
		}
		w.says(30, domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionActive, "")
	}},
	{"an order of a failed mission that turns out to be delivered is not sent again", func(w *world) {
		w.failedBeforePickup()
		w.expectOrder("O1", domain.OrderPending, false)
		w.lateAt(12, warehouseAt, "M-X")
		w.expectOrder("O1", domain.OrderPending, true) // the parcel is aboard
		w.lateAt(14, hospitalsAt[0], "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.expectMission("M-X", domain.MissionFailed, domain.FailureAbortedByDrone)
		if o := w.orders["O1"]; o.AssignedMissionID != "M-X" || o.AssignedDroneID != "D1" || o.HeldReason != "" || !o.DeliveredAt.Equal(at(14)) {
			w.violated("order %+v", o)
		}
	}},
	{"an order released in error that turns out to be delivered is not sent again", func(w *world) {
		w.failedAboard()
		w.expectError(w.releaseOrder("O1"), "")
		w.lateAt(15, hospitalsAt[0], "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"an order released in error and reassigned is withdrawn when it turns out to be delivered", func(w *world) {
		w.failedAboard()
		w.expectError(w.releaseOrder("O1"), "")
		w.hearOf("D2", 60)
		w.expectOutcome(fresh(plan("Y", "D2", "O1"), 59), applied)
		w.lateAt(15, hospitalsAt[0], "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.expectMission("M-Y", domain.MissionFailed, domain.FailureWithdrawn)
	}},
	{"one report proves pickup and delivery of a failed mission", func(w *world) {
		w.failedBeforePickup()
		w.claims(14, 3, "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"a held order that turns out to be delivered becomes DELIVERED", func(w *world) {
		w.failedAboard()
		w.lateAt(15, hospitalsAt[0], "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"a sighting of a delivery without its pickup is not a delivery", func(w *world) {
		w.failedBeforePickup()
		w.lateAt(14, hospitalsAt[0], "M-X")
		w.expectOrder("O1", domain.OrderPending, false)
	}},
	{"a reassigned order that turns out to be delivered is withdrawn from its new mission", func(w *world) {
		w.failedBeforePickup()
		w.hearOf("D2", 60)
		w.with(openOrder("O2", 1))
		w.expectOutcome(fresh(plan("Y", "D2", "O1", "O2"), 59), applied)
		w.claims(14, 3, "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
		if m := w.missions["M-Y"]; m.Status != domain.MissionActive || len(m.Route) != 4 || !slices.Equal(m.OrderIDs, []domain.OrderID{"O2"}) || !m.CommandPending {
			w.violated("mission %+v", m)
		}
		w.expectOrder("O2", domain.OrderAssigned, false)
	}},
	{"a new mission whose orders all turn out to be delivered fails as withdrawn", func(w *world) {
		w.failedBeforePickup()
		w.hearOf("D2", 60)
		w.expectOutcome(fresh(plan("Y", "D2", "O1"), 59), applied)
		w.claims(14, 3, "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.expectMission("M-Y", domain.MissionFailed, domain.FailureWithdrawn)
		w.expectDrone("D2", domain.DroneMoving, "")
	}},
	{"a parcel that was put down and picked up again is noted", func(w *world) {
		w.failedBeforePickup()
		w.hearOf("D2", 60)
		w.expectOutcome(fresh(plan("Y", "D2", "O1"), 59), applied)
		w.clock(70)
		w.expectError(w.report(near(report("D2", domain.DroneMoving, "M-Y", at(70)), warehouseAt)), "")
		w.expectOrder("O1", domain.OrderInDelivery, false)
		notes := w.notes
		w.claims(14, 3, "M-X")
		w.expectOrder("O1", domain.OrderInDelivery, false)
		if w.notes != notes+1 {
			w.violated("%d notes", w.notes-notes)
		}
		w.expectError(w.report(counted(report("D1", domain.DroneMoving, "M-X", at(14)), 3)), ReasonStaleTelemetry)
		if w.notes != notes+1 {
			w.violated("noted again")
		}
	}},
	{"a ghost that flies on can still deliver", func(w *world) { // F-TEL-10
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(10, warehouseAt, domain.DroneMoving, "M-X")
		w.clock(130)
		w.sweep() // silent
		w.expectMission("M-X", domain.MissionFailed, domain.FailureContactLost)
		w.expectOrder("O1", domain.OrderPending, true)
		w.saysAt(140, hospitalsAt[0], domain.DroneDelivering, "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"a late report corrects a delivery's time, which was in time after all", func(w *world) {
		o := openOrder("O1", 0)
		o.Deadline = at(85)
		w.with(readyDrone("D1"), o)
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.saysAt(90, hospitalsAt[0], domain.DroneDelivering, "M-X")
		if o := w.orders["O1"]; !o.Late {
			w.violated("delivered after its deadline and not late")
		}
		w.lateAt(80, hospitalsAt[0], "M-X")
		if o := w.orders["O1"]; o.Late || !o.DeliveredAt.Equal(at(80)) || o.Status != domain.OrderDelivered {
			w.violated("order %+v", o)
		}
	}},
	{"completed stops count whatever the position", func(w *world) { // F-TEL-12
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.counts(60, warehouseAt, 1)
		w.expectOrder("O1", domain.OrderAssigned, false) // at the stop, but nothing picked up yet
		w.counts(70, awayAt, 2)
		w.expectOrder("O1", domain.OrderInDelivery, false)
		w.counts(80, awayAt, 1)
		w.expectOrder("O1", domain.OrderInDelivery, false) // the count never falls
		w.counts(90, awayAt, 4)
		w.expectOrder("O1", domain.OrderDelivered, false)
		if o := w.orders["O1"]; !o.DeliveredAt.Equal(at(90)) {
			w.violated("delivered at %s", o.DeliveredAt)
		}
	}},
	{"one report with completed stops suffices", func(w *world) { // F-TEL-12
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.counts(100, awayAt, 3)
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"more completed stops than the route has are refused", func(w *world) { // F-TEL-12
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.clock(60)
		_, change, err := w.telemetry(w.binding("D1"), counted(report("D1", domain.DroneMoving, "M-X", at(60)), 5), at(60))
		w.expectError(err, ReasonTooManyStops)
		if !change.Empty() {
			w.violated("it changed %+v", change)
		}
	}},
	{"a drone that still counts stops of the longer route proves no delivery by it", func(w *world) { // F-TEL-12, F-ORD-03
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		w.expectOutcome(plan("X", "D1", "O1", "O2"), applied) // start, P1, P2, D1, D2, return
		w.counts(10, warehouseAt, 2)
		w.clock(11)
		w.expectError(w.request(cancellation("O2")), "")
		w.counts(12, warehouseAt, 3) // O2's pickup by the route it knows; O1's delivery by the new one
		w.expectOrder("O1", domain.OrderInDelivery, false)
		w.counts(50, hospitalsAt[0], 3) // now by the new one, at the stop
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"a failed drone near a stop has not served it", func(w *world) {
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.saysAt(90, hospitalsAt[0], domain.DroneProblem, "M-X")
		w.expectOrder("O1", domain.OrderInDelivery, false)
	}},
}

// failedBeforePickup lets mission M-X of O1 fail because D1 parked without a report from
// any stop.
func (w *world) failedBeforePickup() {
	w.with(readyDrone("D1"), readyDrone("D2"), openOrder("O1", 0))
	w.expectOutcome(plan("X", "D1", "O1"), applied)
	w.says(10, domain.DroneMoving, "M-X")
	w.says(20, domain.DroneIdle, "")
	w.says(50, domain.DroneIdle, "")
	w.expectMission("M-X", domain.MissionFailed, domain.FailureAbortedByDrone)
}

// failedAboard lets mission M-X of O1 fail because D1 parked after it had picked up.
func (w *world) failedAboard() {
	w.with(readyDrone("D1"), readyDrone("D2"), openOrder("O1", 0))
	w.expectOutcome(plan("X", "D1", "O1"), applied)
	w.saysAt(10, warehouseAt, domain.DroneMoving, "M-X")
	w.says(20, domain.DroneIdle, "")
	w.says(50, domain.DroneIdle, "")
	w.expectOrder("O1", domain.OrderPending, true)
}

// lateAt delivers a report of D1 from a position, measured earlier.
func (w *world) lateAt(seconds float64, p domain.Position, mission domain.MissionID) {
	w.expectError(w.report(near(report("D1", domain.DroneMoving, mission, at(seconds)), p)), "")
}

// claims delivers a report of D1 with its completed stops, measured earlier.
func (w *world) claims(seconds float64, completed int, mission domain.MissionID) {
	w.expectError(w.report(counted(report("D1", domain.DroneMoving, mission, at(seconds)), completed)), "")
}

// counts delivers a report of D1 on M-X with its completed stops, as soon as it is
// measured.
func (w *world) counts(seconds float64, p domain.Position, completed int) {
	w.clock(seconds)
	w.expectError(w.report(near(counted(report("D1", domain.DroneMoving, "M-X", w.now), completed), p)), "")
}

func counted(t domain.Telemetry, completed int) domain.Telemetry {
	t.CompletedStops = &completed
	return t
}

// hearOf advances the clock and has a drone report at that time.
func (w *world) hearOf(id domain.DroneID, seconds float64) {
	w.clock(seconds)
	d := w.drones[id]
	d.SeenAt = w.now
	w.with(d)
}

func fresh(d domain.Decision, snapshot float64) domain.Decision {
	d.SnapshotTime = at(snapshot)
	return d
}

func init() { hazards = append(hazards, lateHazards...) }

// flight is the reports of a drone on a mission of several orders, with their delays.
type flight struct {
	decision domain.Decision
	orders   []domain.Order
	reports  []travelled
}

type travelled struct {
	domain.Telemetry
	arrives time.Time
}

// flightGenerator generates flights of one to three orders, whose destinations may be
// close to each other. A drone may fly past stops, report once from a stop, and claim its
// completed stops. It ends at home, parked.
var flightGenerator = rapid.Custom(func(t *rapid.T) flight {
	var f flight
	points := []domain.Position{warehouseAt, hospitalsAt[0], hospitalsAt[1], {Lat: hospitalsAt[0].Lat + 0.0005, Lon: hospitalsAt[0].Lon}}
	ids := []domain.OrderID{"O1", "O2", "O3"}[:rapid.IntRange(1, 3).Draw(t, "orders")]
	f.decision = domain.Decision{
		ID: "X", CycleID: "C", Fence: firstFence, SnapshotTime: at(-2), DroneID: "D1", OrderIDs: ids, PayloadHash: "payload",
		EstimatedBatteryConsumption: 10, EstimatedDurationMinutes: 30,
		Route: []domain.Waypoint{{Type: domain.WaypointDepotStart, Position: depotAt}},
	}
	var todo []domain.Waypoint
	for i, id := range ids {
		pickup := rapid.SampledFrom(points).Draw(t, "pickup")
		o := openOrder(id, i)
		o.Pickup = &pickup
		f.orders = append(f.orders, o)
		todo = append(todo, domain.Waypoint{Type: domain.WaypointWarehousePickup, OrderID: id, Position: pickup})
	}
	for len(todo) > 0 {
		i := rapid.IntRange(0, len(todo)-1).Draw(t, "next")
		stop := todo[i]
		f.decision.Route = append(f.decision.Route, stop)
		todo = slices.Delete(todo, i, i+1)
		if stop.Type == domain.WaypointWarehousePickup {
			o := &f.orders[slices.Index(ids, stop.OrderID)]
			o.Delivery = rapid.SampledFrom(points).Draw(t, "delivery")
			todo = append(todo, domain.Waypoint{Type: domain.WaypointHospitalDelivery, OrderID: o.ID, Position: o.Delivery})
		}
	}
	f.decision.Route = append(f.decision.Route, domain.Waypoint{Type: domain.WaypointDepotReturn, Position: depotAt})

	seconds := 5.0
	says := func(p domain.Position, status domain.DroneStatus, mission domain.MissionID, completed int) {
		r := near(report("D1", status, mission, at(seconds)), p)
		if completed > 0 && rapid.IntRange(0, 3).Draw(t, "counts") == 0 {
			r = counted(r, completed)
		}
		delay := time.Duration(rapid.IntRange(0, 29_000).Draw(t, "delay in ms")) * time.Millisecond
		f.reports = append(f.reports, travelled{r, r.Timestamp.Add(delay)})
		if rapid.IntRange(0, 4).Draw(t, "twice") == 0 {
			f.reports = append(f.reports, travelled{r, r.Timestamp.Add(delay + time.Second)})
		}
		seconds += float64(rapid.IntRange(1, 15).Draw(t, "seconds"))
	}
	says(depotAt, domain.DroneMoving, "M-X", 0)
	for i, stop := range f.decision.Route[1:] {
		for range rapid.IntRange(0, 2).Draw(t, "on the way") {
			says(rapid.SampledFrom(append([]domain.Position{awayAt}, points...)).Draw(t, "place"), domain.DroneMoving, "M-X", i+1)
		}
		for range rapid.IntRange(0, 3).Draw(t, "at the stop") {
			says(stop.Position, domain.DroneDelivering, "M-X", i+1)
		}
	}
	seconds = max(seconds, 70) // its first report has arrived by then
	for range 6 {
		says(depotAt, domain.DroneIdle, "", 0)
		seconds += 10
	}
	return f
})

// fly sets up the flight in a world and delivers its reports in their order of arrival.
func (f flight) fly(r rules, reports []travelled) *world {
	return f.flyWith(r, reports, func(*world, time.Time) {})
}

// flyWith is fly with something done before each report arrives.
func (f flight) flyWith(r rules, reports []travelled, before func(w *world, next time.Time)) *world {
	w := newWorld(r)
	w.with(readyDrone("D1"))
	for _, o := range f.orders {
		w.with(o)
	}
	w.expectOutcome(f.decision, applied)
	reports = slices.Clone(reports)
	slices.SortStableFunc(reports, func(a, b travelled) int { return a.arrives.Compare(b.arrives) })
	for _, t := range reports {
		before(w, t.arrives)
		w.now = t.arrives
		_ = w.report(t.Telemetry) // stale or not
	}
	w.now = w.now.Add(time.Minute)
	w.sweep()
	return w
}

// outcome is a flight's final documents, without the server's times and revisions.
func (w *world) ending() string {
	m, d := w.missions["M-X"], w.drones["D1"]
	text := fmt.Sprintf("mission %s %s, %d stops, %v; drone %s on %q at %v, %s", m.Status, m.FailureReason, m.ReachedStops, m.Sightings,
		d.Status, d.CurrentMissionID, d.Position, d.LastUpdate)
	for _, id := range slices.Sorted(maps.Keys(w.orders)) {
		o := w.orders[id]
		text += fmt.Sprintf("\n%s %s, held %t, late %t, attempts %d, mission %q, delivered %s", id, o.Status, o.Held, o.Late, o.Attempts, o.AssignedMissionID, o.DeliveredAt)
	}
	return text
}

// F-TEL-11: if reports are delayed by less than the grace, reordered and duplicated, the
// final documents are the same as if they had arrived as measured.
func TestLateReports_ConvergeWhateverTheirOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := flightGenerator.Draw(t, "flight")
		if err := f.converges(contract()); err != nil {
			t.Fatal(err)
		}
	})
}

func (f flight) converges(r rules) error {
	inOrder := slices.Clone(f.reports)
	for i := range inOrder {
		inOrder[i].arrives = inOrder[i].Timestamp
	}
	asMeasured, asArrived := f.fly(r, inOrder), f.fly(r, f.reports)
	if err := asMeasured.err(); err != nil {
		return fmt.Errorf("as measured: %w", err)
	}
	if err := asArrived.err(); err != nil {
		return fmt.Errorf("as arrived: %w", err)
	}
	if want, got := asMeasured.ending(), asArrived.ending(); got != want {
		return fmt.Errorf("as arrived\n%s\nas measured\n%s", got, want)
	}
	return nil
}

// F-TEL-11, I10: however late reports are, no proof is lost: each order that is delivered
// when they arrive as measured is also delivered in the end.
func TestLateReports_ProveDeliveriesHoweverLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := flightGenerator.Draw(t, "flight")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		late := slices.Clone(f.reports)
		for i := range late {
			if late[i].MissionID != "" {
				late[i].arrives = late[i].Timestamp.Add(time.Duration(random.IntN(300)) * time.Second)
			}
		}
		inOrder := slices.Clone(f.reports)
		for i := range inOrder {
			inOrder[i].arrives = inOrder[i].Timestamp
		}
		asMeasured, asArrived := f.fly(contract(), inOrder), f.fly(contract(), late)
		if err := asArrived.err(); err != nil {
			t.Fatal(err)
		}
		for id, o := range asMeasured.orders {
			if got := asArrived.orders[id]; o.Status == domain.OrderDelivered && got.Status != domain.OrderDelivered {
				t.Fatalf("order %s is %s, held %t: %s\n%s", id, got.Status, got.Held, got.HeldReason, asArrived.ending())
			}
		}
	})
}
