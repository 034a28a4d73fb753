package clairvoyant

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

func day(t *testing.T, s plannersim.Scenario) (*fleetsim.World, []domain.Order) {
	t.Helper()
	w, orders, err := s.Day()
	if err != nil {
		t.Fatal(err)
	}
	return w, orders
}

// replayed follows every drone from its departures alone and lists the orders that it
// delivers in time.
func replayed(t *testing.T, p *problem, sol *solution) map[int]bool {
	t.Helper()
	const rounding = 1e-6
	served := map[int]bool{}
	for i, plan := range sol.plans {
		d := &p.drones[i]
		now, battery, at := 0.0, d.battery, d.start
		fly := func(to int) {
			now += p.flight[at][to]
			battery -= p.flight[at][to] * d.percentPerSec
			at = to
		}
		for k, route := range plan.trips {
			leaves := plan.flights[k].leaves
			if leaves < now-rounding {
				t.Errorf("drone %d leaves at %v, before it lands at %v", i, leaves, now)
			}
			if at == d.home {
				battery = min(100, battery+chargePerSecond*(leaves-now))
			}
			now = leaves
			kg, aboard := 0.0, map[int]bool{}
			for _, s := range route {
				o := p.orders[s.order]
				fly(s.point)
				if s.pickup {
					now = max(now, o.created)
					kg += o.kg
					aboard[s.order] = true
				} else {
					if !aboard[s.order] || now > o.due+rounding || served[s.order] || s.point != o.delivery {
						t.Errorf("drone %d delivers order %d at %v, due %v, aboard %v", i, s.order, now, o.due, aboard[s.order])
					}
					kg -= o.kg
					served[s.order] = true
				}
				if kg > d.capacityKg+rounding {
					t.Errorf("drone %d carries %v kg", i, kg)
				}
				now += fleetsim.Dwell.Seconds()
			}
			fly(d.home)
			if battery < reservePercent-rounding || now-leaves > d.maxFlight+rounding {
				t.Errorf("drone %d lands with %v %% after %v s", i, battery, now-leaves)
			}
		}
	}
	return served
}

func TestSearch_EverySolutionCanBeFlown(t *testing.T) {
	steps := longtest.Size(t, "steps", 20, 300)
	for name, scenario := range map[string]plannersim.Scenario{
		"paris": {Duration: 40 * time.Minute, Drones: 12, PerMinute: 5, Seed: 3},
		"city":  {Duration: 40 * time.Minute, Drones: 12, PerMinute: 5, Seed: 3, World: plannersim.City},
	} {
		t.Run(name, func(t *testing.T) {
			w, orders := day(t, scenario)
			fresh := func() *search {
				return &search{problem: newProblem(w, orders, plannersim.Begin), random: rand.New(rand.NewPCG(1, 1))}
			}
			first, s := fresh().start(), fresh()
			best, err := s.run(t.Context(), steps)
			if err != nil {
				t.Fatal(err)
			}
			served := replayed(t, s.problem, best)
			value := 0.0
			for i, by := range best.by {
				if (by != nobody) != served[i] {
					t.Errorf("order %d: drone %d, served %v", i, by, served[i])
				}
				if by != nobody {
					value += worth[s.orders[i].priority]
				}
			}
			for _, plan := range best.plans {
				for _, f := range plan.flights {
					value -= secondCost * f.flown
				}
			}
			if math.Abs(best.value-value) > 1e-6 || best.value < first.value {
				t.Errorf("value %v, recomputed %v, at first %v", best.value, value, first.value)
			}
		})
	}
}

// The drone waits at the warehouse before the order exists, and not one second of the
// deadline is lost.
func TestSearch_KnowsTheFuture(t *testing.T) {
	at := func(km float64) domain.Position { return domain.Position{Lat: km / 111.195} }
	w := &fleetsim.World{
		Depots:     []domain.Depot{{ID: "D", Position: at(0)}},
		Warehouses: []domain.Warehouse{{ID: "W", Position: at(5), ProductTypes: []string{"BLOOD"}}},
		Drones:     []domain.Drone{{ID: "A", HomeDepotID: "D", Position: at(0), Battery: 100, ConsumptionPerKm: 2.5, MaxFlightTimeMinutes: 38, PayloadCapacityKg: 5}},
	}
	order := func(minute int, lasts time.Duration) domain.Order {
		created := plannersim.Begin.Add(time.Duration(minute) * time.Minute)
		return domain.Order{
			CreatedAt: created, Deadline: created.Add(lasts),
			OrderContent: domain.OrderContent{Priority: domain.PriorityCritical, ProductType: "BLOOD", WeightKg: 1, Delivery: at(10)},
		}
	}
	for minutes, want := range map[time.Duration]int{7: 1, 5: 0} { // 5 km take 6 minutes
		r, err := Search(t.Context(), w, []domain.Order{order(30, minutes*time.Minute)}, plannersim.Begin, 1, 10)
		if err != nil || r.OnTime[domain.PriorityCritical] != want {
			t.Errorf("due in %d minutes: %+v, %v", minutes, r, err)
		}
	}
	// The second would have to leave with 26 km of charge left in it, minutes later.
	r, err := Search(t.Context(), w, []domain.Order{order(30, 7*time.Minute), order(45, 7*time.Minute)}, plannersim.Begin, 1, 10)
	if err != nil || r.OnTime[domain.PriorityCritical] != 1 {
		t.Errorf("two orders a quarter of an hour apart, one drone away for 24 minutes: %+v, %v", r, err)
	}
}

func TestSearch_EndsWithItsContext(t *testing.T) {
	w, orders := day(t, plannersim.Scenario{Duration: 10 * time.Minute, Drones: 5})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Search(ctx, w, orders, plannersim.Begin, 1, 1000); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// A day of Paris at capacity, in steps of a second or so.
func BenchmarkSearch(b *testing.B) {
	w, orders, err := plannersim.Scenario{Duration: 2 * time.Hour, PerMinute: 6, Seed: 901}.Day()
	if err != nil {
		b.Fatal(err)
	}
	const steps = 500
	var r Result
	for b.Loop() {
		if r, err = Search(b.Context(), w, orders, plannersim.Begin, 1, steps); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/steps, "us/step")
	b.ReportMetric(float64(r.OnTime[domain.PriorityCritical]), "CRITICAL")
	b.ReportMetric(float64(r.OnTime[domain.PriorityHigh]), "HIGH")
	b.ReportMetric(float64(r.OnTime[domain.PriorityStandard]), "STANDARD")
}
