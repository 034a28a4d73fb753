package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// The mission table says what every event does to mission M-X, on which drone D1 delivers
// order O1 and then O2. A cell says what changes, "." for nothing:
//
//	→S            the mission's status becomes S, with its reason if it failed
//	+1            one more stop is reached
//	shorter       a withdrawn order's stops are dropped
//	command       the drone is owed the mission's new route
//	revoke        the drone is owed the mission's revocation
//	D1 S          drone D1 is released with status S
const missionGrid = `
event                                                    | none    | ACTIVE unacked                                     | ACTIVE acked                                       | ACTIVE carrying                             | ACTIVE one delivered                        | COMPLETED      | FAILED
a decision makes it                                      | →ACTIVE | .                                                  | .                                                  | .                                           | .                                           | .              | .
the drone names it in flight                             | .       | +1                                                 | .                                                  | .                                           | .                                           | .              | .
the drone is at the first pickup                         | .       | +2                                                 | +1                                                 | .                                           | .                                           | .              | +1
the drone is at the depot                                | .       | +1                                                 | .                                                  | .                                           | .                                           | .              | .
the drone is at the next delivery                        | .       | +1                                                 | .                                                  | +1                                          | .                                           | .              | .
the drone is at both last stops                          | .       | +1                                                 | .                                                  | .                                           | +2 →COMPLETED                               | .              | .
idle before freeAfter naming none                        | .       | .                                                  | .                                                  | .                                           | .                                           | D1 IDLE        | .
idle after freeAfter naming none                         | .       | →FAILED NOT_ACKED revoke D1 IDLE                   | .                                                  | .                                           | .                                           | D1 IDLE        | .
idle after freeAfter naming it                           | .       | +1                                                 | .                                                  | .                                           | .                                           | D1 IDLE        | .
charging after freeAfter                                 | .       | →FAILED NOT_ACKED revoke D1 CHARGING               | .                                                  | .                                           | .                                           | D1 CHARGING    | .
idle naming none for 29 s                                | .       | →FAILED NOT_ACKED revoke D1 IDLE                   | .                                                  | .                                           | .                                           | D1 IDLE        | .
idle naming none for 30 s                                | .       | →FAILED NOT_ACKED revoke D1 IDLE                   | →FAILED ABORTED_BY_DRONE revoke D1 IDLE            | →FAILED ABORTED_BY_DRONE revoke D1 IDLE     | →FAILED ABORTED_BY_DRONE revoke D1 IDLE     | D1 IDLE        | .
charging naming none for 30 s                            | .       | →FAILED NOT_ACKED revoke D1 CHARGING               | →FAILED ABORTED_BY_DRONE revoke D1 CHARGING        | →FAILED ABORTED_BY_DRONE revoke D1 CHARGING | →FAILED ABORTED_BY_DRONE revoke D1 CHARGING | D1 CHARGING    | .
idle naming none then silence for 35 s                   | .       | →FAILED NOT_ACKED revoke D1 UNKNOWN                | →FAILED ABORTED_BY_DRONE revoke D1 UNKNOWN         | →FAILED ABORTED_BY_DRONE revoke D1 UNKNOWN  | →FAILED ABORTED_BY_DRONE revoke D1 UNKNOWN  | D1 UNKNOWN     | .
idle naming none and then a late report of the next stop | .       | +2 →FAILED NOT_ACKED revoke D1 IDLE                | +1                                                 | +1                                          | +2 →COMPLETED                               | D1 IDLE        | +1
a problem naming none                                    | .       | →FAILED DRONE_FAULT revoke D1 PROBLEM              | .                                                  | .                                           | .                                           | .              | .
a problem for 30 s                                       | .       | →FAILED DRONE_FAULT revoke D1 PROBLEM              | →FAILED DRONE_FAULT revoke D1 PROBLEM              | →FAILED DRONE_FAULT revoke D1 PROBLEM       | →FAILED DRONE_FAULT revoke D1 PROBLEM       | D1 PROBLEM     | .
an emergency for 30 s                                    | .       | →FAILED DRONE_FAULT revoke D1 EMERGENCY            | →FAILED DRONE_FAULT revoke D1 EMERGENCY            | →FAILED DRONE_FAULT revoke D1 EMERGENCY     | →FAILED DRONE_FAULT revoke D1 EMERGENCY     | D1 EMERGENCY   | .
an empty battery for 30 s                                | .       | →FAILED DRONE_FAULT revoke D1 EMERGENCY            | →FAILED DRONE_FAULT revoke D1 EMERGENCY            | →FAILED DRONE_FAULT revoke D1 EMERGENCY     | →FAILED DRONE_FAULT revoke D1 EMERGENCY     | D1 EMERGENCY   | .
a problem then silence for 35 s                          | .       | →FAILED DRONE_FAULT revoke D1 PROBLEM              | →FAILED DRONE_FAULT revoke D1 PROBLEM              | →FAILED DRONE_FAULT revoke D1 PROBLEM       | →FAILED DRONE_FAULT revoke D1 PROBLEM       | .              | .
maintenance                                              | .       | →FAILED DRONE_FAULT revoke D1 MAINTENANCE          | →FAILED DRONE_FAULT revoke D1 MAINTENANCE          | →FAILED DRONE_FAULT revoke D1 MAINTENANCE   | →FAILED DRONE_FAULT revoke D1 MAINTENANCE   | D1 MAINTENANCE | .
silence for 119 s                                        | .       | .                                                  | .                                                  | .                                           | .                                           | .              | .
silence for 120 s                                        | .       | →FAILED CONTACT_LOST revoke D1 UNKNOWN             | →FAILED CONTACT_LOST revoke D1 UNKNOWN             | →FAILED CONTACT_LOST revoke D1 UNKNOWN      | →FAILED CONTACT_LOST revoke D1 UNKNOWN      | D1 UNKNOWN     | .
twice its estimate                                       | .       | .                                                  | .                                                  | .                                           | .                                           | .              | .
a second over twice its estimate                         | .       | →FAILED STALLED revoke D1 MOVING                   | →FAILED STALLED revoke D1 MOVING                   | →FAILED STALLED revoke D1 MOVING            | →FAILED STALLED revoke D1 MOVING            | .              | .
O2 is cancelled                                          | .       | shorter command                                    | shorter command                                    | shorter command                             | shorter →COMPLETED command                  | .              | .
O1 and O2 are cancelled                                  | .       | shorter →FAILED WITHDRAWN command revoke D1 MOVING | shorter →FAILED WITHDRAWN command revoke D1 MOVING | shorter command                             | shorter →COMPLETED command                  | .              | .
an operator recalls it                                   | .       | revoke                                             | revoke                                             | .                                           | revoke                                      | .              | .
recalled then in flight naming it for 30 s               | .       | +1 revoke                                          | revoke                                             | .                                           | revoke                                      | .              | .
recalled then in flight naming none for 30 s             | .       | revoke                                             | →FAILED RECALLED revoke D1 MOVING                  | .                                           | →FAILED RECALLED revoke D1 MOVING           | .              | .
recalled then idle naming none for 30 s                  | .       | →FAILED RECALLED revoke D1 IDLE                    | →FAILED RECALLED revoke D1 IDLE                    | →FAILED ABORTED_BY_DRONE revoke D1 IDLE     | →FAILED RECALLED revoke D1 IDLE             | D1 IDLE        | .
recalled then idle naming none then silence for 35 s     | .       | →FAILED RECALLED revoke D1 UNKNOWN                 | →FAILED RECALLED revoke D1 UNKNOWN                 | →FAILED ABORTED_BY_DRONE revoke D1 UNKNOWN  | →FAILED RECALLED revoke D1 UNKNOWN          | D1 UNKNOWN     | .
recalled then at the next delivery                       | .       | +1 revoke                                          | revoke                                             | +1 revoke                                   | revoke                                      | .              | .
recalled then O2 is cancelled                            | .       | shorter revoke                                     | shorter revoke                                     | shorter command                             | shorter →COMPLETED revoke                   | .              | .
`

