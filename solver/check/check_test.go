package check_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
	"github.com/dronefleet/dronefleet/solver/model"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sound is a problem and a plan with one route of two orders.
func sound(t *testing.T) (solver.Problem, solver.Plan) {
	t.Helper()
	at := func(lat float64) solver.Location { return solver.Location{Lat: lat, Lon: lat - 5.8} } // north-east
	p := solver.Problem{
		Now:    noon,
		Depots: []solver.Depot{{ID: "depot", At: at(5.60)}, {ID: "other", At: at(5.70)}},
		Warehouses: []solver.Warehouse{
			{ID: "wh", At: at(5.62), ProductTypes: []string{"BLOOD"}, ColdStorage: true},
			{ID: "warm", At: at(5.62), ProductTypes: []string{"BLOOD"}},
			{ID: "empty", At: at(5.62)},
			{ID: "plasma", At: at(5.62), ProductTypes: []string{"PLASMA"}, ColdStorage: true},
		},
		Drones: []solver.Drone{{ID: "drone", At: at(5.60), HomeDepotID: "depot", BatteryPercent: 90, CapacityKg: 5}},
		Orders: []solver.Order{
			{ID: "a", Delivery: at(5.64), ProductType: "BLOOD", ColdChain: true, WeightKg: 2},
			{ID: "b", Delivery: at(5.65), ProductType: "BLOOD", ColdChain: true, WeightKg: 2},
			{ID: "heavy", Delivery: at(5.65), ProductType: "BLOOD", WeightKg: 20},
		},
		Params: solver.Params{PickupService: time.Minute, DeliveryService: 2 * time.Minute},
	}
	plan, err := solver.Solve(context.Background(), p, solver.Options{Iterations: 200})
	if err != nil {
		t.Fatal(err)
	}
	if err := check.Plan(p, plan); err != nil {
		t.Fatal(err)
	}
	if len(plan.Routes) != 1 || len(plan.Routes[0].Stops) != 6 {
		t.Fatalf("unexpected plan %+v", plan)
	}
	return p, plan
}

