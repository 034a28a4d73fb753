package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

// advanceAt is an advance position, 2.2 km from the depot.
var advanceAt = domain.Position{Lat: 48.82, Lon: 2.30}

func chargeTo(percent float64) domain.Waypoint {
	return domain.Waypoint{Type: domain.WaypointCharge, Position: depotAt, ChargeToPercent: percent}
}

func waitUntil(seconds float64) domain.Waypoint {
	return domain.Waypoint{Type: domain.WaypointWait, Position: advanceAt, WaitUntil: at(seconds)}
}

// standby decides that drone D1 charge or wait, and then return to its depot.
func standby(id domain.DecisionID, snapshot float64, duties ...domain.Waypoint) domain.Decision {
	d := fresh(plan(id, "D1"), snapshot)
	d.OrderIDs, d.EstimatedBatteryConsumption = nil, 12
	d.Route = append(duties, domain.Waypoint{Type: domain.WaypointDepotReturn, Position: depotAt})
	return d
}

// standsBy has D1 on mission M-X without orders, at 10 s: to wait at the advance position
// until 600 s, and then to charge to 95 %.
func (w *world) standsBy() {
	d := readyDrone("D1")
	d.SupportsAmendments, d.SupportsStandby = true, true
	w.with(d, readyDrone("D2"), openOrder("O1", 0), openOrder("O2", 1))
	w.expectOutcome(standby("X", -2, waitUntil(600), chargeTo(95)), applied)
	w.hears(waiting(1, 10, 0))
}

// queues has D1 on mission M-X without orders, which is to take ten minutes: to charge to 95 %.
// At 1199 s it says where it is.
func (w *world) queues(where domain.Position) {
	d := readyDrone("D1")
	d.SupportsAmendments, d.SupportsStandby = true, true
	w.with(d, openOrder("O1", 0))
	x := standby("X", -2, chargeTo(95))
	x.EstimatedDurationMinutes = 10
	w.expectOutcome(x, applied)
	w.hears(near(charged(inQueue(1, 1199, 0, domain.DroneIdle), 40), where))
	w.sweep()
	w.expectMission("M-X", domain.MissionActive, "")
}

// inQueue is what D1 says at its depot.
func inQueue(revision int, measured float64, completed int, status domain.DroneStatus) domain.Telemetry {
	t := near(waiting(revision, measured, completed), depotAt)
	t.Status = status
	return t
}

// waiting is what D1 says on a revision of M-X.
func waiting(revision int, measured float64, completed int) domain.Telemetry {
	t := names(revision, measured, completed)
	t.SupportsStandby = true
	return t
}

// serves decides that D1 serve orders instead, planned on a revision of M-X.
func serves(id domain.DecisionID, revision int, snapshot float64, orders ...domain.OrderID) domain.Decision {
	d := amendment(id, revision, snapshot, orders...)
	d.Route = d.Route[1:]
	return d
}

