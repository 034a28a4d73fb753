package planner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// northOf is a position some km north of the depot.
func northOf(km float64) domain.Position { return domain.Position{Lat: km / 111.195} }

// moment has a warehouse at the depot, one idle drone and one that flies; each carries 2 kg.
func moment(orders ...domain.Order) planner.Moment {
	drone := func(id domain.DroneID, status domain.DroneStatus, battery, km float64) domain.Drone {
		return domain.Drone{
			ID: id, Status: status, Battery: battery, Position: northOf(km), HomeDepotID: "D", SeenAt: noon, ConsumptionPerKm: 2.5, PayloadCapacityKg: 2, MaxFlightTimeMinutes: 38,
		}
	}
	idle, flying, charging := drone("IDLE", domain.DroneIdle, 50, 0), drone("FLIES", domain.DroneMoving, 90, 5), drone("CHARGES", domain.DroneCharging, 30, 0)
	flying.CurrentMissionID = "M-1"
	return planner.Moment{
		Snapshot: domain.Snapshot{
			ReadTime: noon, Depot: domain.Depot{ID: "D"}, Drones: []domain.Drone{idle}, Orders: orders,
			Warehouses: []domain.Warehouse{{ID: "W", ProductTypes: []string{"BLOOD"}}},
		},
		Drones: []domain.Drone{flying, charging, idle},
		Missions: []domain.Mission{{ID: "M-1", DroneID: "FLIES", Status: domain.MissionActive, Route: []domain.Waypoint{
			{Type: domain.WaypointHospitalDelivery, Position: northOf(10)}, {Type: domain.WaypointDepotReturn},
		}}},
	}
}

func ordered(id domain.OrderID, p domain.Priority, km, kg float64) domain.Order {
	created := noon.Add(-time.Minute)
	return domain.Order{
		ID: id, Status: domain.OrderPending, CreatedAt: created, Deadline: created.Add(p.Window()),
		OrderContent: domain.OrderContent{Priority: p, ProductType: "BLOOD", WeightKg: kg, Delivery: northOf(km)},
	}
}