func TestPlan_NamesTheBrokenRule(t *testing.T) {
	tests := map[string]struct {
		spoil func(*solver.Problem, *solver.Plan)
		rule  string
	}{
		"delivery before pickup": {func(_ *solver.Problem, x *solver.Plan) {
			s := x.Routes[0].Stops
			s[1], s[4] = s[4], s[1]
		}, "precedence"},
		"a stop is missing": {func(_ *solver.Problem, x *solver.Plan) {
			x.Routes[0].Stops = append(x.Routes[0].Stops[:4], x.Routes[0].Stops[5])
		}, "pairing"},
		"delivered elsewhere":         {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[3].At.Lon += 0.01 }, "pairing"},
		"warehouse without stock":     {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[1].WarehouseID = "empty" }, "stock"},
		"warehouse of other products": {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[1].WarehouseID = "plasma" }, "stock"},
		"warehouse elsewhere":         {func(p *solver.Problem, _ *solver.Plan) { p.Warehouses[0].At.Lon += 0.01 }, "stock"},
		"not fetched where it is":     {func(p *solver.Problem, _ *solver.Plan) { p.Orders[0].Pickup = &p.Orders[1].Delivery }, "stock"},
		"warehouse not cold":          {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[1].WarehouseID = "warm" }, "stock"},
		"unknown warehouse":           {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[1].WarehouseID = "x" }, "stock"},
		"unknown drone":               {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].DroneID = "x" }, "drone"},
		"two routes of a drone":       {func(_ *solver.Problem, x *solver.Plan) { x.Routes = append(x.Routes, x.Routes[0]) }, "drone"},
		"pinned to another drone":     {func(p *solver.Problem, _ *solver.Plan) { p.Orders[0].PinnedDroneID = "x" }, "allowed"},
		"forbidden to the drone": {func(p *solver.Problem, x *solver.Plan) {
			p.Orders[1].ForbiddenDroneIDs = []string{"x", x.Routes[0].DroneID}
		}, "allowed"},
		"wrong depot":           {func(p *solver.Problem, _ *solver.Plan) { p.Drones[0].HomeDepotID = "other" }, "ends"},
		"no depot":              {func(p *solver.Problem, _ *solver.Plan) { p.Drones[0].HomeDepotID, p.Depots = "", p.Depots[1:] }, "ends"},
		"starts elsewhere":      {func(p *solver.Problem, _ *solver.Plan) { p.Drones[0].At.Lat += 0.1 }, "ends"},
		"too heavy":             {func(p *solver.Problem, _ *solver.Plan) { p.Drones[0].CapacityKg = 3 }, "capacity"},
		"too heavy by far":      {func(p *solver.Problem, _ *solver.Plan) { p.Drones[0].CapacityKg = 0.5 }, "capacity"},
		"capacity below zero":   {func(p *solver.Problem, _ *solver.Plan) { p.Drones[0].CapacityKg = -1 }, "capacity"},
		"capacity not a number": {func(p *solver.Problem, _ *solver.Plan) { p.Drones[0].CapacityKg = math.NaN() }, "capacity"},
		"weight not a number": {func(p *solver.Problem, _ *solver.Plan) {
			p.Drones[0].CapacityKg, p.Orders[0].WeightKg = 10, math.NaN()
		}, "capacity"},
		"lands below the reserve": {func(p *solver.Problem, _ *solver.Plan) { p.Drones[0].BatteryPercent = 30 }, "reserve"},
		// F-DEC-02: the State Manager forgives no more.
		"a little too heavy": {func(p *solver.Problem, _ *solver.Plan) { p.Drones[0].CapacityKg = 4 - 5e-7 }, "capacity"},
		"lands a little below the reserve": {func(p *solver.Problem, x *solver.Plan) {
			p.Params.ReservePercent = p.Drones[0].BatteryPercent - x.Routes[0].BatteryUsePercent + 5e-7
		}, "reserve"},
		"says it lands a little below": {func(p *solver.Problem, x *solver.Plan) {
			p.Params.ReservePercent = p.Drones[0].BatteryPercent - x.Routes[0].BatteryUsePercent
			x.Routes[0].BatteryUsePercent += 5e-7
		}, "reserve"},
		"flies too long":  {func(p *solver.Problem, _ *solver.Plan) { p.Drones[0].MaxFlight = time.Minute }, "flight"},
		"too many orders": {func(p *solver.Problem, _ *solver.Plan) { p.Params.MaxOrdersPerRoute = 1 }, "size"},
		"order forgotten": {func(_ *solver.Problem, x *solver.Plan) { x.Unserved = nil }, "conservation"},
		"order twice":     {func(_ *solver.Problem, x *solver.Plan) { x.Unserved = append(x.Unserved, x.Unserved[0]) }, "conservation"},
		"served and unserved": {func(_ *solver.Problem, x *solver.Plan) {
			x.Unserved = append(x.Unserved, solver.Unserved{OrderID: "a", Index: 0, Reason: solver.NoDroneFree})
		}, "conservation"},
		"second record of a served order forgotten": {func(p *solver.Problem, _ *solver.Plan) { p.Orders = append(p.Orders, p.Orders[0]) }, "conservation"},
		"no reason":     {func(_ *solver.Problem, x *solver.Plan) { x.Unserved[0].Reason = "" }, "bank"},
		"wrong arrival": {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[2].ETA = noon }, "eta"},
		"late arrival": {func(_ *solver.Problem, x *solver.Plan) {
			x.Routes[0].Stops[2].ETA = x.Routes[0].Stops[2].ETA.Add(time.Second)
		}, "eta"},
		"a load that uses charge": {func(p *solver.Problem, _ *solver.Plan) { // F-CHG-02
			p.Drones[0].CapacityKg, p.Drones[0].ConsumptionPercentPerKmKg = 10, 0.1
		}, "battery"},
		"wrong charge":    {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[2].BatteryPercent++ }, "battery"},
		"wrong way":       {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[2].DistanceKm++ }, "distance"},
		"wrong total":     {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].DistanceKm++ }, "totals"},
		"wrong use":       {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].BatteryUsePercent-- }, "totals"},
		"said to be fast": {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Duration -= time.Second }, "totals"},
		"said to be slow": {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Duration += time.Second }, "totals"},
		"wrong longest":   {func(_ *solver.Problem, x *solver.Plan) { x.Objective.LongestKm++ }, "objective"},
		"wrong objective": {func(_ *solver.Problem, x *solver.Plan) { x.Objective.DistanceKm++ }, "objective"},
		"hidden order":    {func(_ *solver.Problem, x *solver.Plan) { x.Objective.Unserved = solver.Objective{}.Unserved }, "objective"},
		"hidden lateness": {func(p *solver.Problem, _ *solver.Plan) { p.Orders[0].Deadline = noon }, "objective"},
		"no start":        {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops = x.Routes[0].Stops[1:] }, "ends"},
		"no return":       {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops = x.Routes[0].Stops[:5] }, "ends"},
		"stop of no kind": {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[2].Kind = solver.DepotReturn }, "ends"},
		"serves no order": {func(_ *solver.Problem, x *solver.Plan) {
			s := x.Routes[0].Stops
			x.Routes[0].Stops = []solver.Stop{s[0], s[5]}
		}, "empty"},
		"delivers an unknown order": {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[4].OrderID = "x" }, "order"},
		"unserved before the first": {func(_ *solver.Problem, x *solver.Plan) { x.Unserved[0].Index = -1 }, "bank"},
		"unserved after the last":   {func(_ *solver.Problem, x *solver.Plan) { x.Unserved[0].Index = 3 }, "bank"},
		"unserved for any reason":   {func(_ *solver.Problem, x *solver.Plan) { x.Unserved[0].Reason = "tired" }, "bank"},
		"called invalid": {func(_ *solver.Problem, x *solver.Plan) {
			x.Unserved[0].Reason, x.Objective.Unserved = solver.InvalidInput, solver.Objective{}.Unserved
		}, "bank"},
		"unserved by another name": {func(_ *solver.Problem, x *solver.Plan) { x.Unserved[0].OrderID = "a" }, "bank"},
		"no stops":                 {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops = nil }, "ends"},
		"unknown order":            {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[1].OrderID = "x" }, "order"},
		"picked up twice":          {func(_ *solver.Problem, x *solver.Plan) { x.Routes[0].Stops[2] = x.Routes[0].Stops[1] }, "once"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, plan := sound(t)
			test.spoil(&p, &plan)
			var violations check.Violations
			if err := check.Plan(p, plan); !errors.As(err, &violations) {
				t.Fatalf("not noticed: %v", err)
			}
			for _, f := range violations {
				if f.Rule == test.rule {
					if !strings.Contains(violations.Error(), "plan breaks") {
						t.Error(violations.Error())
					}
					return
				}
			}
			t.Fatalf("rule %q not among %v", test.rule, violations)
		})
	}
}