// standbyHazards are stories of missions without orders. F-AMD-06
var standbyHazards = []hazard{
	{"a drone waits, charges and is free when it has landed", func(w *world) {
		w.standsBy()
		w.expectDrone("D1", domain.DroneMoving, "M-X")
		w.hears(near(waiting(1, 300, 0), advanceAt)) // there, and not done
		w.expect(w.missions["M-X"].ReachedStops == 0, "being there counts as having waited")
		w.hears(waiting(1, 601, 1))
		w.expect(w.missions["M-X"].ReachedStops == 1, "a completed stop does not count")
		w.hears(charged(waiting(1, 900, 1), 94))
		w.expectMission("M-X", domain.MissionActive, "")
		w.hears(charged(waiting(1, 960, 2), 95))
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.says(970, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"a drone that is parked while it waits and names its mission stays on it", func(w *world) {
		w.standsBy()
		for _, status := range []domain.DroneStatus{domain.DroneIdle, domain.DroneCharging} {
			t := waiting(1, w.now.Sub(start).Seconds()+1, 0)
			t.Status = status
			w.hears(t)
			w.expectDrone("D1", domain.DroneMoving, "M-X")
		}
		w.expectMission("M-X", domain.MissionActive, "")
	}},
	{"a drone that counts no stops has waited when the time has come", func(w *world) {
		w.standsBy()
		w.hears(uncounted(waiting(1, 599, 0)))
		w.expect(w.missions["M-X"].ReachedStops == 0, "it has waited too early")
		w.hears(uncounted(waiting(1, 600, 0)))
		w.expect(w.missions["M-X"].ReachedStops == 1, "the time has come, and it does not count")
	}},
	{"a drone that has landed with the charge has charged, whatever was lost", func(w *world) {
		w.standsBy()
		w.clock(700)
		w.expectError(w.report(charged(report("D1", domain.DroneIdle, "", w.now), 96)), "")
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"a drone that leaves its duty undone has aborted it", func(w *world) {
		w.standsBy()
		w.says(20, domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionActive, "")
		w.says(51, domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionFailed, domain.FailureAbortedByDrone)
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"an order amends the mission at once, wherever the drone is", func(w *world) {
		w.standsBy()
		r := waiting(1, 11, 0) // a second before it arrives
		r.Position = advanceAt.Towards(depotAt, 80)
		w.hears(r)
		w.expectOutcome(serves("Y", 1, 10.5, "O1"), applied)
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.hears(waiting(2, 12, 0))
		w.expectRevision(2, 0)
		w.hears(waiting(2, 40, 2))
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.expectMission("M-X", domain.MissionCompleted, "")
	}},
	{"what the drone has done so far need not stay in the route", func(w *world) {
		w.standsBy()
		w.hears(waiting(1, 601, 1))
		w.expectOutcome(serves("Y", 1, 600.5, "O1"), applied)
		w.hears(waiting(2, 602, 0))
		w.expect(w.missions["M-X"].ReachedStops == 0, "stops of the new route count that were not served")
		w.expectError(w.report(waiting(1, 601.5, 2)), ReasonStaleTelemetry) // late, of the old route
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.hears(waiting(2, 640, 2))
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"what the drone has done so far may stay in the route", func(w *world) {
		w.standsBy()
		w.hears(waiting(1, 601, 1))
		d := serves("Y", 1, 600.5, "O1")
		d.Route = append([]domain.Waypoint{waitUntil(600)}, d.Route...)
		w.expectOutcome(d, applied)
		w.hears(waiting(2, 602, 1))
		w.expect(w.missions["M-X"].ReachedStops == 1, "the stop that it has done does not count")
		w.hears(waiting(2, 640, 3))
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"an order that the drone never hears of waits again, and the drone stands by", func(w *world) { // F-AMD-03
		w.standsBy()
		w.expectOutcome(serves("Y", 1, 10, "O1"), applied)
		w.hears(waiting(1, 35, 0))
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.hears(waiting(1, 36, 0))
		w.expectOrder("O1", domain.OrderPending, false)
		w.expectMission("M-X", domain.MissionActive, "")
		w.expectOutcome(serves("Z", 1, 36, "O1"), applied)
		w.hears(waiting(3, 37, 0))
		w.expectRevision(3, 0)
	}},
	{"an order that was added keeps a mission that is done from ending", func(w *world) {
		w.standsBy()
		w.hears(waiting(1, 601, 1))
		w.expectOutcome(serves("Y", 1, 600.5, "O1"), applied)
		w.hears(waiting(1, 602, 2))
		w.expectMission("M-X", domain.MissionActive, "")
		w.hears(waiting(2, 603, 0))
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.hears(waiting(2, 640, 2))
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"a drone that lands instead of taking the order leaves it to others", func(w *world) {
		w.standsBy()
		w.expectOutcome(serves("Y", 1, 10, "O1"), applied)
		w.says(12, domain.DroneIdle, "")
		w.says(43, domain.DroneIdle, "")
		w.expectOrder("O1", domain.OrderPending, false)
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"a drone on standby gets no second mission", func(w *world) { // I1
		w.standsBy()
		w.expectOutcome(fresh(plan("Y", "D1", "O1"), 10), string(ReasonDroneNotIdle))
		w.expectOutcome(standby("Z", 10, chargeTo(90)), string(ReasonDroneNotIdle))
	}},
	{"another mission without orders replaces the first", func(w *world) {
		w.standsBy()
		d := standby("Y", 10, chargeTo(99))
		d.AmendsMissionID, d.AmendsRevision = "M-X", 1
		w.expectOutcome(d, applied)
		w.hears(waiting(2, 11, 0))
		w.hears(charged(waiting(2, 100, 1), 99))
		w.expectMission("M-X", domain.MissionCompleted, "")
	}},
	{"cancelling the only order ends the mission and loses nothing", func(w *world) { // F-ORD-03
		w.standsBy()
		w.expectOutcome(serves("Y", 1, 10, "O1"), applied)
		w.expectError(w.request(cancellation("O1")), "")
		w.expectOrder("O1", domain.OrderCancelled, false)
		w.expectMission("M-X", domain.MissionFailed, domain.FailureWithdrawn)
	}},
	{"a mission that waits longer than its estimate is not stalled", func(w *world) { // F-TEL-09
		w.standsBy()
		m := w.missions["M-X"]
		m.EstimatedDurationMinutes = 1
		w.with(m)
		w.hears(uncounted(waiting(1, 590, 0)))
		w.sweep()
		w.expectMission("M-X", domain.MissionActive, "")
		w.hears(waiting(1, 720, 0))
		w.sweep()
		w.expectMission("M-X", domain.MissionFailed, domain.FailureStalled)
	}},
	{"a drone that waits for a charging slot is not stalled", func(w *world) { // F-TEL-09, F-CHG-01
		w.queues(depotAt)
		w.hears(charged(inQueue(1, 8000, 0, domain.DroneIdle), 60))
		w.sweep()
		w.expectMission("M-X", domain.MissionActive, "")
		w.expectOutcome(serves("Y", 1, 8000, "O1"), applied) // an order need not wait for it
	}},
	{"a drone in a slot after it waited for one is not stalled", func(w *world) { // F-TEL-09, F-CHG-01
		w.queues(depotAt)
		w.hears(charged(inQueue(1, 7900, 0, domain.DroneCharging), 90))
		w.sweep()
		w.hears(charged(inQueue(1, 7950, 1, domain.DroneMoving), 95))
		w.expectMission("M-X", domain.MissionCompleted, "")
	}},
	{"a drone that never gets charge is stalled after two hours more", func(w *world) { // F-TEL-09
		w.queues(depotAt)
		w.hears(charged(inQueue(1, 8399, 0, domain.DroneCharging), 40))
		w.sweep()
		w.expectMission("M-X", domain.MissionActive, "")
		w.hears(charged(inQueue(1, 8401, 0, domain.DroneCharging), 40))
		w.sweep()
		w.expectMission("M-X", domain.MissionFailed, domain.FailureStalled)
	}},
	{"a drone that does not arrive where it is to charge is stalled", func(w *world) { // F-TEL-09
		w.queues(depotAt.Towards(advanceAt, 80))
		w.hears(near(charged(inQueue(1, 1201, 0, domain.DroneMoving), 40), depotAt.Towards(advanceAt, 80)))
		w.sweep()
		w.expectMission("M-X", domain.MissionFailed, domain.FailureStalled)
	}},
	{"a drone at its depot that is not to charge yet is stalled", func(w *world) { // F-TEL-09
		w.standsBy()
		m := w.missions["M-X"]
		m.EstimatedDurationMinutes = 10
		w.with(m)
		w.hears(near(waiting(1, 1201, 0), depotAt))
		w.sweep()
		w.expectMission("M-X", domain.MissionFailed, domain.FailureStalled)
	}},
	{"a silent drone's mission fails", func(w *world) {
		w.standsBy()
		w.clock(131)
		w.sweep()
		w.expectMission("M-X", domain.MissionFailed, domain.FailureContactLost)
	}},
	{"a recalled mission is given up", func(w *world) { // F-OPR-03
		w.standsBy()
		w.expectError(w.recallMission("M-X"), "")
		w.expect(w.missions["M-X"].Command().Revoke, "it is not revoked")
		w.expectOutcome(serves("Y", 1, 10, "O1"), string(ReasonNotAmendable))
	}},
	{"the next mission begins on the way home", func(w *world) {
		w.standsBy()
		w.hears(waiting(1, 961, 2))
		w.expectOutcome(fresh(plan("Y", "D1", "O1"), 961), applied)
		w.expectDrone("D1", domain.DroneMoving, "M-Y")
	}},
}

func uncounted(t domain.Telemetry) domain.Telemetry {
	t.CompletedStops = nil
	return t
}

func TestStandby_Stories(t *testing.T) {
	for _, h := range standbyHazards {
		t.Run(h.name, func(t *testing.T) {
			if err := tell(contract(), h); err != nil {
				t.Error(err)
			}
		})
	}
}

// F-AMD-06: every reason against a mission without orders, and what it allows.
var refusedStandby = []struct {
	name   string
	drone  func(*domain.Drone)
	decide func(*domain.Decision)
	want   Reason
}{
	{"nothing against it", nil, nil, ""},
	{"a drone that does not say it can", func(d *domain.Drone) { d.SupportsStandby = false }, nil, ReasonStandbyUnsupported},
	{"a drone that cannot be amended", func(d *domain.Drone) { d.SupportsAmendments = false }, nil, ReasonStandbyUnsupported},
	{"a busy drone", func(d *domain.Drone) { d.Status = domain.DroneCharging }, nil, ReasonDroneNotIdle},
	{"a grounded drone", func(d *domain.Drone) { d.Grounded = true }, nil, ReasonDroneGrounded},
	{"a silent drone", func(d *domain.Drone) { d.SeenAt = at(-15.001) }, nil, ReasonDroneSilent},
	{"a drone that was away since the snapshot", func(d *domain.Drone) { d.IdleSince = at(-1) }, nil, ReasonDroneChanged},
	{"too little charge to fly", func(d *domain.Drone) { d.Battery = 20 }, func(d *domain.Decision) { d.EstimatedBatteryConsumption = 0 }, ReasonLowBattery},
	{"too little charge to get back, by the plan", nil, func(d *domain.Decision) {
		d.Route, d.EstimatedBatteryConsumption = []domain.Waypoint{waitUntil(600)}, 71
	}, ReasonLowBattery},
	{"too little charge to get back, by the distance", func(d *domain.Drone) { d.Battery = 31.1 }, func(d *domain.Decision) {
		d.Route, d.EstimatedBatteryConsumption = []domain.Waypoint{waitUntil(600)}, 0
	}, ReasonLowBattery},
	{"just enough charge to get back", func(d *domain.Drone) { d.Battery = 31.2 }, func(d *domain.Decision) {
		d.Route, d.EstimatedBatteryConsumption = []domain.Waypoint{waitUntil(600)}, 0
	}, ""},
	{"a drone that uses much", func(d *domain.Drone) { d.Battery, d.ConsumptionPerKm = 60, 10 }, func(d *domain.Decision) {
		d.Route, d.EstimatedBatteryConsumption = []domain.Waypoint{waitUntil(600)}, 0
	}, ReasonLowBattery},
	{"charging at another depot on the way", func(d *domain.Drone) { d.Battery = 26 }, func(d *domain.Decision) {
		there := chargeTo(80)
		there.Position = advanceAt
		d.Route = []domain.Waypoint{there, d.Route[len(d.Route)-1]}
	}, ReasonBadCharge},
	{"charging where it is on little charge", func(d *domain.Drone) { d.Battery = 6 }, func(d *domain.Decision) { d.Route = d.Route[1:] }, ""},
	{"charging first, and waiting then", func(d *domain.Drone) { d.Battery = 6 }, func(d *domain.Decision) {
		d.Route = []domain.Waypoint{chargeTo(90), waitUntil(600)}
	}, ReasonLowBattery},
	{"an estimate that is not a number", nil, func(d *domain.Decision) { d.EstimatedBatteryConsumption = math.NaN() }, ReasonLowBattery},
	{"a level of 0", nil, func(d *domain.Decision) { d.Route[1].ChargeToPercent = 0 }, ReasonBadCharge},
	{"a level below 0", nil, func(d *domain.Decision) { d.Route[1].ChargeToPercent = -5 }, ReasonBadCharge},
	{"a level above 100", nil, func(d *domain.Decision) { d.Route[1].ChargeToPercent = 100.1 }, ReasonBadCharge},
	{"a level that is not a number", nil, func(d *domain.Decision) { d.Route[1].ChargeToPercent = math.NaN() }, ReasonBadCharge},
	{"a level of 100", nil, func(d *domain.Decision) { d.Route[1].ChargeToPercent = 100 }, ""},
	{"charging away from every depot", nil, func(d *domain.Decision) { d.Route[1].Position = hospitalsAt[0] }, ReasonBadCharge},
	{"waiting for what is over", nil, func(d *domain.Decision) { d.Route[0].WaitUntil = at(0) }, ReasonBadWait},
	{"waiting without an end", nil, func(d *domain.Decision) { d.Route[0].WaitUntil = time.Time{} }, ReasonBadWait},
	{"waiting for 2 h", nil, func(d *domain.Decision) { d.Route[0].WaitUntil = at(7200) }, ""},
	{"waiting for more than 2 h", nil, func(d *domain.Decision) { d.Route[0].WaitUntil = at(7200.001) }, ReasonBadWait},
	{"ending where the drone waits", nil, func(d *domain.Decision) { d.Route = d.Route[:1] }, ""},
	{"ending at no depot", nil, func(d *domain.Decision) {
		d.Route = []domain.Waypoint{waitUntil(600), {Type: domain.WaypointDepotStart, Position: depotAt}}
	}, ReasonBadRoute},
	{"nothing to do", nil, func(d *domain.Decision) { d.Route = d.Route[2:] }, ReasonBadRoute},
	{"no stops", nil, func(d *domain.Decision) { d.Route = nil }, ReasonBadRoute},
	{"a stop for an order", nil, func(d *domain.Decision) { d.Route[0].OrderID = "O1" }, ReasonBadRoute},
	{"a pickup for no order of the decision", nil, func(d *domain.Decision) { d.Route[0].Type = domain.WaypointWarehousePickup }, ReasonBadRoute},
	{"a return in the middle", nil, func(d *domain.Decision) { d.Route[0], d.Route[2] = d.Route[2], d.Route[0] }, ReasonBadRoute},
	{"an unknown mission", nil, func(d *domain.Decision) { d.AmendsMissionID, d.AmendsRevision = "M-NONE", 1 }, ReasonMissionNotActive},
}

func TestMissionAssignmentPolicy_RefusesStandby(t *testing.T) {
	if err := checkRefusedStandby(contract()); err != nil {
		t.Error(err)
	}
}

func checkRefusedStandby(r rules) error {
	var all []error
	for _, row := range refusedStandby {
		w := newWorld(r)
		d := readyDrone("D1")
		d.SupportsAmendments, d.SupportsStandby = true, true
		if row.drone != nil {
			row.drone(&d)
		}
		w.with(d, openOrder("O1", 0))
		x := standby("X", -2, waitUntil(600), chargeTo(95))
		if row.decide != nil {
			row.decide(&x)
		}
		want := string(row.want)
		if want == "" {
			want = applied
		}
		w.expectOutcome(x, want)
		if e := w.ledger["X"]; e.Outcome == domain.OutcomeRejected && e.Detail == "" {
			w.violated("ledger %+v", e)
		}
		if err := w.err(); err != nil {
			all = append(all, fmt.Errorf("%s: %w", row.name, err))
		}
	}
	return errors.Join(all...)
}

// F-AMD-06: a mission with orders does not lose them by an amendment without any, nor does it
// wait for a drone that charges.
func TestMissionAssignmentPolicy_KeepsOrdersFromStandby(t *testing.T) {
	w := newWorld(contract())
	w.inFlight("O1")
	x := standby("Y", 10, waitUntil(600))
	x.Route = append([]domain.Waypoint{{Type: domain.WaypointDepotStart, Position: depotAt}}, x.Route...)
	x.AmendsMissionID, x.AmendsRevision = "M-X", 1
	r := waiting(1, 11, 1)
	w.hears(r)
	w.expectOutcome(x, string(ReasonBadRoute))
	charging := amendment("Z", 1, 11, "O1")
	charging.Route = append(charging.Route[:2:2], append([]domain.Waypoint{chargeTo(90)}, charging.Route[2:]...)...)
	w.expectOutcome(charging, string(ReasonBadRoute))
	w.expectOrder("O1", domain.OrderAssigned, false)
	if err := w.err(); err != nil {
		t.Error(err)
	}
}

// A standbyStep is something that happens to a drone on a mission without orders, or to an
// order that it may serve.
type standbyStep struct {
	kind      string
	after     int // seconds since the step before
	revision  int
	completed int
	order     domain.OrderID
	battery   float64
	status    domain.DroneStatus
	named     bool
}

var standbySteps = rapid.Custom(func(t *rapid.T) standbyStep {
	return standbyStep{
		kind:      rapid.SampledFrom([]string{"report", "report", "report", "order", "order", "standby", "change", "cancel", "sweep", "recall"}).Draw(t, "kind"),
		after:     rapid.SampledFrom([]int{1, 1, 5, 20, 40, 130}).Draw(t, "after"),
		revision:  rapid.IntRange(0, 3).Draw(t, "revision"),
		completed: rapid.IntRange(0, 3).Draw(t, "completed"),
		order:     rapid.SampledFrom([]domain.OrderID{"O1", "O2"}).Draw(t, "order"),
		battery:   rapid.SampledFrom([]float64{4, 15, 60, 96}).Draw(t, "battery"),
		status:    rapid.SampledFrom([]domain.DroneStatus{domain.DroneMoving, domain.DroneMoving, domain.DroneIdle, domain.DroneCharging, domain.DroneProblem}).Draw(t, "status"),
		named:     rapid.IntRange(0, 3).Draw(t, "named") > 0,
	}
})

// F-AMD-06, I3: whatever happens to missions without orders, no order is lost: each is
// delivered, cancelled, held, waits, or belongs to the one ACTIVE mission that serves it.
func TestStandby_LosesNoOrder(t *testing.T) {
	given := 0
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(contract())
		w.standsBy()
		for i, s := range rapid.SliceOfN(standbySteps, 1, 25).Draw(t, "steps") {
			w.happens(i, s)
			w.verify()
			if w.orders[s.order].Status == domain.OrderAssigned {
				given++
			}
		}
		if err := w.err(); err != nil {
			t.Fatal(err)
		}
	})
	if given == 0 {
		t.Error("no order was ever given to the drone")
	}
}

func (w *world) happens(i int, s standbyStep) {
	w.now = w.now.Add(time.Duration(s.after) * time.Second)
	seconds, id := w.now.Sub(start).Seconds(), domain.DecisionID(fmt.Sprintf("D%d", i))
	d := w.drones["D1"]
	m := w.missions[d.CurrentMissionID]
	switch s.kind {
	case "report":
		r := charged(waiting(min(s.revision, max(m.LatestRevision(), 1)), seconds, 0), s.battery)
		if n, _ := routeStops(m, r.MissionRevision); s.completed <= n {
			r.CompletedStops = &s.completed
		}
		r.MissionID, r.Status = m.ID, s.status
		if !s.named {
			r.MissionID = ""
		}
		_, change, _ := w.telemetry(w.binding("D1"), r, w.now)
		w.commit(change)
	case "order":
		x := serves(id, m.RouteRevision, seconds, s.order)
		if x.AmendsMissionID = m.ID; m.Status != domain.MissionActive {
			x.AmendsMissionID, x.AmendsRevision = "", 0
		}
		w.decide(x)
	case "standby", "change":
		x := standby(id, seconds, waitUntil(seconds+300), chargeTo(95))
		if s.kind == "change" {
			x.AmendsMissionID, x.AmendsRevision = m.ID, m.RouteRevision
		}
		w.decide(x)
	case "cancel":
		_ = w.operatorCancels(s.order)
	case "recall":
		_ = w.recallMission(m.ID)
	case "sweep":
		w.sweep()
	}
}

// waitingFlights are the reports of a drone that waits until 100 s, charges, and lands.
var waitingFlights = rapid.Custom(func(t *rapid.T) (reports []travelled) {
	seconds := 5.0
	says := func(r domain.Telemetry) {
		r.Timestamp = at(seconds)
		delay := time.Duration(rapid.IntRange(0, 29_000).Draw(t, "delay in ms")) * time.Millisecond
		reports = append(reports, travelled{r, r.Timestamp.Add(delay)})
		if rapid.IntRange(0, 4).Draw(t, "twice") == 0 {
			reports = append(reports, travelled{r, r.Timestamp.Add(delay + time.Second)})
		}
		seconds += float64(rapid.IntRange(1, 15).Draw(t, "seconds"))
	}
	battery, done := 60.0, 0
	for done < 2 {
		r := charged(waiting(1, 0, done), battery)
		r.Status = rapid.SampledFrom([]domain.DroneStatus{domain.DroneMoving, domain.DroneIdle, domain.DroneCharging}).Draw(t, "status")
		says(r)
		switch {
		case done == 0 && seconds >= 100:
			done = 1
		case done == 1:
			battery = min(95, battery+float64(rapid.IntRange(5, 20).Draw(t, "charge")))
			if battery >= 95 {
				done = 2
			}
		}
	}
	for range rapid.IntRange(1, 3).Draw(t, "on the way home") {
		says(charged(waiting(1, 0, 2), battery))
	}
	for range 6 {
		says(charged(report("D1", domain.DroneIdle, "", start), battery))
		seconds += 10
	}
	return reports
})

// F-TEL-11, F-AMD-06: late, reordered and repeated reports of a drone on standby come to the
// same documents as if they had arrived as measured.
func TestStandby_ReportsConvergeWhateverTheirOrder(t *testing.T) {
	fly := func(reports []travelled) *world {
		w := newWorld(contract())
		d := readyDrone("D1")
		d.SupportsAmendments, d.SupportsStandby = true, true
		w.with(d)
		x := standby("X", -2, waitUntil(100), chargeTo(95))
		w.expectOutcome(x, applied)
		slices.SortStableFunc(reports, func(a, b travelled) int { return a.arrives.Compare(b.arrives) })
		for _, r := range reports {
			w.now = r.arrives
			_ = w.report(r.Telemetry) // stale or not
		}
		w.now = w.now.Add(time.Minute)
		w.sweep()
		return w
	}
	rapid.Check(t, func(t *rapid.T) {
		late := waitingFlights.Draw(t, "reports")
		punctual := slices.Clone(late)
		for i := range punctual {
			punctual[i].arrives = punctual[i].Timestamp
		}
		want, got := fly(punctual), fly(late)
		if err := errors.Join(want.err(), got.err()); err != nil {
			t.Fatal(err)
		}
		if want.ending() != got.ending() || want.missions["M-X"].Status != domain.MissionCompleted {
			t.Fatalf("late reports come to\n%s\npunctual ones to\n%s", got.ending(), want.ending())
		}
	})
}
