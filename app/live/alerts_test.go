package live_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/live"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
)

// F-LIVE-03: each alert follows from the state and the time, and is over when its cause
// is.
func TestAlerts_FollowFromStateAndTime(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	critical := func(o domain.Order) domain.Order {
		o.ID, o.Priority, o.Held = "O1", domain.PriorityCritical, o.Status == domain.OrderPending // held: no cycle is missed
		return o
	}
	pending := func(left time.Duration) domain.Order {
		return critical(domain.Order{Status: domain.OrderPending, Deadline: now.Add(left)})
	}
	flying := func(eta time.Duration) *live.State {
		return &live.State{
			Orders: map[domain.OrderID]domain.Order{"O1": critical(domain.Order{Status: domain.OrderAssigned, AssignedMissionID: "M1", Deadline: now.Add(time.Minute)})},
			Missions: map[domain.MissionID]domain.Mission{"M1": {Route: []domain.Waypoint{
				{Type: domain.WaypointWarehousePickup, OrderID: "O1", ETA: now.Add(time.Hour)},
				{Type: domain.WaypointHospitalDelivery, OrderID: "O1", ETA: now.Add(eta)},
			}}},
		}
	}
	order := func(o domain.Order) *live.State {
		return &live.State{Orders: map[domain.OrderID]domain.Order{o.ID: o}}
	}
	drone := func(d domain.Drone) *live.State {
		d.ID = "D1"
		return &live.State{Drones: map[domain.DroneID]domain.Drone{"D1": d}}
	}
	depot := func(waits, since time.Duration, outcome domain.CycleOutcome) *live.State {
		return &live.State{
			Depots: map[domain.DepotID]domain.Depot{"DEPOT-1": {}},
			Orders: map[domain.OrderID]domain.Order{"O2": {ID: "O2", Status: domain.OrderPending, PlanningDepotID: "DEPOT-1", PendingSince: now.Add(-waits)}},
			Cycles: map[domain.CycleID]domain.Cycle{"C1": {DepotID: "DEPOT-1", StartedAt: now.Add(-since), Outcome: outcome}},
		}
	}
	elsewhere := depot(time.Minute, time.Hour, domain.CyclePublished)
	elsewhere.Orders["O2"] = domain.Order{ID: "O2", Status: domain.OrderPending, PlanningDepotID: "DEPOT-2", PendingSince: now.Add(-time.Minute)}
	handedOver := depot(time.Minute, time.Hour, domain.CyclePublished)
	handedOver.Orders["O2"] = domain.Order{ID: "O2", Status: domain.OrderPending, PlanningDepotID: "DEPOT-1", PendingSince: now.Add(-time.Minute), PlanningSince: now}
	delivered := critical(domain.Order{Status: domain.OrderDelivered, Deadline: now.Add(-time.Minute)})
	waiting := func(left time.Duration, soonest planner.Arrival) *live.State {
		o := critical(domain.Order{Status: domain.OrderPending, Deadline: now.Add(left)})
		o.Held = false
		return &live.State{Orders: map[domain.OrderID]domain.Order{"O1": o}, Arrivals: map[domain.OrderID]planner.Arrival{"O1": soonest}}
	}
	soonest := func(after time.Duration) planner.Arrival { return planner.Arrival{DroneID: "D7", At: now.Add(after)} }
	joining := flying(time.Minute)
	joining.Missions["M1"] = domain.Mission{Amendment: &domain.Amendment{Route: []domain.Waypoint{{Type: domain.WaypointHospitalDelivery, OrderID: "O1", ETA: now.Add(2 * time.Minute)}}}}
	standard := pending(-time.Minute)
	standard.Priority = domain.PriorityStandard
	weak := 79.0
	for _, tt := range []struct {
		name  string
		state *live.State
		want  string // ids
	}{
		{"an order with time left", order(pending(8 * time.Minute)), ""},
		{"an order due soon without a drone", order(pending(6 * time.Minute)), "CRITICAL_AT_RISK:O1"},
		{"an order past its deadline", order(pending(-time.Second)), "CRITICAL_LATE:O1"},
		{"another priority past its deadline", order(standard), ""},
		{"a delivered order", order(delivered), ""},
		// F-LIVE-05: what counts is how soon a drone could deliver it, not the time that is left.
		{"a drone in time", waiting(9*time.Minute, soonest(7*time.Minute)), ""},
		{"a drone in time, soon", waiting(5*time.Minute, soonest(3*time.Minute)), ""},
		{"a drone just in time", waiting(9*time.Minute, soonest(7*time.Minute+time.Second)), "CRITICAL_AT_RISK:O1"},
		{"a drone too late", waiting(9*time.Minute, soonest(17*time.Minute+36*time.Second)), "CRITICAL_UNSERVED:O1"},
		{"no drone, however long it waits", waiting(time.Hour, planner.Arrival{}), "CRITICAL_UNSERVED:O1"},
		{"no drone, and late", waiting(-time.Second, planner.Arrival{}), "CRITICAL_LATE:O1"},
		{"a plan that an amendment makes late", joining, "CRITICAL_AT_RISK:O1"},
		{"a plan in time", flying(time.Minute), ""},
		{"a plan that is late", flying(time.Minute + time.Second), "CRITICAL_AT_RISK:O1"},
		{"a silent drone", drone(domain.Drone{Status: domain.DroneUnknown, LastUpdate: now.Add(-time.Hour)}), "CONTACT_LOST:D1:2026-03-01T11:00:00Z"},
		{"a drone that never reported", drone(domain.Drone{Status: domain.DroneUnknown}), ""},
		{"a ghost", drone(domain.Drone{Status: domain.DroneMoving, GhostMissionID: "M9"}), "GHOST:D1:M9"},
		{"an implausible report", drone(domain.Drone{Status: domain.DroneMoving, Implausible: "claimed 3 stops", ImplausibleAt: now.Add(-14 * time.Minute)}), "IMPLAUSIBLE_REPORT:D1:2026-03-01T11:46:00Z"},
		{"an implausible report of long ago", drone(domain.Drone{Status: domain.DroneMoving, Implausible: "claimed 3 stops", ImplausibleAt: now.Add(-15 * time.Minute)}), ""},
		// F-REG-09
		{"a stranger", drone(domain.Drone{Unregistered: true}), "UNREGISTERED_DRONE:D1"},
		{"a stranger that is silent", drone(domain.Drone{Unregistered: true, Status: domain.DroneUnknown, LastUpdate: now}), "UNREGISTERED_DRONE:D1"},
		{"a retired drone that is switched off", drone(domain.Drone{Status: domain.DroneUnknown, RetiredAt: now, LastUpdate: now.Add(-time.Minute)}), ""},
		{"a retired drone that reports", drone(domain.Drone{RetiredAt: now.Add(-time.Hour), LastUpdate: now}), "UNREGISTERED_DRONE:D1:2026-03-01T11:00:00Z"},
		{"a drone with another serial number", drone(domain.Drone{SerialNumber: "A", ReportedSerial: "B"}), "DRONE_IDENTITY:D1:B"}, // F-REG-17
		// F-REG-15
		{"an item due in a day and a second", drone(rotorEvery(now, 24*time.Hour+time.Second)), ""},
		{"an item due in a day", drone(rotorEvery(now, 24*time.Hour)), "DRONE_DUE_SOON:D1:rotor:2026-01-31T12:00:00Z"},
		{"an item that is due", drone(rotorEvery(now, -time.Hour)), "DRONE_DUE_SOON:D1:rotor:2026-01-30T11:00:00Z"},
		{"11 of 100 flight hours left", drone(flown(89, nil)), ""},
		{"10 of 100 flight hours left", drone(flown(90, nil)), "DRONE_DUE_SOON:D1:rotor:0001-01-01T00:00:00Z"},
		{"the same, maintained at 80", drone(flown(90, []domain.Maintenance{{Item: "rotor", Done: domain.DueLimits{At: now, FlightHours: 80}}})), ""},
		{"a weak battery", drone(domain.Drone{MinBatteryHealth: 80, BatteryHealth: &weak}), "DRONE_DUE_SOON:D1:battery health"},
		{"a parcel picked up again", &live.State{PickedUpAgain: map[domain.OrderID]time.Time{"O1": now}}, "PUT_DOWN_TWICE:O1:2026-03-01T12:00:00Z"},
		{"an order that no cycle has seen", depot(time.Minute, time.Hour, domain.CyclePublished), "DEPOT_WITHOUT_CYCLES:DEPOT-1:2026-03-01T11:59:00Z"},
		{"a recent cycle", depot(time.Minute, 20*time.Second, domain.CyclePublished), ""},
		{"a recent cycle that failed", depot(time.Minute, 20*time.Second, domain.CycleFailed), "DEPOT_WITHOUT_CYCLES:DEPOT-1:2026-03-01T11:59:00Z"},
		{"an order that has just come", depot(20*time.Second, time.Hour, domain.CyclePublished), ""},
		{"an order that another depot plans", elsewhere, ""},
		{"an order that was just handed over", handedOver, ""},
		{"a wrong clock", &live.State{Process: []live.Alert{{Kind: live.AlertClockOff, About: live.Key{ID: "clock"}}}}, "CLOCK_OFF:clock"},
	} {
		var ids []string
		for _, a := range live.Alerts(tt.state, now, 30*time.Second) {
			ids = append(ids, a.ID())
			if !slices.Contains(live.AlertKinds, a.Kind) {
				t.Errorf("%s: kind %s is not listed", tt.name, a.Kind)
			}
		}
		if got := strings.Join(ids, " "); got != tt.want {
			t.Errorf("%s: alerts %q, want %q", tt.name, got, tt.want)
		}
	}
}