// What uses a limit up is within it.
func TestPlan_AcceptsWhatJustFits(t *testing.T) {
	for name, fit := range map[string]func(*solver.Problem, solver.Route){
		"full":                    func(p *solver.Problem, _ solver.Route) { p.Drones[0].CapacityKg = 4 },
		"a drone without a limit": func(p *solver.Problem, _ solver.Route) { p.Drones[0].CapacityKg = 0 },
		"lands with the reserve": func(p *solver.Problem, r solver.Route) {
			p.Params.ReservePercent = p.Drones[0].BatteryPercent - r.BatteryUsePercent
		},
		"has no end of time":       func(p *solver.Problem, _ solver.Route) { p.Drones[0].MaxFlight = math.MaxInt64 },
		"flies as long as it can":  func(p *solver.Problem, r solver.Route) { p.Drones[0].MaxFlight = r.Duration },
		"as many orders as may be": func(p *solver.Problem, _ solver.Route) { p.Params.MaxOrdersPerRoute = 2 },
		"home is any depot":        func(p *solver.Problem, _ solver.Route) { p.Drones[0].HomeDepotID = "" },
		"late, with a priority above all": func(p *solver.Problem, _ solver.Route) {
			p.Orders[0].Deadline, p.Orders[0].Priority = noon, 99
		},
		"late, with a priority below all": func(p *solver.Problem, _ solver.Route) {
			p.Orders[0].Deadline, p.Orders[0].Priority = noon, -1
		},
		"fetched where it is": func(p *solver.Problem, _ solver.Route) { p.Orders[0].Pickup = &p.Warehouses[0].At },
	} {
		t.Run(name, func(t *testing.T) {
			p, plan := sound(t)
			fit(&p, plan.Routes[0])
			if err := check.Plan(p, plan); err != nil {
				t.Error(err)
			}
		})
	}
}

