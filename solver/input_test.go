package solver_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/check"
	"github.com/dronefleet/dronefleet/solver/model"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// basic is one drone, one warehouse, one deliverable order.
func basic() solver.Problem {
	return solver.Problem{
		Now:        noon,
		Depots:     []solver.Depot{{ID: "depot", At: solver.Location{Lat: 5.60, Lon: -0.20}}},
		Warehouses: []solver.Warehouse{{ID: "wh", At: solver.Location{Lat: 5.62, Lon: -0.20}, ProductTypes: []string{"BLOOD"}}},
		Drones:     []solver.Drone{{ID: "drone", At: solver.Location{Lat: 5.60, Lon: -0.20}, HomeDepotID: "depot", BatteryPercent: 90}},
		Orders:     []solver.Order{{ID: "order", Delivery: solver.Location{Lat: 5.64, Lon: -0.20}, ProductType: "BLOOD", Priority: solver.High}},
	}
}

func TestSolve_PlansOneOrder(t *testing.T) {
	plan := solveChecked(t, basic(), solver.Options{Iterations: 100})
	if len(plan.Routes) != 1 || len(plan.Routes[0].Stops) != 4 || len(plan.Unserved) != 0 {
		t.Fatalf("plan %+v", plan)
	}
	kinds := []solver.StopKind{solver.DepotStart, solver.WarehousePickup, solver.Delivery, solver.DepotReturn}
	for i, s := range plan.Routes[0].Stops {
		if s.Kind != kinds[i] {
			t.Errorf("stop %d is a %s", i, s.Kind)
		}
	}
}

// F-OPT-04
func TestSolve_GivesTheReasonForWhatItLeavesOut(t *testing.T) {
	tests := map[string]struct {
		spoil func(*solver.Problem)
		want  solver.Reason
	}{
		"no warehouse stocks the product":     {func(p *solver.Problem) { p.Orders[0].ProductType = "PLASMA" }, solver.NoCompatibleWarehouse},
		"no cold warehouse":                   {func(p *solver.Problem) { p.Orders[0].ColdChain = true }, solver.NoCompatibleWarehouse},
		"no warehouses at all":                {func(p *solver.Problem) { p.Warehouses = nil }, solver.NoCompatibleWarehouse},
		"another town":                        {func(p *solver.Problem) { p.Orders[0].Delivery.Lat = 7 }, solver.OutOfRange},
		"battery low, would reach if charged": {func(p *solver.Problem) { p.Drones[0].BatteryPercent = 30 }, solver.NoDroneFree},
		"battery at the reserve":              {func(p *solver.Problem) { p.Drones[0].BatteryPercent = 20 }, solver.NoDroneFree},
		"no drones":                           {func(p *solver.Problem) { p.Drones = nil }, solver.NoDroneFree},
		"no depots":                           {func(p *solver.Problem) { p.Depots = nil }, solver.NoDroneFree},
		"too heavy":                           {func(p *solver.Problem) { p.Drones[0].CapacityKg, p.Orders[0].WeightKg = 2, 3 }, solver.OverCapacity},
		"NaN latitude":                        {func(p *solver.Problem) { p.Orders[0].Delivery.Lat = math.NaN() }, solver.InvalidInput},
		"infinite pickup":                     {func(p *solver.Problem) { p.Orders[0].Pickup = &solver.Location{Lon: math.Inf(1)} }, solver.InvalidInput},
		"weight beyond any drone's":           {func(p *solver.Problem) { p.Orders[0].WeightKg = 1e300 }, solver.InvalidInput},
		"negative weight":                     {func(p *solver.Problem) { p.Orders[0].WeightKg = -1 }, solver.InvalidInput},
		"unknown priority":                    {func(p *solver.Problem) { p.Orders[0].Priority = 9 }, solver.InvalidInput},
		"no product":                          {func(p *solver.Problem) { p.Orders[0].ProductType = "" }, solver.InvalidInput},
		"no id":                               {func(p *solver.Problem) { p.Orders[0].ID = "" }, solver.InvalidInput},
		"NaN battery":                         {func(p *solver.Problem) { p.Drones[0].BatteryPercent = math.NaN() }, solver.NoDroneFree},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := basic()
			test.spoil(&p)
			plan := solveChecked(t, p, solver.Options{Iterations: 100})
			if len(plan.Routes) != 0 || len(plan.Unserved) != 1 || plan.Unserved[0].Reason != test.want {
				t.Fatalf("routes %d, unserved %+v, want reason %s", len(plan.Routes), plan.Unserved, test.want)
			}
			if test.want == solver.InvalidInput && plan.Unserved[0].Detail == "" {
				t.Error("no field named")
			}
		})
	}
}

