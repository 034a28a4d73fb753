package solver

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/solver/model"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// crowd is a problem in one town: half of the drones stand at its only depot, the
// others and the orders are spread over the town.
func crowd(seed uint64, drones, orders int) *run {
	rng := rand.New(rand.NewPCG(seed, 3))
	anywhere := func() Location { return Location{Lat: 5.5 + rng.Float64()/10, Lon: -0.2 + rng.Float64()/10} }
	p := Problem{Now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Depots: []Depot{{ID: "depot", At: Location{Lat: 5.55, Lon: -0.15}}}}
	for i := range 5 {
		p.Warehouses = append(p.Warehouses, Warehouse{ID: fmt.Sprint("warehouse-", i), At: anywhere(), ProductTypes: []string{"BLOOD"}})
	}
	for i := range drones {
		d := Drone{ID: fmt.Sprint("drone-", i), At: p.Depots[0].At, HomeDepotID: "depot", BatteryPercent: 60 + 40*rng.Float64()}
		if i%2 == 0 {
			d.At = anywhere()
		}
		p.Drones = append(p.Drones, d)
	}
	for i := range orders {
		p.Orders = append(p.Orders, Order{ID: fmt.Sprint("order-", i), Delivery: anywhere(), ProductType: "BLOOD", Priority: Priority(rng.IntN(3))})
	}
	o := Options{Iterations: 2000}.withDefaults()
	return &run{prepared: prepare(p), opts: o, budget: newBudget(context.Background(), o)}
}

// overdue makes every n-th order of a crowd too late for every drone, by less than
// an aging step.
func (r *run) overdue(n int) *run {
	p := r.problem
	for i := 0; i < len(p.Orders); i += n {
		p.Orders[i].Deadline = p.Now.Add(-time.Duration(1+i%500) * time.Second)
	}
	r.prepared = prepare(p)
	return r
}

// F-OPT-04: every rank but the lowest has a stage of its own, late ranks too.
func TestStages_AreNested(t *testing.T) {
	rank := func(p Priority) int { return model.PriorityCount - 1 - int(p) }
	late := func(p Priority) int { return model.PriorityCount + rank(p) }
	for _, test := range []struct {
		name  string
		r     *run
		ranks []int
	}{
		{"in time", crowd(1, 20, 90), []int{rank(Critical), rank(High)}},
		{"a fifth overdue", crowd(1, 20, 90).overdue(5), []int{rank(Critical), rank(High), rank(Standard), late(Critical)}},
		{"half overdue", crowd(1, 20, 90).overdue(2), []int{rank(Critical), rank(High), rank(Standard), late(Critical), late(High)}},
		{"all overdue", crowd(1, 20, 90).overdue(1), []int{late(Critical), late(High)}},
	} {
		t.Run(test.name, func(t *testing.T) { testStages(t, test.r, test.ranks) })
	}
}

func testStages(t *testing.T, r *run, ranks []int) {
	stages := r.stages()
	if len(stages) != len(ranks)+1 {
		t.Fatalf("%d stages, want one for each of the ranks %v and one for all", len(stages), ranks)
	}
	at, before := 0.0, 0
	for i, s := range stages {
		if s.from != at || s.to <= s.from || len(s.orders) <= before {
			t.Fatalf("stage %d: %d orders from %v to %v after %d orders until %v", i, len(s.orders), s.from, s.to, before, at)
		}
		for _, o := range s.orders {
			if i < len(ranks) && r.orders[o].rank > ranks[i] {
				t.Fatalf("stage %d plans an order of rank %d", i, r.orders[o].rank)
			}
		}
		at, before = s.to, len(s.orders)
	}
	if at != 1 || before != len(r.orders) {
		t.Fatalf("the stages end at %v with %d of %d orders", at, before, len(r.orders))
	}
	r.scalarGoal = true
	if n := len(r.stages()); n != 1 {
		t.Fatalf("the reference's goal has no priorities, but %d stages", n)
	}
}

// F-OPT-04: a stage is searched while it leaves anything out, even if all of that
// is late.
func TestImproveClusters_SearchesStagesOfLateOrders(t *testing.T) {
	r := crowd(1, 8, 800).overdue(1)
	r.setIterations(100)
	s := r.stages()[1]
	if !r.cuttable(len(s.orders)) {
		t.Fatalf("a stage of %d orders is not cut", len(s.orders))
	}
	r.improveClusters(s, r.insertMissing(nil, s.orders, r.budget.over, true), r.budget.spent())
	if r.steps == 0 {
		t.Error("a stage of late orders is not searched")
	}
}

