package solver_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
	"github.com/dronefleet/dronefleet/solver/model"
)

// extremes draws problems at the edges of what the solver calls valid.
type extremes struct {
	*rapid.T
	tight bool // all places are within less than the width of a hair
}

func (x extremes) oneOf(label string, values ...float64) float64 {
	return rapid.SampledFrom(values).Draw(x.T, label)
}

func (x extremes) duration(label string, values ...time.Duration) time.Duration {
	return rapid.SampledFrom(values).Draw(x.T, label)
}

const centuries = 290 * 365 * 24 * time.Hour

func (x extremes) time(label string) time.Time {
	return rapid.SampledFrom([]time.Time{
		{}, {}, noon, noon, noon.Add(time.Millisecond), noon.Add(-time.Hour), noon.Add(10 * time.Minute), time.Unix(0, 0),
		time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC),
	}).Draw(x.T, label)
}

// place is one of the town, of the poles, of the antimeridian or very near another.
func (x extremes) place(label string) solver.Location {
	if x.tight {
		return solver.Location{Lat: 5.6 + x.oneOf(label+" north", 0, 1e-15, 2e-15), Lon: -0.2 + x.oneOf(label+" east", 0, 3e-17)}
	}
	switch rapid.IntRange(0, 9).Draw(x.T, label) {
	case 0:
		return solver.Location{Lat: x.oneOf(label+" lat", 90, -90, math.Nextafter(90, 0), 89.99), Lon: x.oneOf(label+" lon", 0, 180, -180, 77)}
	case 1:
		return solver.Location{Lat: x.oneOf(label+" lat", 0, 5.6, 5e-324), Lon: x.oneOf(label+" lon", 180, -180, 179.99, -179.99, math.Nextafter(180, 0))}
	case 2:
		return solver.Location{Lat: rapid.Float64Range(-90, 90).Draw(x.T, label+" lat"), Lon: rapid.Float64Range(-180, 180).Draw(x.T, label+" lon")}
	case 3, 4:
		return solver.Location{Lat: 5.6 + x.oneOf(label+" north", 0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3), Lon: -0.2 + x.oneOf(label+" east", 0, 1e-12, 1e-9, 1e-6)}
	default:
		return solver.Location{Lat: 5.6 + rapid.Float64Range(-0.1, 0.1).Draw(x.T, label+" lat"), Lon: -0.2 + rapid.Float64Range(-0.1, 0.1).Draw(x.T, label+" lon")}
	}
}

func (x extremes) drone(i int) solver.Drone {
	return solver.Drone{
		ID: fmt.Sprint("d", i), At: x.place("drone"), HomeDepotID: rapid.SampledFrom([]string{"", "depot0", "depot1"}).Draw(x.T, "home"),
		BatteryPercent:            x.oneOf("battery", 100, 90, 20, math.Nextafter(20, 100), 20+1e-9, 20+1e-6, 20.01, 0, 5e-324),
		ConsumptionPercentPerKm:   x.oneOf("consumption", 0, 0.001, 1000, 1, 2.5),
		ConsumptionPercentPerKmKg: x.oneOf("consumption of a kg", 0, 0, 5e-324, 1e-9, 0.3, 1000),
		CapacityKg:                x.oneOf("capacity", 0, 5e-324, 1e-9, 3, 5, 1e5, 1e6, 64e6, 1e17, 1e308, math.MaxFloat64),
		SpeedKmh:                  x.oneOf("speed", 0, 1, 1000, 70),
		MaxFlight:                 x.duration("flight", 0, 0, 1, time.Second, 38*time.Minute, centuries, math.MaxInt64),
	}
}

func (x extremes) order(i int, drones int) solver.Order {
	o := solver.Order{
		ID: fmt.Sprint("o", i), Delivery: x.place("delivery"), ProductType: rapid.SampledFrom([]string{"BLOOD", "VACCINE"}).Draw(x.T, "product"),
		WeightKg: x.oneOf("weight", 0, 5e-324, 1e-9, 0.1, 1, 1.5, 3, model.MaxWeightKg, math.Nextafter(model.MaxWeightKg, 0), model.MaxWeightKg/3),
		Priority: solver.Priority(rapid.IntRange(0, model.PriorityCount-1).Draw(x.T, "priority")), ColdChain: rapid.IntRange(0, 4).Draw(x.T, "cold") == 0,
		CreatedAt: x.time("created"), Deadline: x.time("deadline"),
	}
	if rapid.IntRange(0, 2).Draw(x.T, "own pickup") == 0 {
		at := x.place("pickup")
		o.Pickup = &at
	}
	drone := func(label string) string {
		return fmt.Sprint("d", rapid.IntRange(0, drones).Draw(x.T, label))
	}
	switch rapid.IntRange(0, 7).Draw(x.T, "restricted") {
	case 0:
		o.PinnedDroneID = drone("pin")
	case 1:
		o.ForbiddenDroneIDs = []string{drone("forbidden"), drone("forbidden")}
	case 2:
		o.PinnedDroneID = drone("pin")
		o.ForbiddenDroneIDs = []string{o.PinnedDroneID}
	}
	return o
}