func TestSolve_DuplicatedRecordsCountOnce(t *testing.T) {
	p := basic()
	p.Orders = append(p.Orders, p.Orders[0])
	p.Drones = append(p.Drones, p.Drones[0])
	p.Depots = append(p.Depots, p.Depots[0])
	p.Warehouses = append(p.Warehouses, p.Warehouses[0])
	plan := solveChecked(t, p, solver.Options{Iterations: 100})
	if len(plan.Routes) != 1 || len(plan.Unserved) != 1 || plan.Unserved[0].Index != 1 || len(plan.Ignored) != 3 {
		t.Fatalf("plan %+v", plan)
	}
}

// F-OPT-03, F-WIRE-03: a decision with an id that the wire refuses would become a
// dead letter, together with all other orders of its route. So records with such
// an id are left out.
func TestSolve_LeavesOutIdsThatNoDecisionCanCarry(t *testing.T) {
	for name, add := range map[string]func(p *solver.Problem, id string){
		"order": func(p *solver.Problem, id string) {
			o := p.Orders[0]
			o.ID = id
			p.Orders = append(p.Orders, o)
		},
		"drone": func(p *solver.Problem, id string) {
			d := p.Drones[0]
			d.ID, d.At = id, p.Warehouses[0].At
			p.Drones = append(p.Drones, d)
		},
		"warehouse": func(p *solver.Problem, id string) {
			w := p.Warehouses[0]
			w.ID, w.At = id, p.Drones[0].At
			p.Warehouses = append(p.Warehouses, w)
		},
	} {
		for what, id := range map[string]string{"long": strings.Repeat("x", 129), "with a zero byte": "x\x00", "of two lines": "x\ny", "reserved": "__x__"} {
			t.Run(name+" "+what, func(t *testing.T) {
				p := basic()
				add(&p, id)
				plan := solveChecked(t, p, solver.Options{Iterations: 100})
				if len(plan.Routes) != 1 || !slices.Equal(plan.Routes[0].OrderIDs(), []string{"order"}) || len(plan.Unserved)+len(plan.Ignored) != 1 {
					t.Fatalf("unserved %+v, left out %+v", plan.Unserved, plan.Ignored)
				}
				if plan.Routes[0].DroneID != "drone" || plan.Routes[0].Stops[1].WarehouseID != "wh" {
					t.Errorf("drone %s fetches from %s", plan.Routes[0].DroneID, plan.Routes[0].Stops[1].WarehouseID)
				}
			})
		}
	}
}

func TestSolve_DeliversLateRatherThanNever(t *testing.T) {
	p := basic()
	p.Orders[0].CreatedAt = noon.Add(-2 * time.Hour)
	plan := solveChecked(t, p, solver.Options{Iterations: 100})
	if len(plan.Routes) != 1 || plan.Objective.Late[solver.High] != 1 {
		t.Fatalf("the overdue order is not delivered: %+v", plan)
	}
	if rank := plan.Objective.MissedByRank; rank != (solver.Objective{}).MissedByRank {
		t.Fatalf("missed %v", rank)
	}
}

func TestSolve_WaitingRaisesTheRank(t *testing.T) {
	// The more priorities there are, the longer an order waits to pass them.
	more := time.Duration(model.PriorityCount-3) * 10 * time.Minute
	// One drone can do one of two deliveries in opposite directions.
	p := basic()
	p.Drones[0].BatteryPercent = 70
	p.Warehouses[0].At = p.Depots[0].At
	p.Orders[0].Delivery = solver.Location{Lat: 5.68, Lon: -0.20}
	p.Orders[0].Priority = solver.Critical
	p.Orders = append(p.Orders, solver.Order{ID: "waiting", Delivery: solver.Location{Lat: 5.52, Lon: -0.20},
		ProductType: "BLOOD", Priority: solver.Standard, Deadline: noon.Add(-time.Minute)})
	plan := solveChecked(t, p, solver.Options{Iterations: 200})
	if len(plan.Unserved) != 1 || plan.Unserved[0].OrderID != "waiting" {
		t.Fatalf("the urgent order should go first: %+v", plan.Unserved)
	}
	p.Orders[0].Priority = solver.High
	p.Orders[1].Deadline = noon.Add(-50*time.Minute - more)
	plan = solveChecked(t, p, solver.Options{Iterations: 200})
	if len(plan.Unserved) != 1 || plan.Unserved[0].OrderID != "order" {
		t.Fatalf("the order overdue for 50 minutes should go first: %+v", plan.Unserved)
	}
	// Two urgent orders on one route outweigh it, until it has waited longer.
	p.Orders[0].Priority = solver.Critical
	second := p.Orders[0]
	second.ID = "second"
	p.Orders = append(p.Orders, second)
	for _, wait := range []struct {
		minutes time.Duration
		served  int
	}{{55, 2}, {90, 1}} {
		p.Orders[1].Deadline = noon.Add(-wait.minutes*time.Minute - more)
		plan = solveChecked(t, p, solver.Options{Iterations: 400})
		if served := len(p.Orders) - len(plan.Unserved); served != wait.served {
			t.Fatalf("overdue for %d minutes: %d served, want %d: %+v", wait.minutes, served, wait.served, plan.Unserved)
		}
	}
}

