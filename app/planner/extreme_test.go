package planner_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/app/planview"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
)

// edge is a value at the edge of what the solver accepts, or one like any other.
func (s spoiler) edge(least, most float64, label string, edges ...float64) float64 {
	if s.spoil(label + " edge") {
		return rapid.SampledFrom(edges).Draw(s.T, label)
	}
	return s.number(least, most, label)
}

// extremeDrone is a drone whose record may be at the edge of what the solver accepts.
func (s spoiler) extremeDrone(d domain.Drone) domain.Drone {
	d.Battery = s.edge(30, 100, "battery", 20, 100, math.Nextafter(20, 100), 5e-324)
	d.PayloadCapacityKg = s.edge(1, 6, "capacity", 5e-324, 1e6, 1e17, 1e308, math.MaxFloat64)
	d.ConsumptionPerKm = s.edge(0.5, 2, "consumption", 0.001, 1000, 0)
	d.ConsumptionPerKmKg = s.edge(0, 0.3, "consumption of a kg", 5e-324, 1000)
	d.ChargeRate = s.edge(0, 20, "charge rate", 5e-324, 1e-9, math.MaxFloat64)
	d.Grounded, d.IdleSince = s.spoil("grounded"), s.time(-7200, 0, "idle since")
	d.Status = rapid.SampledFrom([]domain.DroneStatus{domain.DroneIdle, domain.DroneIdle, domain.DroneMoving, domain.DroneCharging}).Draw(s.T, "status")
	d.HomeDepotID = rapid.SampledFrom([]domain.DepotID{depot.ID, depot.ID, "E", "B", ""}).Draw(s.T, "home")
	return d
}

func (s spoiler) orders(ids ...domain.OrderID) (orders []domain.Order) {
	for _, id := range ids {
		o := s.order(id, domain.OrderPending)
		o.WeightKg = s.edge(0, 2, "weight", 1e6, math.Nextafter(1e6, 0), 5e-324)
		o.PlanningDepotID = rapid.SampledFrom([]domain.DepotID{depot.ID, "E", "B"}).Draw(s.T, "planned by")
		switch rapid.IntRange(0, 9).Draw(s.T, "restricted") {
		case 0:
			o.PinnedDroneID = "I0"
		case 1:
			o.ForbiddenDroneIDs = []domain.DroneID{"I0", "F0"}
		}
		orders = append(orders, o)
	}
	return orders
}

func (s spoiler) depot(id domain.DepotID) domain.Depot {
	return domain.Depot{ID: id, Position: s.point("depot"), ChargingSlots: rapid.SampledFrom([]int{0, 1, 3, -1, math.MaxInt}).Draw(s.T, "slots")}
}

func numbered[ID ~string](s spoiler, prefix string, most int) (ids []ID) {
	for i := range rapid.IntRange(0, most).Draw(s.T, prefix) {
		id := fmt.Sprint(prefix, i)
		if s.spoil("id") {
			id += rapid.SampledFrom([]string{"\n", strings.Repeat("x", 120), strings.Repeat("x", domain.MaxIDBytes)}).Draw(s.T, "id")
		}
		ids = append(ids, ID(id))
	}
	return ids
}