// F-LIVE-06: what explains a late order comes before it, is named by it, and is as urgent.
func TestAlerts_NameTheirCause(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := live.Alert{Kind: live.AlertClockOff, About: live.Key{Kind: "process", ID: "clock"}}
	backlog := live.Alert{Kind: live.AlertBacklogOld, About: live.Key{Kind: "topic", ID: "decisions"}}
	silent := domain.Drone{ID: "D1", Status: domain.DroneUnknown, LastUpdate: now, CurrentMissionID: "M1"}
	ghost := domain.Drone{ID: "D1", Status: domain.DroneMoving, LastUpdate: now, GhostMissionID: "M1"}
	lost := ghost
	lost.Status = domain.DroneUnknown
	late := domain.Order{ID: "O1", Status: domain.OrderPending, Deadline: now.Add(-time.Minute), PendingSince: now.Add(-time.Hour), PlanningDepotID: "DEPOT-1"}
	late.Priority = domain.PriorityCritical
	flown, held, elsewhere, due := late, late, late, late
	flown.Status, flown.AssignedDroneID, flown.AssignedMissionID = domain.OrderInDelivery, "D1", "M1"
	held.Held, elsewhere.PlanningDepotID = true, "DEPOT-2"
	due.Deadline = now.Add(time.Minute)
	const ofDepot, ofLate = "DEPOT_WITHOUT_CYCLES:DEPOT-1:2026-03-01T11:00:00Z", "CRITICAL_LATE:O1"
	for _, tt := range []struct {
		name    string
		order   domain.Order
		drone   domain.Drone
		cycle   bool // the depot has just had one
		process []live.Alert
		want    string // ids in their order, with causes
	}{
		{"an optimizer that is dead", late, domain.Drone{}, false, nil, ofDepot + ", " + ofLate + " by " + ofDepot},
		{"one that was due soon", due, domain.Drone{}, false, nil, ofDepot + ", CRITICAL_AT_RISK:O1 by " + ofDepot},
		{"another depot's order", elsewhere, domain.Drone{}, true, nil, ofLate},
		{"a silent drone", flown, silent, true, nil, "CONTACT_LOST:D1:2026-03-01T12:00:00Z, " + ofLate + " by CONTACT_LOST:D1:2026-03-01T12:00:00Z"},
		{"a ghost that has the parcel", held, ghost, true, nil, "GHOST:D1:M1, " + ofLate + " by GHOST:D1:M1"},
		{"a ghost that is silent", held, lost, true, nil, "GHOST:D1:M1, " + ofLate + " by GHOST:D1:M1, CONTACT_LOST:D1:2026-03-01T12:00:00Z"},
		{"a wrong clock", late, domain.Drone{}, true, []live.Alert{clock}, "CLOCK_OFF:clock, " + ofLate + " by CLOCK_OFF:clock"},
		{"a backlog, and a wrong clock", late, domain.Drone{}, true, []live.Alert{backlog, clock}, "BACKLOG_OLD:decisions, " + ofLate + " by BACKLOG_OLD:decisions, CLOCK_OFF:clock"},
		{"a silent drone, and a wrong clock", flown, silent, true, []live.Alert{clock}, "CONTACT_LOST:D1:2026-03-01T12:00:00Z, " + ofLate + " by CONTACT_LOST:D1:2026-03-01T12:00:00Z, CLOCK_OFF:clock"},
		{"a silent drone of another order", late, silent, true, nil, ofLate + ", CONTACT_LOST:D1:2026-03-01T12:00:00Z"},
	} {
		s := &live.State{
			Orders: map[domain.OrderID]domain.Order{"O1": tt.order}, Drones: map[domain.DroneID]domain.Drone{"D1": tt.drone},
			Missions: map[domain.MissionID]domain.Mission{"M1": {ID: "M1", DroneID: "D1", OrderIDs: []domain.OrderID{"O1"}}},
			Depots:   map[domain.DepotID]domain.Depot{"DEPOT-1": {}}, Process: tt.process,
		}
		if tt.cycle {
			s.Cycles = map[domain.CycleID]domain.Cycle{"C1": {DepotID: "DEPOT-1", StartedAt: now, Outcome: domain.CyclePublished}}
		}
		alerts := live.Alerts(s, now, 30*time.Second)
		slices.SortFunc(alerts, func(a, b live.Alert) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Cause, b.Cause)) })
		var got []string
		for _, a := range alerts {
			text := a.ID()
			if a.Cause != "" {
				text += " by " + a.Cause
			}
			got = append(got, text)
		}
		if got := strings.Join(got, ", "); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
		if !alerts[0].Urgent() {
			t.Errorf("%s: %s is not urgent", tt.name, alerts[0].ID())
		}
	}
}

// rotorEvery is a drone registered 30 days ago, whose rotor is due every 30 days, moved so
// that left remains.
func rotorEvery(now time.Time, left time.Duration) domain.Drone {
	return domain.Drone{RegisteredAt: now.Add(left).AddDate(0, 0, -30), Due: []domain.DueItem{{Item: "rotor", EveryDays: 30}}}
}

// flown is a drone that has flown some hours, and whose rotor is due every 100.
func flown(hours int64, maintained []domain.Maintenance) domain.Drone {
	return domain.Drone{FlightSeconds: hours * 3600, Due: []domain.DueItem{{Item: "rotor", EveryFlightHours: 100}}, Maintained: maintained}
}