// spoiled is a town with records broken at random; one in twenty is large enough
// to be cut into clusters.
func spoiled(seed uint64) solver.Problem {
	rng := rand.New(rand.NewPCG(seed, 99))
	drones, orders := 1+rng.IntN(12), rng.IntN(40)
	if seed%20 == 19 {
		drones, orders = drones*rng.IntN(8), 300+20*orders
	}
	p := town(seed, drones, orders)
	values := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e300, 91, 181, 5e-324}
	value := func() float64 { return values[rng.IntN(len(values))] }
	place := func() solver.Location { return solver.Location{Lat: value(), Lon: value()} }
	for range rng.IntN(12 + orders/10) {
		d, o := &solver.Drone{}, &solver.Order{}
		if len(p.Drones) > 0 {
			d = &p.Drones[rng.IntN(len(p.Drones))]
		}
		if len(p.Orders) > 0 {
			o = &p.Orders[rng.IntN(len(p.Orders))]
		}
		switch rng.IntN(16) {
		case 0:
			d.At = place()
		case 1:
			d.BatteryPercent = value()
		case 2:
			d.ConsumptionPercentPerKm = value()
		case 3:
			d.CapacityKg = value()
		case 4:
			d.SpeedKmh = value()
		case 5:
			d.MaxFlight = time.Duration(value())
		case 6:
			d.HomeDepotID = "nowhere"
		case 7:
			if len(p.Drones) > 0 {
				d.ID = p.Drones[0].ID
			}
		case 8:
			o.Delivery = place()
		case 9:
			at := place()
			o.Pickup = &at
		case 10:
			o.WeightKg = value()
		case 11:
			o.Priority = solver.Priority(rng.IntN(9) - 4)
		case 12:
			o.CreatedAt = time.Unix(int64(rng.Uint64()>>24), 0)
		case 13:
			if len(p.Orders) > 0 {
				o.ID = p.Orders[0].ID
			}
		case 14:
			p.Warehouses[rng.IntN(len(p.Warehouses))].At = place()
		case 15:
			p.Depots[rng.IntN(len(p.Depots))].At = place()
		}
	}
	switch rng.IntN(12) {
	case 0:
		p.Warehouses = nil
	case 1:
		p.Depots = nil
	case 2:
		p.Drones = nil
	case 3:
		p.Params.ReservePercent = value()
		p.Params.PickupService = time.Duration(value())
	case 4:
		p.Params.MaxOrdersPerRoute = rng.IntN(5) - 1
	}
	return p
}

func FuzzSolve_PlansTheRestOfBadInputWithoutPanic(f *testing.F) {
	for seed := range longtest.Size(f, "seeds", uint64(40), 200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		p := spoiled(seed)
		o := solver.Options{Seed: seed, Iterations: 48}
		solveChecked(t, p, o)
		other := solveChecked(t, spoiled(seed+20), solver.Options{Strategy: solver.Greedy})
		o.Warm, o.Strategy, o.Goal = &other, solver.Strategy(seed%3), solver.Goal(seed/3%2)
		solveChecked(t, p, o)
	})
}

func TestSolve_SameSeedGivesSamePlan(t *testing.T) {
	for _, orders := range []int{15, 60, 900} {
		p := town(5, orders/6+1, orders)
		o := solver.Options{Seed: 9, Iterations: 320}
		a, b := solveChecked(t, p, o), solveChecked(t, p, o)
		a.Stats, b.Stats = solver.Plan{}.Stats, solver.Plan{}.Stats
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%d orders: two runs differ", orders)
		}
	}
}

func TestSolve_WarmStartIsNeverWorse(t *testing.T) {
	p := town(8, 10, 60)
	good := solveChecked(t, p, solver.Options{Seed: 1, Iterations: 3000})
	warm := solveChecked(t, p, solver.Options{Seed: 2, Iterations: 16, Warm: &good})
	if good.Objective.Less(warm.Objective) {
		t.Fatalf("warm start lost: %+v after %+v", warm.Objective, good.Objective)
	}
}

