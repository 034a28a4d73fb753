package main

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/bench/dispatch/scenario"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
	"github.com/dronefleet/dronefleet/solver/model"
)

// flownOf is what a plan has its drones do.
func flownOf(p solver.Plan) (routes []flownRoute) {
	for _, r := range p.Routes {
		flown := flownRoute{DroneID: r.DroneID}
		for _, s := range r.Stops {
			if s.OrderID != "" {
				flown.Stops = append(flown.Stops, flownStop{Order: s.OrderID, Warehouse: s.WarehouseID})
			}
		}
		routes = append(routes, flown)
	}
	return routes
}

// The routes of a plan of ours, flown as a rival's, are worth the same: neither the
// solver nor the comparison counts anything in its own favour.
func TestPlanOf_AgreesWithTheSolver(t *testing.T) {
	for _, geography := range []string{"", "uniform"} {
		for seed := range uint64(4) {
			p := scenario.Generate(scenario.Params{Drones: 12, Orders: 80, Geography: geography, Seed: seed})
			ours, err := solver.Solve(t.Context(), p, solver.Options{Iterations: 500, Workers: 1, TimeLimit: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := planOf(p, flownOf(ours))
			if err != nil {
				t.Fatal(err)
			}
			if err := check.Plan(p, theirs); err != nil {
				t.Errorf("%q seed %d: %v", geography, seed, err)
			}
			a, b := ours.Objective, theirs.Objective
			if [model.PriorityCount]int(a.MissedByRank[:model.PriorityCount]) != [model.PriorityCount]int(b.MissedByRank[:model.PriorityCount]) || a.Unserved != b.Unserved || a.Late != b.Late {
				t.Errorf("%q seed %d: solver %+v, flown %+v", geography, seed, a, b)
			}
		}
	}
}

// A rival that delivers an order twice, or one that is not there, is found out.
func TestMeet_RefusesAFaultyPlan(t *testing.T) {
	f := flags{Drones: 6, Orders: 20, Time: time.Minute, Iterations: 200, Workers: 1, Strategy: "sisr"}
	p := scenario.Generate(f.params(1))
	r := solve(t.Context(), f, p, 1, 1, f.Time)
	good := flownOf(*r.Plan)
	twice := append([]flownRoute{{DroneID: good[0].DroneID, Stops: append(good[0].Stops[:len(good[0].Stops):len(good[0].Stops)], good[0].Stops...)}}, good[1:]...)
	for name, tt := range map[string]struct {
		routes []flownRoute
		want   string
	}{
		"our own":       {good, "ours 0.0 % less"},
		"twice":         {twice, "picked up again"},
		"unknown order": {[]flownRoute{{DroneID: good[0].DroneID, Stops: []flownStop{{Order: "X"}}}}, `order "X" is not in the problem`},
		"unknown drone": {[]flownRoute{{DroneID: "X"}}, `droneId "X" is not in the problem`},
	} {
		v := &rival{name: "rival", routes: map[problem][]flownRoute{r.problem: tt.routes}}
		if note := v.meet(r, p); !strings.Contains(note, tt.want) || (v.violations == 0) != (name == "our own") {
			t.Errorf("%s: %q, %d violations; want %q", name, note, v.violations, tt.want)
		}
	}
}

// Served alone, the orders that a rival serves leave nothing out.
func TestSameOrders_KeepsOnlyThoseOfTheRival(t *testing.T) {
	p := scenario.Generate(scenario.Params{Drones: 6, Orders: 20, Seed: 1})
	name := problem{Instance: 1, Drones: 6, Orders: 20}
	routes := []flownRoute{{DroneID: p.Drones[0].ID, Stops: []flownStop{{p.Orders[3].ID, p.Warehouses[0].ID}, {Order: p.Orders[3].ID}}}}
	rivals := []*rival{{routes: map[problem][]flownRoute{name: routes}}}
	if q, err := sameOrders(p, rivals, name); err != nil || len(q.Orders) != 1 || q.Orders[0].ID != p.Orders[3].ID || len(p.Orders) != 20 {
		t.Errorf("%d orders left of %d, %v", len(q.Orders), len(p.Orders), err)
	}
	if _, err := sameOrders(p, rivals, problem{Instance: 2}); err == nil || !strings.HasPrefix(err.Error(), "--same-orders needs one file of --rivals") {
		t.Errorf("without routes: %v", err)
	}
}
