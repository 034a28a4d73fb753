package policy

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// amendment decides that drone D1 fly mission M-X, whose revision is given, with the
// orders, and serve them one after the other; the first are those that it has begun.
func amendment(id domain.DecisionID, revision int, snapshot float64, orders ...domain.OrderID) domain.Decision {
	d := fresh(plan(id, "D1"), snapshot)
	d.AmendsMissionID, d.AmendsRevision, d.OrderIDs = "M-X", revision, orders
	d.Route = []domain.Waypoint{{Type: domain.WaypointDepotStart, Position: depotAt}}
	for _, o := range orders {
		n := int(o[1] - '1')
		d.Route = append(d.Route,
			domain.Waypoint{Type: domain.WaypointWarehousePickup, Position: warehouseAt, OrderID: o, WarehouseID: "WH"},
			domain.Waypoint{Type: domain.WaypointHospitalDelivery, Position: hospitalsAt[n], OrderID: o})
	}
	d.Route = append(d.Route, domain.Waypoint{Type: domain.WaypointDepotReturn, Position: depotAt})
	return d
}

// names is what a drone that supports amendments says on a revision of M-X.
func names(revision int, measured float64, completed int) domain.Telemetry {
	t := counted(report("D1", domain.DroneMoving, "M-X", at(measured)), completed)
	t.MissionRevision, t.SupportsAmendments = revision, true
	return t
}

// hears delivers a report at a time of its own.
func (w *world) hears(t domain.Telemetry) {
	if t.Timestamp.After(w.now) {
		w.now = t.Timestamp
	}
	w.expectError(w.report(t), "")
}

// inFlight has D1 fly M-X with the given orders, of revision 1, at 10 s.
func (w *world) inFlight(orders ...domain.OrderID) {
	w.with(readyDrone("D1"), readyDrone("D2"))
	for i, id := range []domain.OrderID{"O1", "O2", "O3"} {
		w.with(openOrder(id, i))
	}
	d := amendment("X", 0, -2, orders...)
	d.AmendsMissionID = ""
	w.expectOutcome(d, applied)
	w.hears(names(1, 10, 1))
}

// expectRevision checks the route that is in force and the one that waits for its drone.
func (w *world) expectRevision(inForce, proposed int) {
	m := w.missions["M-X"]
	got := 0
	if m.Amendment != nil {
		got = m.Amendment.Revision
	}
	if m.RouteRevision != inForce || got != proposed {
		w.violated("mission M-X is at revision %d with %d proposed, want %d and %d", m.RouteRevision, got, inForce, proposed)
	}
}

// expectReleasing checks whether an order is marked as being taken away.
func (w *world) expectReleasing(id domain.OrderID, want bool) {
	if o := w.orders[id]; o.Releasing != want {
		w.violated("order %s is %s, releasing %t, want %t", id, o.Status, o.Releasing, want)
	}
}