func TestSolve_WarmStartFromAnotherProblemIsSound(t *testing.T) {
	for seed := range uint64(40) {
		old := solveChecked(t, town(seed, 8, 40), solver.Options{Seed: seed, Iterations: 64})
		solveChecked(t, spoiled(seed+1), solver.Options{Seed: seed, Iterations: 64, Warm: &old})
		later := town(seed, 8, 40)
		later.Now = later.Now.Add(time.Duration(seed) * time.Minute)
		for i := range later.Drones {
			later.Drones[i].BatteryPercent = max(0, later.Drones[i].BatteryPercent-float64(seed))
		}
		solveChecked(t, later, solver.Options{Seed: seed, Iterations: 64, Warm: &old})
	}
}

// F-OPT-03: a previous plan may give a drone two routes, though none of ours does.
// Only one is flown: the decision for the second would be refused.
func TestSolve_WarmStartKeepsOneRouteOfADrone(t *testing.T) {
	// One drone can do one of two deliveries in opposite directions.
	p := basic()
	p.Drones[0].BatteryPercent = 70
	p.Warehouses[0].At = p.Depots[0].At
	p.Orders = append(p.Orders, p.Orders[0])
	p.Orders[1].ID = "other"
	p.Orders[0].Delivery.Lat, p.Orders[1].Delivery.Lat = 5.68, 5.52
	two := p
	two.Drones = []solver.Drone{p.Drones[0], p.Drones[0]}
	two.Drones[1].ID = "wing"
	old := solveChecked(t, two, solver.Options{Iterations: 100})
	if len(old.Routes) != 2 {
		t.Fatalf("plan %+v", old)
	}
	old.Routes[0].DroneID, old.Routes[1].DroneID = "drone", "drone"
	began := false
	late := func() time.Time { // with no time left, routes are taken as they are
		if began {
			return noon.Add(time.Hour)
		}
		began = true
		return noon
	}
	if plan := solveChecked(t, p, solver.Options{Warm: &old, Clock: late}); len(plan.Routes) != 1 || len(plan.Unserved) != 1 {
		t.Errorf("plan %+v", plan)
	}
}

// Whenever the time is over, even while the previous plan is being repaired, no
// part of that plan is flown that no longer fits.
func TestSolve_IsSoundWithoutTimeToRepairThePreviousPlan(t *testing.T) {
	p := town(3, 6, 40)
	old := solveChecked(t, p, solver.Options{Strategy: solver.Greedy})
	for i := range p.Drones {
		p.Drones[i].CapacityKg = 3 // one order, seldom two
	}
	for last := 2; last < 80; last++ { // even: the clock stays late; odd: it was wrong for a moment
		looks := 0
		clock := func() time.Time {
			if looks++; looks == 1+last/2 || last%2 == 0 && looks > 1+last/2 {
				return noon.Add(time.Hour)
			}
			return noon.Add(time.Duration(looks) * 50 * time.Microsecond)
		}
		solveChecked(t, p, solver.Options{Workers: 1, Warm: &old, Clock: clock, TimeLimit: 3 * time.Millisecond})
	}
}

// F-OPT-03: when the time is over before the search begins, the part of the
// previous plan that still fits is flown rather than the little that there was
// time to construct.
func TestSolve_KeepsThePreviousPlanWhenThereIsNoTime(t *testing.T) {
	for _, orders := range []int{10, 60, 400} {
		p := town(8, orders/5, orders)
		old := solveChecked(t, p, solver.Options{Seed: 1, Iterations: 64})
		began := false
		late := func() time.Time {
			if began {
				return noon.Add(time.Hour)
			}
			began = true
			return noon
		}
		warm := solveChecked(t, p, solver.Options{Warm: &old, Clock: late})
		if was, is := len(old.Routes), len(warm.Routes); is < was || old.Objective.Less(warm.Objective) {
			t.Errorf("%d orders: of %d routes %d are left, %+v after %+v", orders, was, is, warm.Objective, old.Objective)
		}
	}
}

func TestSolve_ReturnsACompletePlanWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, orders := range []int{10, 100, 900} {
		p := town(4, orders/5, orders)
		plan, err := solver.Solve(ctx, p, solver.Options{})
		if err == nil {
			t.Fatal("no error after cancellation")
		}
		if err := check.Plan(p, plan); err != nil {
			t.Fatal(err)
		}
	}
}