// F-OPT-04: what is called invalid counts as no order, so that must be so.
func TestPlan_AcceptsAsInvalidWhatIs(t *testing.T) {
	nowhere := solver.Location{Lat: 5.6, Lon: math.NaN()}
	for name, spoil := range map[string]func(*solver.Order){
		"nothing":                 nil,
		"no id":                   func(o *solver.Order) { o.ID = "" },
		"a long id":               func(o *solver.Order) { o.ID = strings.Repeat("x", 129) },
		"an id with a zero":       func(o *solver.Order) { o.ID = "a\x00b" },
		"an id of another's":      func(o *solver.Order) { o.ID = "a" },
		"delivered nowhere":       func(o *solver.Order) { o.Delivery = nowhere },
		"delivered beyond a pole": func(o *solver.Order) { o.Delivery.Lat = 90.1 },
		"fetched nowhere":         func(o *solver.Order) { o.Pickup = &nowhere },
		"fetched around the globe": func(o *solver.Order) {
			o.Pickup = &solver.Location{Lon: -180.1}
		},
		"no product":           func(o *solver.Order) { o.ProductType = "" },
		"no weight":            func(o *solver.Order) { o.WeightKg = math.NaN() },
		"a weight below zero":  func(o *solver.Order) { o.WeightKg = -1 },
		"a weight without end": func(o *solver.Order) { o.WeightKg = math.Inf(1) },
		"an unknown priority":  func(o *solver.Order) { o.Priority = solver.Priority(model.PriorityCount) },
	} {
		p, plan := sound(t)
		if spoil != nil {
			spoil(&p.Orders[2])
		}
		plan.Unserved[0].OrderID, plan.Unserved[0].Reason = p.Orders[2].ID, solver.InvalidInput
		plan.Objective.Unserved = solver.Objective{}.Unserved
		if err := check.Plan(p, plan); (err == nil) != (spoil != nil) {
			t.Errorf("%s is wrong with it: %v", name, err)
		}
	}
}

// Of records that share an id the first counts.
func TestPlan_GoesByTheFirstRecord(t *testing.T) {
	p, plan := sound(t)
	p.Drones = append(p.Drones, solver.Drone{ID: "drone"})
	p.Depots = append(p.Depots, solver.Depot{ID: "depot"})
	p.Warehouses = append(p.Warehouses, solver.Warehouse{ID: "wh"})
	p.Orders = append(p.Orders, solver.Order{ID: "a"})
	plan.Unserved = append(plan.Unserved, solver.Unserved{OrderID: "a", Index: 3, Reason: solver.InvalidInput})
	if err := check.Plan(p, plan); err != nil {
		t.Error(err)
	}
}

func TestFaults_Error(t *testing.T) {
	p, plan := sound(t)
	plan.Routes[0].Stops[1].WarehouseID = "x"
	want := `plan breaks 1 rules: [stock drone="drone" order="` + plan.Routes[0].Stops[1].OrderID + `" unknown warehouse "x"]`
	if err := check.Plan(p, plan); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for i := range plan.Routes[0].Stops {
		plan.Routes[0].Stops[i].DistanceKm++
	}
	err := check.Plan(p, plan)
	if err == nil || strings.Count(err.Error(), "[") != 5 || !strings.HasSuffix(err.Error(), "] ...") {
		t.Errorf("%v, want five of seven violations", err)
	}
}