// setIterations changes the number of steps of a run.
func (r *run) setIterations(n int) {
	r.opts.Iterations, r.budget.iterations = n, n
}

// to moves a crowd around the earth, to a longitude.
func (r *run) to(lon float64) *run {
	p := r.problem
	move := func(at *Location) { at.Lon = math.Remainder(at.Lon+0.15+lon, 360) }
	for i := range p.Depots {
		move(&p.Depots[i].At)
	}
	for i := range p.Warehouses {
		move(&p.Warehouses[i].At)
	}
	for i := range p.Drones {
		move(&p.Drones[i].At)
	}
	for i := range p.Orders {
		move(&p.Orders[i].Delivery)
	}
	r.prepared = prepare(p)
	return r
}

// Drones at one depot go to all clusters around it, and a cut loses nothing.
func TestCut_DividesIdleDrones(t *testing.T) {
	for _, meridian := range []float64{0, 179.97, 180, -179.97} {
		t.Run(fmt.Sprint(meridian), func(t *testing.T) { testDivision(t, crowd(2, 120, 1500).to(meridian)) })
	}
}

func testDivision(t *testing.T, r *run) {
	all := indices(len(r.orders))
	first := r.cut(nil, all, 0)
	if len(first) < 3 {
		t.Fatalf("%d clusters of %d orders", len(first), len(all))
	}
	for i, c := range first {
		if fair := len(r.drones) * len(c.orders) / len(all); len(c.drones) < fair/2 || len(c.drones) > 2*fair {
			t.Errorf("cluster %d: %d drones for %d of %d orders", i, len(c.drones), len(c.orders), len(all))
		}
	}
	routes := r.insertMissing(nil, all, r.budget.over, true)
	for _, clusters := range [][]cluster{first, r.cut(routes, all, 0.6)} {
		var orders, drones []int32
		for _, c := range clusters {
			if width := c.high.Lon - c.low.Lon; width > 0.11 {
				t.Errorf("a cluster of a town of 0.1 degrees is %v degrees wide", width)
			}
			orders, drones = append(orders, c.orders...), append(drones, c.drones...)
		}
		slices.Sort(orders)
		slices.Sort(drones)
		if !slices.Equal(orders, all) || !slices.Equal(drones, indices(len(r.drones))) {
			t.Fatalf("%d of %d orders and %d of %d drones in clusters", len(orders), len(all), len(drones), len(r.drones))
		}
	}
}

// A cluster is in one part of the map: by the deliveries, or by the pickup points
// where orders have their own. Orders of one pickup point are cut by their
// deliveries.
func TestCut_KeepsPlacesTogetherWhereDronesMustCome(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 8))
	for _, test := range []struct {
		name   string
		pickup func() *Location
		at     func(o Order) Location
	}{
		{"warehouses", func() *Location { return nil }, func(o Order) Location { return o.Delivery }},
		{"pickup points", func() *Location {
			return &Location{Lat: 5.5 + random.Float64()/10, Lon: -0.2 + random.Float64()/10}
		}, func(o Order) Location { return *o.Pickup }},
		{"one pickup point", func() *Location { return &Location{Lat: 5.55, Lon: -0.15} }, func(o Order) Location { return o.Delivery }},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := crowd(2, 120, 1500).problem
			for i := range p.Orders {
				p.Orders[i].Pickup = test.pickup()
			}
			r := &run{prepared: prepare(p)}
			clusters := r.cut(nil, indices(len(r.orders)), 0)
			for i, c := range clusters {
				low, high := Location{Lat: 90, Lon: 180}, Location{Lat: -90, Lon: -180}
				for _, o := range c.orders {
					at := test.at(p.Orders[r.orders[o].index])
					low = Location{Lat: min(low.Lat, at.Lat), Lon: min(low.Lon, at.Lon)}
					high = Location{Lat: max(high.Lat, at.Lat), Lon: max(high.Lon, at.Lon)}
				}
				if area := 100 * (high.Lat - low.Lat) * (high.Lon - low.Lon); area > 0.5 || len(clusters) < 4 {
					t.Errorf("cluster %d of %d is spread over %.2f of the town", i, len(clusters), area)
				}
			}
		})
	}
}

// A problem may have fewer drones than clusters: no cluster is searched without a
// drone.
func TestSearch_LeavesNoClusterWithoutADrone(t *testing.T) {
	for drones := 1; drones <= 4; drones++ {
		r := crowd(4, drones, 1500)
		for _, c := range r.cut(nil, indices(len(r.orders)), 0) {
			if len(c.drones) == 0 {
				t.Errorf("of %d drones, a cluster has none", drones)
			}
		}
		r.setIterations(200)
		if n := len(r.search()); n == 0 || n > drones {
			t.Errorf("%d routes for %d drones", n, drones)
		}
	}
}