func (x extremes) params() solver.Params {
	service := func(label string) time.Duration {
		return x.duration(label, 0, 0, 1, time.Minute, model.MaxService, -1, math.MaxInt64, math.MinInt64)
	}
	return solver.Params{
		ReservePercent: x.oneOf("reserve", 0, 0, 20, -1, 100, 1e308, math.Inf(-1), math.NaN(), 5e-324), PickupService: service("pickup service"), DeliveryService: service("delivery service"),
		MaxOrdersPerRoute: rapid.SampledFrom([]int{0, 1, 2, 64, 65, -1, math.MaxInt}).Draw(x.T, "orders of a route"),
		AgingStep:         x.duration("aging", 0, 0, 1, -1, time.Second, math.MaxInt64),
	}
}

// problem has one drone or a few, and one order or many.
func (x extremes) problem() solver.Problem {
	p := solver.Problem{Now: rapid.SampledFrom([]time.Time{noon, noon, noon, {}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)}).Draw(x.T, "now"), Params: x.params()}
	for i := range rapid.IntRange(1, 2).Draw(x.T, "depots") {
		p.Depots = append(p.Depots, solver.Depot{ID: fmt.Sprint("depot", i), At: x.place("depot")})
	}
	for i := range rapid.IntRange(1, 3).Draw(x.T, "warehouses") {
		p.Warehouses = append(p.Warehouses, solver.Warehouse{ID: fmt.Sprint("w", i), At: x.place("warehouse"), ProductTypes: []string{"BLOOD", "VACCINE"}[:1+i%2], ColdStorage: i == 0})
	}
	drones := rapid.IntRange(1, 5).Draw(x.T, "drones")
	for i := range drones {
		p.Drones = append(p.Drones, x.drone(i))
	}
	for i := range rapid.IntRange(1, 14).Draw(x.T, "orders") {
		p.Orders = append(p.Orders, x.order(i, drones))
	}
	return p
}

// F-OPT-04: at the edges of what is valid the solver and the checker agree, whatever the
// strategy, and whatever plan the solver starts from.
func TestSolve_PlansExtremeInput(t *testing.T) {
	served := 0
	rapid.Check(t, func(rt *rapid.T) {
		x := extremes{rt, rapid.IntRange(0, 3).Draw(rt, "tight") == 0}
		p := x.problem()
		solve := func(o solver.Options) solver.Plan {
			plan, err := solver.Solve(rt.Context(), p, o)
			if err != nil {
				rt.Fatal(err)
			}
			if err := check.Plan(p, plan); err != nil {
				rt.Fatalf("strategy %d, goal %d: %v", o.Strategy, o.Goal, err)
			}
			served += len(plan.Routes)
			return plan
		}
		if err := check.Plan(p, solver.Screen(p)); err != nil {
			rt.Fatalf("screen: %v", err)
		}
		warm := solve(solver.Options{Strategy: solver.Greedy})
		solve(solver.Options{Strategy: solver.NearestFirst})
		solve(solver.Options{Iterations: 16, Goal: solver.Goal(rapid.IntRange(0, 1).Draw(rt, "goal"))})
		p.Now = p.Now.Add(x.duration("later", 0, time.Second, -time.Minute, centuries))
		for i := range p.Drones {
			if rapid.IntRange(0, 3).Draw(rt, "changed") == 0 {
				p.Drones[i] = x.drone(i)
			}
		}
		solve(solver.Options{Iterations: 16, Warm: &warm})
	})
	if served == 0 {
		t.Error("no drone flies in any of the problems")
	}
}

// F-OPT-04: a drone that uses its charge within a hair's breadth once it is full is left out:
// two ways to compute so short a distance differ by more charge than the checker accepts.
func TestSolve_LeavesOutDronesThatUseTooMuchWhenFull(t *testing.T) {
	p := basic()
	p.Drones[0].BatteryPercent, p.Drones[0].CapacityKg, p.Drones[0].ConsumptionPercentPerKmKg = 100, 4e5, 1000
	p.Orders[0].WeightKg = 3.9e5
	p.Warehouses[0].At, p.Drones[0].At = p.Depots[0].At, p.Depots[0].At
	for i := range 100 {
		p.Orders[0].Delivery = p.Depots[0].At
		for range 1000 + i {
			p.Orders[0].Delivery.Lat = math.Nextafter(p.Orders[0].Delivery.Lat, 0)
		}
		plan := solveChecked(t, p, solver.Options{Strategy: solver.Greedy})
		if len(plan.Ignored) != 1 || !strings.Contains(plan.Ignored[0].Detail, "capacityKg 400000") {
			t.Fatalf("left out %+v", plan.Ignored)
		}
	}
}