// snapshot is of an area with one depot or two, and perhaps one beyond.
func (s spoiler) snapshot() domain.Snapshot {
	snap := newTown(rapid.IntRange(0, 3).Draw(s.T, "sound drones")).snapshot()
	snap.CycleID, snap.Fence, snap.Depot.ChargingSlots = "C", "7", s.depot("").ChargingSlots
	if s.oneIn(2, "neighbour") {
		snap.Neighbours = []domain.Depot{s.depot("E")}
	}
	if s.oneIn(2, "beyond") {
		snap.Beyond = []domain.Depot{s.depot("B")}
	}
	for _, id := range numbered[domain.WarehouseID](s, "W", 2) {
		snap.Warehouses = append(snap.Warehouses, domain.Warehouse{ID: id, Position: s.point("warehouse"), ProductTypes: []string{"BLOOD", ""}})
	}
	for _, id := range numbered[domain.DroneID](s, "I", 2) {
		snap.Drones = append(snap.Drones, s.extremeDrone(s.drone(id)))
	}
	for _, id := range numbered[domain.DroneID](s, "F", 3) {
		f := s.flight(id)
		if s.spoil("flying drone") {
			f.Drone = s.extremeDrone(f.Drone)
		}
		snap.Flights = append(snap.Flights, f)
	}
	for _, id := range numbered[domain.DroneID](s, "C", 2) {
		snap.Charging = append(snap.Charging, s.extremeDrone(s.drone(id)))
	}
	snap.Orders = s.orders(numbered[domain.OrderID](s, "O", 5)...)
	return snap
}

func (s spoiler) sums(label string) domain.LegSums {
	n := func(most float64) float64 { return s.edge(0, most, label, 5e-324, 1e38, 1e300) }
	return domain.LegSums{Weight: n(100), Km: n(300), Seconds: n(30_000), KmKm: n(1000), KmSeconds: n(90_000)}
}

// estimates are of a store whose documents may say anything.
func (s spoiler) estimates() learning.Estimates {
	if s.oneIn(2, "nothing learned") {
		return learning.Estimates{}
	}
	l := domain.Learned{
		Travel: domain.Travel{FromStart: s.sums("start"), FromPickup: s.sums("pickup"), FromDelivery: s.sums("delivery"), Delays: make([]float64, domain.DelayBins)},
		Drones: map[domain.DroneID]domain.DroneTravel{"I0": {Flight: s.sums("drone")}, "F0": {Flight: s.sums("drone")}},
		Demand: domain.Demand{Hours: make([]domain.HourDemand, 24)},
	}
	for i := range l.Travel.Delays {
		l.Travel.Delays[i] = s.edge(0, 3, "delays", 1e300)
	}
	for i := range l.Demand.Hours {
		l.Demand.Hours[i].Hours = s.edge(0, 20, "hours", 1e38, 5e-324)
		l.Demand.Hours[i].Orders[2] = s.edge(0, 20, "orders of the hour", 1e38, 5e-324)
	}
	for range rapid.IntRange(0, 4).Draw(s.T, "places") {
		p := domain.PointDemand{Position: s.point("expected"), ProductType: "BLOOD", WeightKg: s.edge(0, 2, "weight", 1e6)}
		p.Orders[2] = s.edge(0, 20, "orders of the place", 1e38, 5e-324)
		l.Demand.Points = append(l.Demand.Points, p)
	}
	return learning.Estimate(l, planner.Assumed(solver.Params{}), s.edge(0.5, 0.99, "confidence", 0, 1))
}

// F-OPT-04, F-DEC-02: whatever the store holds, each of several cycles ends with a plan that
// passes the checker at once, can be shown, and whose decisions the wire accepts.
func TestPlanner_PlansAnyArea(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := spoiler{rt, newTown(0).now, rapid.SampledFrom([]int{0, 10, 50, 200}).Draw(rt, "spoils"), true}
		p := planner.New(planner.Config{
			Options: solver.Options{Iterations: 20, Workers: 1}, Advance: s.oneIn(2, "position"), Immediate: s.oneIn(4, "immediate"),
			Learned: s.estimates(), Refused: func(_ solver.Problem, broken error) { rt.Error(broken) },
		}, time.Now)
		for range 3 {
			snap := s.snapshot()
			snap.ReadTime = s.now
			result, err := p.PlanSnapshot(rt.Context(), snap, s.now)
			if err != nil {
				rt.Fatal(err)
			}
			if broken := check.Plan(result.Problem, result.Plan); broken != nil {
				rt.Fatal(broken)
			}
			if len(result.Obstacles) != len(result.Plan.Unserved) {
				rt.Fatalf("%d obstacles of %d orders", len(result.Obstacles), len(result.Plan.Unserved))
			}
			s.publishes(snap, result)
			s.shows(result)
			s.handsOver(snap, result)
			p.ObserveLeadTime(time.Second)
			s.now = s.now.Add(time.Duration(rapid.IntRange(-10, 3600).Draw(rt, "until the next")) * time.Second)
		}
	})
}