// The limit is judged by an injected clock that moves a millisecond per look.
func TestSolve_StopsAtTheLimitOfTheInjectedClock(t *testing.T) {
	p := town(6, 20, 100)
	start, looks := noon, 0
	var reports []solver.Progress
	o := solver.Options{Workers: 1, TimeLimit: 500 * time.Millisecond, Progress: func(x solver.Progress) { reports = append(reports, x) },
		Clock: func() time.Time { looks++; return start.Add(time.Duration(looks) * time.Millisecond) }}
	plan := solveChecked(t, p, o)
	if plan.Stats.Elapsed > 500*time.Millisecond || plan.Stats.Elapsed < 400*time.Millisecond {
		t.Errorf("ended at %s", plan.Stats.Elapsed)
	}
	if len(reports) < 3 {
		t.Fatalf("%d progress reports", len(reports))
	}
	for i := 1; i < len(reports); i++ {
		if reports[i-1].Objective.Less(reports[i].Objective) {
			t.Errorf("report %d got worse", i)
		}
	}
}

// F-OPT-04: no drone flies to the antipodes, however little charge it says it
// needs: that distance is not exact enough for a plan to pass the checker.
func TestSolve_CallsTheAntipodesOutOfRange(t *testing.T) {
	p := basic()
	p.Drones[0].BatteryPercent, p.Drones[0].ConsumptionPercentPerKm, p.Drones[0].SpeedKmh = 100, 0.001, 1000
	for i := range 100 {
		p.Orders[0].Delivery = solver.Location{Lat: -5.6 + float64(i)*1e-6, Lon: 179.8}
		plan := solveChecked(t, p, solver.Options{Strategy: solver.Greedy})
		if len(plan.Unserved) != 1 || plan.Unserved[0].Reason != solver.OutOfRange {
			t.Fatalf("%v: unserved %+v", p.Orders[0].Delivery, plan.Unserved)
		}
	}
}

// F-OPT-04: an order that can only be fetched at a farther warehouse is fetched
// there, however many nearer warehouses are out of reach.
func TestSolve_FetchesFromTheWarehouseWithinReach(t *testing.T) {
	for nearer := range 21 {
		p := basic() // the range is 28 km
		p.Warehouses[0].At = p.Depots[0].At
		p.Orders[0].Delivery.Lat = 5.60 + 13/111.2
		for i := range nearer { // beyond the delivery: 34 km there and back
			p.Warehouses = append(p.Warehouses, solver.Warehouse{ID: fmt.Sprint("beyond-", i),
				At: solver.Location{Lat: 5.60 + 17/111.2, Lon: -0.20}, ProductTypes: []string{"BLOOD"}})
		}
		plan := solveChecked(t, p, solver.Options{Iterations: 100})
		if len(plan.Routes) != 1 || plan.Routes[0].Stops[1].WarehouseID != "wh" {
			t.Errorf("%d warehouses beyond: %+v", nearer, plan.Unserved)
		}
	}
}

// F-OPT-03, F-DEC-02: whatever drones carry and orders weigh, no load exceeds the
// capacity by more than the State Manager accepts, in whatever order it is summed.
func TestSolve_KeepsCapacityToTheLastBit(t *testing.T) {
	for _, limit := range []struct{ capacity, sum float64 }{{3, 3 + 1e-9}, {1e17, 1e17}} {
		for seed := range uint64(40) {
			rng := rand.New(rand.NewPCG(seed, 5))
			p := basic()
			p.Drones[0].CapacityKg = limit.capacity
			left, first := limit.sum, p.Orders[0]
			p.Orders = nil
			for i := range 10 {
				o := first
				o.ID, o.WeightKg = fmt.Sprint(i), left
				if i < 9 {
					o.WeightKg = left * rng.Float64() / 3
				}
				left -= o.WeightKg
				p.Orders = append(p.Orders, o)
			}
			solveChecked(t, p, solver.Options{Seed: seed, Iterations: 50})
		}
	}
}

// F-OPT-03: a load that just fills a drone is carried at once, although its
// weights do not add up exactly in binary.
func TestSolve_FillsADroneToItsCapacity(t *testing.T) {
	p := basic()
	p.Drones[0].CapacityKg = 0.3
	for i, kg := range []float64{0.1, 0.2} {
		o := p.Orders[0]
		o.ID, o.WeightKg = fmt.Sprint(i), kg
		p.Orders = append(p.Orders, o)
	}
	p.Orders = p.Orders[1:]
	plan := solveChecked(t, p, solver.Options{Iterations: 50})
	if len(plan.Routes) != 1 || len(plan.Routes[0].Stops) != 6 || plan.Routes[0].Stops[2].Kind != solver.WarehousePickup {
		t.Errorf("two flights for a load that fits into one: %+v", plan.Routes)
	}
}