// Of two clusters with as many orders the one that leaves out more that could be in
// time has more of the search.
func TestCut_GivesMoreEffortWhereOrdersAreLeftOut(t *testing.T) {
	r := crowd(4, 60, 900)
	all := indices(len(r.orders))
	clusters := r.cut(r.insertMissing(nil, all, r.budget.over, true), all, 0)
	total := 0.0
	for i, c := range clusters {
		total += c.effort
		if i > 0 && c.effort > clusters[i-1].effort {
			t.Errorf("cluster %d has more effort than the one before", i)
		}
	}
	if len(clusters) < 3 || math.Abs(total-1) > 1e-9 {
		t.Fatalf("%d clusters have %v of the search together", len(clusters), total)
	}

	served := clusters[len(clusters)-1]
	waiting := served
	waiting.routes = nil
	pair := []cluster{served, waiting}
	r.shareEffort(pair, missedEffort)
	if pair[0].missed != len(waiting.orders) || pair[0].effort <= pair[1].effort {
		t.Errorf("of %d orders %d and %d are missed: efforts %v and %v", len(waiting.orders), pair[0].missed, pair[1].missed, pair[0].effort, pair[1].effort)
	}
}

// F-OPT-04: less urgent orders do not displace the most urgent ones: in as many
// steps no more CRITICAL orders are missed with all others in the problem than
// without them, whether all orders are late or none.
func TestSearch_MissesNoCriticalOrderForOthers(t *testing.T) {
	longtest.Only(t, "searches for a minute")
	const steps = 6000
	for _, late := range []bool{false, true} {
		for seed := range uint64(3) {
			r, rank := crowd(seed, 5, 140), 0
			if late {
				r, rank = r.overdue(1), 3
			}
			alone := r.problem
			alone.Orders = slices.DeleteFunc(slices.Clone(alone.Orders), func(o Order) bool { return o.Priority != Critical })
			missed := func(p Problem, steps int) int {
				plan, err := Solve(context.Background(), p, Options{Iterations: steps, Seed: seed})
				if err != nil {
					t.Fatal(err)
				}
				return plan.Objective.MissedByRank[rank]
			}
			in, out := missed(r.problem, steps), missed(alone, int(steps*r.stages()[0].to))
			if in > out {
				t.Errorf("seed %d, late %v: %d CRITICAL orders missed, %d where there are no others", seed, late, in, out)
			}
		}
	}
}

// F-OPT-04: the sources and drones that feasibility skips change no answer.
func TestFeasibility_SkipsOnlySourcesThatTellNothingNew(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 5))
		p := crowd(seed, 1+rng.IntN(30), 60).problem
		p.Params.PickupService = time.Duration(rng.IntN(2)) * time.Minute
		for i := range p.Warehouses {
			p.Warehouses[i].At.Lat += rng.Float64() / 4
		}
		p.Depots = append(p.Depots, Depot{ID: "other", At: Location{Lat: 5.65, Lon: -0.1}})
		for i := range p.Drones {
			p.Drones[i].HomeDepotID = p.Depots[rng.IntN(2)].ID
			p.Drones[i].SpeedKmh, p.Drones[i].CapacityKg = 30+60*rng.Float64(), rng.Float64()*3
			p.Drones[i].BatteryPercent, p.Drones[i].ConsumptionPercentPerKm = 21+79*rng.Float64()*rng.Float64(), 2+8*rng.Float64()
			if seed%2 == 0 { // a few kinds, at their depots
				d := &p.Drones[i]
				d.SpeedKmh, d.CapacityKg, d.BatteryPercent = float64(40+30*rng.IntN(2)), float64(1+rng.IntN(3)), float64(50+25*rng.IntN(3))
				d.ConsumptionPercentPerKm, d.MaxFlight, d.At = 2, time.Duration(rng.IntN(2)*25)*time.Minute, p.Depots[rng.IntN(2)].At
			}
		}
		for i := range p.Orders {
			p.Orders[i].CreatedAt = p.Now.Add(-time.Duration(rng.IntN(60)) * time.Minute)
			p.Orders[i].WeightKg = rng.Float64() * 3
		}
		quick, thorough := prepare(p), prepare(p)
		thorough.longestReach, thorough.farthestNow, thorough.fastest = math.Inf(1), math.Inf(1), 0
		for w := range thorough.warehouses {
			thorough.warehouses[w].near = nil
			for d := range thorough.drones {
				at := thorough.drones[d].at
				thorough.warehouses[w].near = append(thorough.warehouses[w].near, approach{int32(d), at.metres(thorough.warehouses[w].at)})
			}
			thorough.warehouses[w].best = thorough.warehouses[w].near
		}
		for _, o := range p.Orders {
			ro := readyOrder{delivery: toVec(o.Delivery), weight: o.WeightKg}
			due := o.Due(p.Now).Sub(p.Now).Seconds()
			answer := func(pr *prepared) string {
				ro.sources = slices.Clone(pr.sourcesOf(o, ro.delivery))
				fit, by, reason := pr.feasibility(&ro, due)
				if reason != "" {
					return string(reason)
				}
				return fmt.Sprintf("%d from warehouse %d", fit, ro.sources[by].warehouse)
			}
			if got, want := answer(quick), answer(thorough); got != want {
				t.Fatalf("seed %d, %s: %s, want %s", seed, o.ID, got, want)
			}
		}
	}
}