func explained(t *testing.T, m planner.Moment, id domain.OrderID, what planner.WhatIf) planner.Explanation {
	t.Helper()
	e, err := planner.Explain(t.Context(), planner.Config{Options: solver.Options{Iterations: 50, Workers: 1}}, time.Now, m, id, what)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func candidates(e planner.Explanation) map[domain.DroneID]planner.Candidate {
	byID := map[domain.DroneID]planner.Candidate{}
	for _, c := range e.Nearest {
		byID[c.DroneID] = c
	}
	return byID
}

// F-ORD-06: each drone lacks what the numbers of the moment say. The order is 8 km away: 16
// km take 40 % of the charge, and 20 % stay.
func TestExplain_SaysWhatEachDroneLacks(t *testing.T) {
	e := explained(t, moment(ordered("FAR", domain.PriorityCritical, 8, 3)), "FAR", planner.WhatIf{})
	near := func(got, want float64) bool { return got > want-0.05 && got < want+0.05 }
	by := candidates(e)
	if c := by["IDLE"]; !near(c.ChargePercent, 10) || !near(c.ChargeKm, 4) || !near(c.PayloadKg, 1) || c.LateMinutes != 0 || c.BusyForMinutes != 0 || c.Doing != "idle" {
		t.Errorf("idle drone: %+v", c)
	}
	// It flies 5 km on and 10 km home, 18 min; then 9.6 min to the order, due in 14.
	if c := by["FLIES"]; !near(c.BusyForMinutes, 18) || !near(c.LateMinutes, 13.6) || c.Doing != "flies mission M-1" || !near(c.ChargePercent, 60-(90-37.5)) {
		t.Errorf("flying drone: %+v", c)
	}
	if c := by["CHARGES"]; !near(c.ChargePercent, 30) || !strings.Contains(strings.Join(c.Lacks, ", "), "readiness: it is CHARGING, 1.0 kg of payload, 30.0 % of charge (12.0 km)") {
		t.Errorf("charging drone: %+v", c)
	}
	if e.Plan.DroneID != "" || e.Plan.Reason == "" || e.Instead != nil || e.WhatIf != nil {
		t.Errorf("%+v", e)
	}
}

// F-LRN-02, F-ORD-06: candidates and added drones fly at the speed that was learned. At half the
// speed 8 km take 19.2 min, and the flight there and back is longer than the drone can fly.
func TestExplain_JudgesDronesByTheirLearnedSpeed(t *testing.T) {
	cfg := planner.Config{Options: solver.Options{Iterations: 50, Workers: 1}, Learned: learning.Estimates{SpeedKmh: 25}}
	m := moment(ordered("FAR", domain.PriorityHigh, 8, 1))
	e, err := planner.Explain(t.Context(), cfg, time.Now, m, "FAR", planner.WhatIf{AddDrones: 1})
	if err != nil {
		t.Fatal(err)
	}
	c := candidates(e)["IDLE"]
	if took := c.Arrival.Sub(noon).Minutes(); took < 19 || took > 19.4 || !strings.Contains(strings.Join(c.Lacks, ", "), "0.4 min of flight time") {
		t.Errorf("arrives after %.1f min: %+v", took, c)
	}
	if e.WhatIf.Plan.DroneID != "" {
		t.Errorf("an added drone is faster than those of the fleet: %+v", e.WhatIf.Plan)
	}
	// A cycle says the same, whether it judges by its idle drones or by all.
	if want := "out_of_range"; !strings.HasPrefix(e.Plan.Reason, want) {
		t.Errorf("reason %q, want %s", e.Plan.Reason, want)
	}
}

// F-ORD-05, F-ORD-06: an explanation judges by all drones, as a cycle does. Drones that were
// last heard of long ago do not count.
func TestExplain_GivesTheReasonOfACycle(t *testing.T) {
	m := moment(ordered("FAR", domain.PriorityHigh, 5000, 1), ordered("HEAVY", domain.PriorityHigh, 4, 3), ordered("NEAR", domain.PriorityHigh, 4, 1))
	m.Snapshot.Drones = nil
	for id, want := range map[domain.OrderID]string{"FAR": "out_of_range", "HEAVY": "over_capacity", "NEAR": "no_drone_free"} {
		if got := explained(t, m, id, planner.WhatIf{}).Plan.Reason; got != want {
			t.Errorf("%s waits, %s; want %s", id, got, want)
		}
	}
	strong := m.Drones[0]
	strong.ID, strong.PayloadCapacityKg = "STRONG", 5
	for seen, want := range map[time.Time]string{noon: "no_drone_free", noon.Add(-2 * time.Hour): "over_capacity"} {
		strong.SeenAt = seen
		more := m
		more.Drones = append(slices.Clone(m.Drones), strong)
		if got := explained(t, more, "HEAVY", planner.WhatIf{}).Plan.Reason; got != want {
			t.Errorf("with a strong drone seen at %s: %s, want %s", seen, got, want)
		}
	}
}

// F-ORD-06: the drone that could have served the order would leave another one behind.
func TestExplain_SaysWhomItWouldHaveCost(t *testing.T) {
	m := moment(ordered("URGENT", domain.PriorityCritical, 5, 1.5), ordered("OTHER", domain.PriorityHigh, 4, 1.5))
	m.Snapshot.Orders[1].Delivery = domain.Position{Lat: -4 / 111.195} // the other way: not with the same charge
	e := explained(t, m, "OTHER", planner.WhatIf{AddDrones: 1, DropReserve: true})
	if e.Plan.DroneID != "" {
		t.Fatalf("served: %+v", e.Plan)
	}
	if c := candidates(e)["IDLE"]; c.Doing != "idle, planned for URGENT" || len(c.Lacks) > 0 {
		t.Errorf("%+v", c)
	}
	if e.Instead == nil || e.Instead.Plan.DroneID != "IDLE" || e.Instead.WorseCount != 1 || e.Instead.Worse[0].OrderID != "URGENT" || e.Instead.Worse[0].After.DroneID != "" {
		t.Errorf("instead: %+v", e.Instead)
	}
	if e.WhatIf == nil || e.WhatIf.Plan.DroneID == "" || e.WhatIf.WorseCount != 0 {
		t.Errorf("with one more drone: %+v", e.WhatIf)
	}
}

// F-ORD-06: an order that no idle drone serves joins the mission of one in flight, as in a
// cycle, and the explanation says what that drone could do.
func TestExplain_ChangesMissionsUnderWay(t *testing.T) {
	w := newTown(0)
	w.order("URGENT", domain.PriorityCritical, north(8, 1), 0)
	m := planner.Moment{Snapshot: w.snapshot()}
	f := w.flying(1, domain.PriorityCritical, 14*time.Minute)
	m.Snapshot.Flights, m.Drones, m.Missions = []domain.Flight{f}, []domain.Drone{f.Drone}, []domain.Mission{f.Mission}
	e := explained(t, m, "URGENT", planner.WhatIf{})
	if e.Plan.DroneID != "FLYING" || e.Plan.MissionID != "M" || e.Plan.LateMinutes > 0 {
		t.Errorf("plan %+v", e.Plan)
	}
	if c := candidates(e)["FLYING"]; c.JoinArrival == nil || !c.JoinArrival.Equal(*e.Plan.Arrival) || c.JoinMinutes < 1.2 || c.JoinMinutes > 1.4 || len(c.Lacks) == 0 {
		t.Errorf("candidate %+v", c)
	}
}

// F-CHG-01: more slots would have charged the drones that wait for one since they landed,
// those that wait for longest first.
func TestExplain_SaysWhatMoreSlotsWouldChange(t *testing.T) {
	m := moment(ordered("FAR", domain.PriorityCritical, 8, 1))
	m.Snapshot.Depot.ChargingSlots = 1
	first, second := m.Drones[2], m.Drones[2]
	first.ID, first.Battery, first.IdleSince = "FIRST", 15, noon.Add(-6*time.Minute)
	second.ID, second.IdleSince = "SECOND", noon.Add(-3*time.Minute)
	m.Drones, m.Snapshot.Drones = []domain.Drone{second, first}, []domain.Drone{second}
	for slots, want := range map[int]domain.DroneID{0: "", 1: "FIRST", 2: "SECOND"} {
		e := explained(t, m, "FAR", planner.WhatIf{AddSlots: slots, DropReserve: true})
		if e.Plan.DroneID != "" || e.WhatIf == nil || (e.WhatIf.Plan.DroneID == "") != (want == "") {
			t.Errorf("%d slots: %+v, what if %+v", slots, e.Plan, e.WhatIf)
		}
		if slots == 1 && e.WhatIf.Plan.DroneID != want {
			t.Errorf("the drone that has waited for longest should have charged: %+v", e.WhatIf.Plan)
		}
	}
	m.Snapshot.Depot.ChargingSlots = 0 // a slot for every drone: nothing is missing
	if e := explained(t, m, "FAR", planner.WhatIf{AddSlots: 2}); e.WhatIf.Plan.DroneID != "" {
		t.Errorf("without a limit: %+v", e.WhatIf.Plan)
	}
}

// F-ORD-06: a drone that waits without orders is free, whatever its mission.
func TestExplain_CountsWaitingDronesAsFree(t *testing.T) {
	w, p := busyTown(t, 12)
	_, sent := w.next(t, p)
	f := w.onStandby(sent[0], w.warehouse, 80)
	w.drones = nil
	w.order("URGENT", domain.PriorityCritical, north(8, 1), 0)
	m := planner.Moment{Snapshot: w.snapshot(), Drones: []domain.Drone{f.Drone}, Missions: []domain.Mission{f.Mission}}
	m.Snapshot.Flights = []domain.Flight{f}
	e := explained(t, m, "URGENT", planner.WhatIf{})
	if c := candidates(e)[f.Drone.ID]; e.Plan.DroneID != f.Drone.ID || c.Doing != "waits on mission STANDBY" || len(c.Lacks) > 0 {
		t.Errorf("plan %+v, candidate %+v", e.Plan, c)
	}
}

// F-ORD-06: an order that a drone has not picked up yet is compared with the next best drone, and
// with what that drone would do otherwise.
func TestExplain_ComparesTheNextBestDrone(t *testing.T) {
	m := moment(ordered("OTHER", domain.PriorityHigh, 4, 1.5))
	m.Snapshot.Orders[0].Delivery = domain.Position{Lat: -4 / 111.195} // the other way: not with the same charge
	taken := ordered("TAKEN", domain.PriorityCritical, 5, 1.5)
	taken.Status, taken.AssignedDroneID, taken.AssignedMissionID = domain.OrderAssigned, "FLIES", "M-1"
	m.Assigned = &taken
	m.Missions[0].Route[0].OrderID, m.Missions[0].Route[0].ETA = "TAKEN", noon.Add(16*time.Minute)
	e := explained(t, m, "TAKEN", planner.WhatIf{PinTo: "IDLE"})
	if e.Plan.DroneID != "FLIES" || e.Plan.MissionID != "M-1" || e.Plan.LateMinutes != 2 || len(e.Nearest) != 2 || candidates(e)["FLIES"].DroneID != "" {
		t.Errorf("%+v", e)
	}
	for what, in := range map[string]*planner.Alternative{"instead": e.Instead, "pinned": e.WhatIf} {
		if in == nil || in.Plan.DroneID != "IDLE" || in.WorseCount != 1 || in.Worse[0].OrderID != "OTHER" || in.Worse[0].Before.DroneID != "IDLE" {
			t.Errorf("%s: %+v", what, in)
		}
	}
}

func TestExplain_RefusesAnOrderThatIsNotPending(t *testing.T) {
	_, err := planner.Explain(t.Context(), planner.Config{}, time.Now, moment(), "O-1", planner.WhatIf{})
	if !errors.Is(err, planner.ErrNotPlanned) {
		t.Errorf("error %v", err)
	}
}