// missionStates puts D1, O1 and O2 into the world, with M-X as the state says.
var missionStates = map[string]func(w *world){
	"none": noMission,
	"ACTIVE unacked": mission(func(d *domain.Drone, m *domain.Mission, o1, o2 *domain.Order) {
		d.MissionAcked, d.MissionMoved, m.ReachedStops, d.FreeAfter = false, false, 0, at(25)
	}),
	"ACTIVE acked": mission(func(*domain.Drone, *domain.Mission, *domain.Order, *domain.Order) {}),
	"ACTIVE carrying": mission(func(_ *domain.Drone, m *domain.Mission, o1, _ *domain.Order) {
		m.ReachedStops, o1.Status = 2, domain.OrderInDelivery
	}),
	"ACTIVE one delivered": mission(func(_ *domain.Drone, m *domain.Mission, o1, _ *domain.Order) {
		m.ReachedStops, o1.Status = 3, domain.OrderDelivered
	}),
	"COMPLETED": mission(func(_ *domain.Drone, m *domain.Mission, o1, o2 *domain.Order) {
		m.Status, m.EndTime, m.ReachedStops = domain.MissionCompleted, at(1), 5
		o1.Status, o2.Status = domain.OrderDelivered, domain.OrderDelivered
	}),
	"FAILED": mission(func(d *domain.Drone, m *domain.Mission, o1, o2 *domain.Order) {
		m.Status, m.EndTime, m.FailureReason, m.RevokePending = domain.MissionFailed, at(1), domain.FailureStalled, true
		for _, o := range []*domain.Order{o1, o2} {
			o.Status, o.AssignedDroneID, o.AssignedMissionID, o.Attempts = domain.OrderPending, "", "", 1
		}
		d.CurrentMissionID, d.MissionAcked, d.MissionMoved = "", false, false
		d.FailedMissions = []domain.FailedMission{{ID: m.ID, FailedAt: at(1)}}
	}),
}