// publishes fails if a decision is not one that a State Manager reads.
func (s spoiler) publishes(snap domain.Snapshot, r planner.Result) {
	for _, d := range planner.DecisionsOf(r.Plan, snap) {
		for _, f := range []wire.Format{wire.Protobuf, wire.JSON} {
			data, attrs, err := wire.EncodeDecision(d, f)
			if err != nil {
				s.Fatalf("%+v: %v", d, err)
			}
			if _, err := wire.DecodeDecision(data, attrs); err != nil {
				s.Fatalf("%+v: %v", d, err)
			}
		}
	}
}

func (s spoiler) shows(r planner.Result) {
	var text, geo bytes.Buffer
	if err := planview.WriteText(&text, r.Problem, r.Plan); err != nil {
		s.Fatal(err)
	}
	if err := planview.WriteGeoJSON(&geo, r.Problem, r.Plan); err != nil {
		s.Fatal(err)
	}
	if _, err := json.Marshal(r.Plan); err != nil {
		s.Fatal(err)
	}
	if bytes.Contains(text.Bytes(), []byte("NaN")) && s.spoils == 0 {
		s.Fatalf("%s", text.Bytes())
	}
}

func (s spoiler) handsOver(snap domain.Snapshot, r planner.Result) {
	all := append(snap.Charging, snap.Drones...)
	planner.JudgeByAllDrones(r.Problem, r.Plan.Unserved, all, r.Learned)
	left := planner.HandOverCandidatesOf(r.Problem, r.Plan.Unserved, r.Obstacles, snap, r.Learned)
	left.NeedAllDrones()
	left.HandOvers(planner.OtherAreas{Depots: left.Depots(), Idle: all, All: all, Waiting: map[domain.DepotID]int{"B": math.MaxInt}})
}

// F-ORD-06: whatever the store holds, an order's wait can be explained.
func TestExplain_ExplainsAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := spoiler{rt, newTown(0).now, rapid.SampledFrom([]int{0, 10, 50, 200}).Draw(rt, "spoils"), rapid.Bool().Draw(rt, "stored")}
		m := planner.Moment{Snapshot: s.snapshot()}
		m.Snapshot.Orders = append(m.Snapshot.Orders, s.orders("X")...)
		m.Snapshot.ReadTime = s.now
		m.Drones = append(m.Drones, m.Snapshot.Drones...)
		m.Drones = append(m.Drones, m.Snapshot.Charging...)
		for _, f := range m.Snapshot.Flights {
			m.Drones, m.Missions = append(m.Drones, f.Drone), append(m.Missions, f.Mission)
		}
		cfg := planner.Config{
			Options: solver.Options{Iterations: 10, Workers: 1}, Advance: true, Learned: s.estimates(),
			Refused: func(_ solver.Problem, broken error) { rt.Error(broken) },
		}
		what := planner.WhatIf{
			AddDrones: rapid.SampledFrom([]int{0, 1, 3}).Draw(rt, "more drones"), AddSlots: rapid.SampledFrom([]int{0, 1, planner.MaxAdded}).Draw(rt, "more slots"),
			DropReserve: rapid.Bool().Draw(rt, "no reserve"),
		}
		id := rapid.SampledFrom(m.Snapshot.Orders).Draw(rt, "order").ID
		e, err := planner.Explain(rt.Context(), cfg, time.Now, m, id, what)
		if err != nil {
			rt.Fatal(err)
		}
		if _, err := json.Marshal(e); err != nil {
			rt.Fatal(err)
		}
	})
}