// The distances between drones are not kept: they alone would be 30 MB here for
// each of a solve's instances.
func TestSubproblem_KeepsNoDistancesBetweenDrones(t *testing.T) {
	r := crowd(1, 4000, 20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.subproblem(indices(len(r.orders)), indices(len(r.drones)), false)
	runtime.ReadMemStats(&after)
	if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 8 {
		t.Errorf("%d MB for %d drones and %d orders", spent, len(r.drones), len(r.orders))
	}
}

// A search keeps room only for routes in use: a route of 64 orders, and its copy
// in the undo log, would be 66 MB for these drones.
func TestInsert_KeepsNoRoomForIdleDrones(t *testing.T) {
	r := crowd(1, 4000, 200)
	sp := r.subproblem(indices(len(r.orders)), indices(len(r.drones)), false)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r.insert(sp, nil, r.budget.over)
	runtime.ReadMemStats(&after)
	if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 32 {
		t.Errorf("%d MB for %d drones and %d orders", spent, len(r.drones), len(r.orders))
	}
}

// A previous plan in which one drone serves everything does not make one cluster of
// everything.
func TestTranslate_BoundsARoute(t *testing.T) {
	r := crowd(1, 20, 1500)
	all, orders := Route{DroneID: r.problem.Drones[0].ID}, map[string]int32{}
	for i, o := range r.problem.Orders {
		orders[o.ID] = int32(i)
		all.Stops = append(all.Stops, Stop{Kind: WarehousePickup, OrderID: o.ID, WarehouseID: "warehouse-0"}, Stop{Kind: Delivery, OrderID: o.ID})
	}
	route := r.translate(all, 0, orders, map[int32]bool{})
	if n := len(route.stops); n != 2*r.params.MaxOrdersPerRoute {
		t.Errorf("a route of %d stops, where at most %d orders are allowed", n, r.params.MaxOrdersPerRoute)
	}
	for i, c := range r.cut([]plannedRoute{route}, indices(len(r.orders)), 0) {
		if len(c.orders) > clusterSize {
			t.Errorf("cluster %d has %d orders", i, len(c.orders))
		}
	}
}

// A warehouse that names a product twice is one source, and displaces no other.
func TestSourcesOf_ListsAWarehouseOnce(t *testing.T) {
	p := crowd(1, 2, 1).problem
	for i := range p.Warehouses {
		p.Warehouses[i].ProductTypes = slices.Repeat([]string{"BLOOD"}, maxSources)
	}
	pr := prepare(p)
	warehouses := map[int]bool{}
	for _, s := range pr.orders[0].sources {
		warehouses[s.warehouse] = true
	}
	if n := len(pr.orders[0].sources); n != len(p.Warehouses) || len(warehouses) != n {
		t.Errorf("%d sources are %d of %d warehouses", n, len(warehouses), len(p.Warehouses))
	}
}

// BenchmarkPrepare_ManyWarehouses measures the part of a solve that no limit bounds,
// when nearly every drone could fetch from every warehouse and all orders are late.
func BenchmarkPrepare_ManyWarehouses(b *testing.B) {
	p := crowd(1, 1000, 800).problem
	for i := range 200 {
		w := p.Warehouses[i%5]
		w.ID = fmt.Sprint("more-", i)
		p.Warehouses = append(p.Warehouses, w)
	}
	for i := range p.Orders {
		p.Orders[i].CreatedAt = p.Now.Add(-2 * time.Hour)
	}
	measure := func(b *testing.B) {
		for b.Loop() {
			prepare(p)
		}
	}
	b.Run("charged", measure)
	for i := range p.Drones { // as at a depot whose drones have just landed
		p.Drones[i].BatteryPercent, p.Drones[i].At = 35+float64(i%10), p.Depots[0].At
	}
	b.Run("low", measure)
}