// noMission has two orders. O2 is picked up where it is delivered.
func noMission(w *world) {
	o2 := openOrder("O2", 1)
	o2.Pickup = &o2.Delivery
	w.with(readyDrone("D1"), openOrder("O1", 0), o2)
}

func mission(change func(d *domain.Drone, m *domain.Mission, o1, o2 *domain.Order)) func(*world) {
	return func(w *world) {
		noMission(w)
		w.expectOutcome(missionPlan(), applied)
		d, m, o1, o2 := w.drones["D1"], w.missions["M-X"], w.orders["O1"], w.orders["O2"]
		acked(&d)
		d.MissionMoved, m.ReachedStops, m.CommandPublishedAt, m.CommandPending = true, 1, at(0), false
		change(&d, &m, &o1, &o2)
		w.with(d, m, o1, o2)
	}
}

// missionPlan delivers O1 to the first hospital, then O2 at the same position.
func missionPlan() domain.Decision {
	d := plan("X", "D1", "O1", "O2")
	d.Route[2], d.Route[3] = d.Route[3], d.Route[2]
	d.Route[3].Position = d.Route[4].Position // O2 is handed over on the spot
	return d
}

// recalled is what happens to M-X after an operator recalled it. F-OPR-02
func recalled(then func(w *world)) func(w *world) {
	return func(w *world) { _ = w.recallMission("M-X"); then(w) }
}

// missionEvents are what can happen to M-X.
var missionEvents = map[string]func(w *world){
	"a decision makes it":          func(w *world) { w.decide(missionPlan()) },
	"the drone names it in flight": func(w *world) { w.says(10, domain.DroneMoving, "M-X") },
	"an operator recalls it":       func(w *world) { _ = w.recallMission("M-X") },
	"recalled then in flight naming it for 30 s": recalled(func(w *world) {
		w.says(10, domain.DroneMoving, "M-X")
		w.says(40, domain.DroneMoving, "M-X")
	}),
	"recalled then in flight naming none for 30 s": recalled(func(w *world) {
		w.says(26, domain.DroneMoving, "")
		w.says(56, domain.DroneMoving, "")
	}),
	"recalled then idle naming none for 30 s": recalled(func(w *world) {
		w.says(26, domain.DroneIdle, "")
		w.says(56, domain.DroneIdle, "")
	}),
	"recalled then idle naming none then silence for 35 s": recalled(func(w *world) {
		w.says(26, domain.DroneIdle, "")
		w.clock(61)
		w.sweep()
	}),
	"recalled then at the next delivery": recalled(func(w *world) { w.saysAt(10, hospitalsAt[0], domain.DroneDelivering, "M-X") }),
	"recalled then O2 is cancelled":      recalled(func(w *world) { _ = w.operatorCancels("O2") }),
	"the drone is at the first pickup":   func(w *world) { w.saysAt(10, warehouseAt, domain.DroneMoving, "M-X") },
	"the drone is at the depot":          func(w *world) { w.saysAt(10, depotAt, domain.DroneMoving, "M-X") },
	"the drone is at the next delivery":  func(w *world) { w.saysAt(10, hospitalsAt[0], domain.DroneDelivering, "M-X") },
	"the drone is at both last stops":    func(w *world) { w.saysAt(10, hospitalsAt[1], domain.DroneDelivering, "M-X") },
	"idle before freeAfter naming none": func(w *world) {
		w.says(24, domain.DroneIdle, "")
	},
	"idle after freeAfter naming none": func(w *world) { w.says(26, domain.DroneIdle, "") },
	"idle after freeAfter naming it":   func(w *world) { w.says(26, domain.DroneIdle, "M-X") },
	"charging after freeAfter":         func(w *world) { w.says(26, domain.DroneCharging, "") },
	"idle naming none for 29 s":        func(w *world) { w.says(26, domain.DroneIdle, ""); w.says(55, domain.DroneIdle, "") },
	"idle naming none for 30 s":        func(w *world) { w.says(26, domain.DroneIdle, ""); w.says(56, domain.DroneIdle, "") },
	"charging naming none for 30 s":    func(w *world) { w.says(26, domain.DroneCharging, ""); w.says(56, domain.DroneCharging, "") },
	"idle naming none then silence for 35 s": func(w *world) {
		w.says(26, domain.DroneIdle, "")
		w.clock(61)
		w.sweep()
	},
	"idle naming none and then a late report of the next stop": func(w *world) {
		w.says(26, domain.DroneIdle, "")
		m := w.missions["M-X"]
		next := max(m.ReachedStops, 1)
		if next < len(m.Route) && m.Route[next].ForOrder() {
			w.clock(28)
			w.expectError(w.report(near(report("D1", domain.DroneMoving, "M-X", at(20)), m.Route[next].Position)), "")
		}
	},
	"a problem naming none": func(w *world) { w.says(10, domain.DroneProblem, "") },
	"a problem for 30 s":    func(w *world) { w.says(10, domain.DroneProblem, ""); w.says(40, domain.DroneProblem, "") },
	"an emergency for 30 s": func(w *world) { w.says(10, domain.DroneEmergency, ""); w.says(40, domain.DroneEmergency, "") },
	"an empty battery for 30 s": func(w *world) {
		for _, s := range []float64{10, 40} {
			w.clock(s)
			w.expectError(w.report(charged(report("D1", domain.DroneMoving, "", at(s)), 4)), "")
		}
	},
	"a problem then silence for 35 s":  func(w *world) { w.says(10, domain.DroneProblem, ""); w.clock(45); w.sweep() },
	"maintenance":                      func(w *world) { w.says(10, domain.DroneMaintenance, "M-X") },
	"silence for 119 s":                func(w *world) { w.clock(119); w.sweep() },
	"silence for 120 s":                func(w *world) { w.clock(120); w.sweep() },
	"twice its estimate":               func(w *world) { w.heard(24 * 60); w.sweep() },
	"a second over twice its estimate": func(w *world) { w.heard(24*60 + 1); w.sweep() },
	"O2 is cancelled":                  func(w *world) { w.clock(5); _ = w.request(cancellation("O2")) },
	"O1 and O2 are cancelled": func(w *world) {
		w.clock(5)
		_ = w.request(cancellation("O1"))
		_ = w.request(cancellation("O2"))
	},
}