// amendmentHazards are stories of missions that change under way. F-AMD-01 to F-AMD-05
var amendmentHazards = []hazard{
	{"an added order is bound at once and stays when the drone names the revision", func(w *world) { // F-AMD-03
		w.inFlight("O1")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O2"), applied)
		w.expectOrder("O2", domain.OrderAssigned, false)
		w.expectRevision(1, 2)
		if c := w.missions["M-X"].Command(); c.Mission.RouteRevision != 2 || len(c.Mission.Route) != 6 || !c.ExpiresAt.Equal(at(30)) {
			w.violated("command %+v", c)
		}
		w.hears(names(2, 12, 1))
		w.expectRevision(2, 0)
		w.hears(names(2, 40, 3))
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.expectOrder("O2", domain.OrderAssigned, false)
		w.hears(names(2, 60, 5))
		w.expectOrder("O2", domain.OrderDelivered, false)
		w.expectMission("M-X", domain.MissionCompleted, "")
	}},
	{"an amendment that the drone never names expires", func(w *world) { // F-AMD-03
		w.inFlight("O1")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O2"), applied)
		w.hears(names(1, 35, 1)) // the command expires at 30, and clocks are 5 s off
		w.expectRevision(1, 2)
		w.hears(names(1, 35.1, 1))
		w.expectRevision(1, 0)
		w.expectOrder("O2", domain.OrderPending, false)
		if o := w.orders["O2"]; o.Attempts != 0 || !o.PendingSince.Equal(at(35.1)) {
			w.violated("order %+v", o)
		}
		w.hears(names(1, 40, 3))
		w.expectMission("M-X", domain.MissionCompleted, "")
	}},
	{"no timer makes an amendment void", func(w *world) { // F-AMD-03
		w.inFlight("O1")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O2"), applied)
		w.clock(100)
		w.sweep()
		w.expectRevision(1, 2)
		w.hears(names(2, 15, 1)) // late
		w.expectRevision(2, 0)
		w.expectOrder("O2", domain.OrderAssigned, false)
	}},
	{"the number of a void revision is not used again", func(w *world) {
		w.inFlight("O1")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O2"), applied)
		w.hears(names(1, 36, 1))
		w.expectOutcome(amendment("Z", 1, 36, "O1", "O3"), applied)
		w.expectRevision(1, 3)
		w.hears(names(2, 37, 2)) // a drone that took the expired command proves what both routes begin with
		w.expectRevision(1, 3)
		w.expectOrder("O1", domain.OrderInDelivery, false)
	}},
	{"an order that is taken away stays until the drone names the revision", func(w *world) { // F-AMD-04
		w.inFlight("O1", "O2")
		w.expectOutcome(amendment("Y", 1, 10, "O1"), applied)
		w.expectReleasing("O2", true)
		w.expectOrder("O2", domain.OrderAssigned, false)
		w.hearOf("D2", 11)
		w.expectOutcome(fresh(plan("Z", "D2", "O2"), 10.5), string(ReasonOrderNotPending))
		w.hears(names(2, 12, 1))
		w.expectOrder("O2", domain.OrderPending, false)
		w.expectReleasing("O2", false)
		w.hearOf("D2", 13)
		w.expectOutcome(fresh(plan("Z2", "D2", "O2"), 12.5), applied)
		w.hears(names(2, 40, 3))
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.expectOrder("O2", domain.OrderAssigned, false)
	}},
	{"an order that is picked up while it is taken away is delivered as before", func(w *world) { // F-AMD-04
		w.inFlight("O1", "O2")
		w.expectOutcome(amendment("Y", 1, 10, "O1"), applied)
		w.hears(names(1, 30, 4))
		w.expectOrder("O2", domain.OrderInDelivery, false)
		w.expectReleasing("O2", false)
		w.hears(names(1, 36, 5))
		w.expectOrder("O2", domain.OrderDelivered, false)
		w.expectMission("M-X", domain.MissionCompleted, "")
	}},
	{"an order that a void amendment took away stays", func(w *world) { // F-AMD-04
		w.inFlight("O1", "O2")
		w.expectOutcome(amendment("Y", 1, 10, "O1"), applied)
		w.hears(names(1, 36, 1))
		w.expectReleasing("O2", false)
		w.expectOrder("O2", domain.OrderAssigned, false)
		if m := w.missions["M-X"]; !m.CommandPending || m.Command().Mission.RouteRevision != 1 {
			w.violated("the drone is not told again what it flies: %+v", m)
		}
	}},
	{"a parcel that may be aboard of a drone that names a route without it waits for an operator", func(w *world) {
		w.inFlight("O1", "O2")
		w.expectOutcome(amendment("Y", 1, 10, "O1"), applied)
		w.hears(names(1, 20, 4))
		w.hears(names(2, 21, 3))
		w.expectOrder("O2", domain.OrderPending, true)
	}},
	{"reports of either revision count, in any order, once", func(w *world) { // F-AMD-05 F-TEL-11
		w.inFlight("O1")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O2"), applied)
		w.hears(names(2, 30, 4))
		w.expectOrder("O2", domain.OrderInDelivery, false)
		w.hears(names(1, 15, 2)) // late
		w.hears(names(2, 25, 3)) // late
		if o := w.orders["O1"]; o.Status != domain.OrderDelivered || !o.DeliveredAt.Equal(at(25)) {
			w.violated("order %+v", o)
		}
		w.expectError(w.report(names(1, 15, 2)), ReasonStaleTelemetry)
	}},
	{"a late report of the old revision proves only what both begin with", func(w *world) { // F-AMD-05
		w.inFlight("O1", "O2", "O3")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O3", "O2"), applied)
		w.hears(names(2, 20, 3))
		w.hears(names(1, 15, 4)) // no honest drone says so
		w.expectOrder("O2", domain.OrderAssigned, false)
		w.expectOrder("O3", domain.OrderAssigned, false)
	}},
	{"a drone that lands with an added order unserved loses it after the grace", func(w *world) {
		w.inFlight("O1")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O2"), applied)
		w.hears(names(1, 20, 3))
		w.expectMission("M-X", domain.MissionActive, "")
		w.says(22, domain.DroneIdle, "")
		w.expectOrder("O2", domain.OrderAssigned, false)
		w.says(53, domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.expectOrder("O2", domain.OrderPending, false)
		w.lateOf(names(2, 21, 5)) // it had taken the amendment
		w.expectOrder("O2", domain.OrderDelivered, false)
	}},
	{"the sweeper ends the mission of a drone that landed with an added order unserved", func(w *world) {
		w.inFlight("O1")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O2"), applied)
		w.hears(names(1, 20, 3))
		w.says(22, domain.DroneIdle, "")
		w.clock(60)
		w.sweep()
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.expectOrder("O2", domain.OrderPending, false)
	}},
	{"a drone that falls silent in mid-amendment loses all that it has not picked up", func(w *world) {
		w.inFlight("O1", "O2")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O3"), applied)
		w.clock(131)
		w.sweep()
		w.expectMission("M-X", domain.MissionFailed, domain.FailureContactLost)
		for _, id := range []domain.OrderID{"O1", "O2", "O3"} {
			w.expectOrder(id, domain.OrderPending, false)
			w.expectReleasing(id, false)
		}
		w.lateOf(names(2, 50, 5)) // it had taken the amendment, and served it
		w.expectOrder("O3", domain.OrderDelivered, false)
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.expectOrder("O2", domain.OrderPending, false)
	}},
	{"a recall in mid-amendment keeps every order until the drone has left", func(w *world) { // F-OPR-02
		w.inFlight("O1", "O2")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O3"), applied)
		w.expectError(w.recallMission("M-X"), "")
		w.expectOutcome(amendment("Z", 1, 10, "O1"), string(ReasonNotAmendable))
		w.expectOrder("O3", domain.OrderAssigned, false)
		w.says(14, domain.DroneIdle, "")
		w.says(50, domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionFailed, domain.FailureRecalled)
		for _, id := range []domain.OrderID{"O1", "O2", "O3"} {
			w.expectOrder(id, domain.OrderPending, false)
		}
	}},
	{"orders are cancelled in mid-amendment", func(w *world) {
		w.inFlight("O1", "O2")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O3"), applied)
		w.expectError(w.request(cancellation("O3")), "")
		w.expectError(w.request(cancellation("O2")), "")
		if m := w.missions["M-X"]; !slices.Equal(m.OrderIDs, []domain.OrderID{"O1"}) || len(m.Amendment.Route) != 4 || len(m.Route) != 4 {
			w.violated("mission %+v", m)
		}
		w.hears(names(2, 12, 1)) // it flies the amendment as first commanded
		w.hears(names(2, 20, 5))
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.expectOrder("O3", domain.OrderCancelled, false)
	}},
	{"a grounded drone is given nothing more, and can be relieved", func(w *world) {
		w.inFlight("O1", "O2")
		w.expectError(w.groundDrone("D1"), "")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O2", "O3"), string(ReasonDroneGrounded))
		w.expectOutcome(amendment("Z", 1, 10, "O1"), applied)
	}},
	{"the first of two amendments wins", func(w *world) { // F-AMD-01
		w.inFlight("O1")
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O2"), applied)
		w.expectOutcome(amendment("Z", 1, 10, "O1", "O3"), string(ReasonRevisionChanged))
		w.hears(names(2, 12, 1))
		w.expectOutcome(amendment("Z2", 1, 12, "O1", "O3"), string(ReasonRevisionChanged))
		w.expectOutcome(amendment("Z3", 2, 12, "O1", "O2", "O3"), applied)
	}},
	{"a mission is amended many times", func(w *world) {
		w.inFlight("O1", "O2")
		for i := range 12 {
			orders := []domain.OrderID{"O1", "O2"}
			if i%2 == 0 {
				orders = orders[:1]
			}
			now := float64(11 + i)
			w.expectOutcome(amendment(domain.DecisionID("Y"+string(rune('a'+i))), i+1, now-0.5, orders...), applied)
			w.hears(names(i+2, now, 1))
		}
		w.expectRevision(13, 0)
		if n := len(w.missions["M-X"].EarlierRoutes); n != domain.MaxEarlierRoutes {
			w.violated("%d earlier routes are kept", n)
		}
		w.expectError(w.report(names(1, 10.5, 1)), ReasonStaleTelemetry) // of a revision that is forgotten
		w.hears(names(13, 40, 5))
		w.expectMission("M-X", domain.MissionCompleted, "")
	}},
	{"a report of a revision that the mission never had is refused", func(w *world) { // F-AMD-05
		w.inFlight("O1")
		w.clock(11)
		w.expectError(w.refused(names(2, 11, 1)), ReasonUnknownRevision)
		w.expectOutcome(amendment("Y", 1, 10, "O1", "O2"), applied)
		w.expectError(w.refused(names(3, 11, 1)), ReasonUnknownRevision)
		w.expectError(w.refused(names(2, 0.9, 1)), ReasonUnknownRevision) // measured before the decision
		w.expectRevision(1, 2)
	}},
}

// refused delivers a report past the world's own checks, which expect it to be applied.
func (w *world) refused(t domain.Telemetry) error {
	_, change, err := w.telemetry(w.binding(t.DroneID), t, w.now)
	if !change.Empty() {
		w.violated("a refused report changed something")
	}
	return err
}

// lateOf delivers a report about a mission that is over, without its drone's state.
func (w *world) lateOf(t domain.Telemetry) {
	if !w.proveEnded(t) {
		w.violated("the report of %s proves nothing", t.Timestamp)
	}
}

func TestAmendments_Stories(t *testing.T) {
	for _, h := range amendmentHazards {
		t.Run(h.name, func(t *testing.T) {
			w := newWorld(contract())
			h.story(w)
			if err := w.err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// F-AMD-01 F-AMD-02 F-AMD-05: every reason against an amendment, and what it allows.
var refusedAmendments = []struct {
	name    string
	prepare func(*world)
	decide  func(*domain.Decision)
	want    Reason
}{
	{"unknown mission", nil, func(d *domain.Decision) { d.AmendsMissionID = "M-NONE" }, ReasonMissionNotActive},
	{"another drone's mission", func(w *world) { w.hearOf("D2", 10.5) }, func(d *domain.Decision) { d.DroneID = "D2" }, ReasonMissionNotActive},
	{"an ended mission", func(w *world) { w.hears(names(1, 11, 5)) }, nil, ReasonMissionNotActive},
	{"a drone without amendments", func(w *world) {
		r := names(1, 11, 1)
		r.SupportsAmendments = false
		w.hears(r)
	}, nil, ReasonNotAmendable},
	{"a drone that names no revision", func(w *world) { w.hears(names(0, 11, 1)) }, nil, ReasonNotAmendable},
	{"a faulty drone", func(w *world) {
		r := names(1, 11, 1)
		r.Status = domain.DroneProblem
		w.hears(r)
	}, nil, ReasonNotAmendable},
	{"a drone that has landed", func(w *world) { w.says(11, domain.DroneIdle, "") }, nil, ReasonNotAmendable},
	{"a revision from the future", nil, func(d *domain.Decision) { d.AmendsRevision = 7 }, ReasonRevisionChanged},
	{"a silent drone", func(w *world) { w.clock(26) }, nil, ReasonDroneSilent},
	{"an old snapshot", nil, func(d *domain.Decision) { d.SnapshotTime = at(-200) }, ReasonDecisionExpired},
	{"a stale fence", func(w *world) { w.fences["DEPOT"] = "000000000000009" }, nil, ReasonStaleFence},
	{"a battery that does not last", nil, func(d *domain.Decision) { d.EstimatedBatteryConsumption = 61 }, ReasonLowBattery},
	{"an unknown order", nil, func(d *domain.Decision) { d.OrderIDs = append(d.OrderIDs, "O9") }, ReasonOrderUnknown},
	{"an order that is cancelled", func(w *world) { w.expectError(w.request(cancellation("O3")), "") }, nil, ReasonOrderNotPending},
	{"an order that is held", func(w *world) { w.expectError(w.holdOrder("O3"), "") }, nil, ReasonOrderHeld},
	{"an order that the drone must not take", func(w *world) { w.expectError(w.pinOrder("O3", "D2"), "") }, nil, ReasonDroneNotAllowed},
	{"a parcel aboard is left out", func(w *world) { w.hears(names(1, 11, 2)) }, func(d *domain.Decision) { *d = amendment("Y", 1, 10, "O2", "O3") }, ReasonOrderAboard},
	{"a parcel aboard is not delivered", func(w *world) { w.hears(names(1, 11, 2)) }, func(d *domain.Decision) { d.Route = slices.Delete(d.Route, 2, 3) }, ReasonOrderAboard},
	{"a reached stop is changed", func(w *world) { w.hears(names(1, 11, 3)) }, func(d *domain.Decision) { d.Route[1], d.Route[2] = d.Route[2], d.Route[1] }, ReasonStopCommitted},
	{"the stop almost reached is changed", func(w *world) {
		r := names(1, 11, 1)
		r.Position = warehouseAt.Towards(depotAt, 400)
		w.hears(r)
	}, func(d *domain.Decision) { *d = amendment("Y", 1, 10, "O2", "O1") }, ReasonStopCommitted},
	{"a pickup without a delivery", nil, func(d *domain.Decision) { d.Route = slices.Delete(d.Route, 6, 7) }, ReasonBadRoute},
	{"too heavy", func(w *world) {
		o := w.orders["O3"]
		o.WeightKg = 6
		w.with(o)
	}, nil, ReasonOverCapacity},
	{"nothing against it", nil, nil, ""},
	{"a stop that the drone can still turn from", nil, func(d *domain.Decision) { *d = amendment("Y", 1, 10, "O2", "O1") }, ""},
	{"fewer orders, on little battery", func(w *world) { w.hears(charged(names(1, 11, 1), 15)) }, func(d *domain.Decision) { *d = amendment("Y", 1, 10, "O1") }, ""},
}

func TestMissionAssignmentPolicy_RefusesAmendments(t *testing.T) {
	if err := checkRefusedAmendments(contract()); err != nil {
		t.Error(err)
	}
}

func checkRefusedAmendments(r rules) error {
	var all []error
	for _, row := range refusedAmendments {
		w := newWorld(r)
		w.inFlight("O1", "O2")
		w.clock(11)
		if row.prepare != nil {
			row.prepare(w)
		}
		d := amendment("Y", 1, 10, "O1", "O2", "O3")
		if row.decide != nil {
			row.decide(&d)
		}
		want := string(row.want)
		if want == "" {
			want = applied
		}
		w.expectOutcome(d, want)
		if e := w.ledger["Y"]; e.AmendsMissionID != d.AmendsMissionID || e.AmendsRevision != d.AmendsRevision || e.Outcome == domain.OutcomeRejected && e.Detail == "" {
			w.violated("ledger %+v", e)
		}
		if err := w.err(); err != nil {
			all = append(all, fmt.Errorf("%s: %w", row.name, err))
		}
	}
	return errors.Join(all...)
}