// heard advances the clock while D1 keeps reporting.
func (w *world) heard(seconds float64) {
	w.clock(seconds)
	d := w.drones["D1"]
	d.SeenAt = w.now
	w.drones["D1"] = d
}

func TestMissionTable(t *testing.T) {
	if err := checkMissionTable(contract()); err != nil {
		t.Error(err)
	}
}

func checkMissionTable(r rules) error {
	g, err := parseGrid(missionGrid)
	if err != nil {
		return err
	}
	var all []error
	for state, build := range missionStates {
		for event, happen := range missionEvents {
			want, ok := g.cell(event, state)
			if !ok {
				all = append(all, fmt.Errorf("no cell for %s, %s", state, event))
			}
			w := newWorld(r)
			build(w)
			m, d := w.missions["M-X"], w.drones["D1"]
			w.broken = nil
			happen(w)
			if got := missionDifference(m, w.missions["M-X"], d, w.drones["D1"]); got != want {
				all = append(all, fmt.Errorf("%s, %s: %q, want %q", state, event, got, want))
			}
			if err := w.err(); err != nil {
				all = append(all, fmt.Errorf("%s, %s: %w", state, event, err))
			}
		}
	}
	if want := len(missionStates) * len(missionEvents); len(g.cells) != want {
		all = append(all, fmt.Errorf("the table has %d cells, not %d", len(g.cells), want))
	}
	return errors.Join(all...)
}

func missionDifference(before, after domain.Mission, d, now domain.Drone) string {
	var parts []string
	say := func(when bool, what string) {
		if when {
			parts = append(parts, what)
		}
	}
	stops := after.ReachedStops - before.ReachedStops
	say(stops != 0, fmt.Sprintf("%+d", stops))
	say(before.Status != "" && len(after.Route) < len(before.Route), "shorter")
	say(after.Status != before.Status, strings.TrimSpace("→"+string(after.Status)+" "+string(after.FailureReason)))
	say(!before.CommandPublishedAt.IsZero() && after.CommandPublishedAt.IsZero(), "command")
	say(after.RevokePending && !before.RevokePending, "revoke")
	say(d.Bound() && !now.Bound(), "D1 "+string(now.Status))
	if len(parts) == 0 {
		return "."
	}
	return strings.Join(parts, " ")
}
