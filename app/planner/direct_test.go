package planner

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/solver"
)

// F-OPT-03: a cycle tries each drone for each order before it searches. The distance
// from a drone to a warehouse is computed once for all orders, or no time would be
// left for the search.
func TestDirectFlights_ComputeADistanceOnce(t *testing.T) {
	p := scattered(30, 1e-6)
	f := newDirectFlights(p)
	f.earliest(&p.Orders[0], p.Drones)
	if len(f.approaches) != len(p.Drones) {
		t.Fatalf("distances from %d positions are known, of %d drones", len(f.approaches), len(p.Drones))
	}
	for _, a := range f.approaches {
		for i := range a.metres {
			a.metres[i] = 0 // computed again, it would be another
		}
	}
	o := &p.Orders[1]
	nearest := never
	for _, w := range p.Warehouses {
		nearest = min(nearest, flightTime(&p.Drones[0], metres(w.At, o.Delivery)))
	}
	if soonest, _ := f.earliest(o, p.Drones); soonest != nearest+f.params.PickupService {
		t.Errorf("an order arrives after %s, want %s by the remembered distances", soonest, nearest+f.params.PickupService)
	}
}

// F-OPT-03: if a drone cannot be first or lacks the charge even by the shortest
// conceivable flight, its warehouses are not tried one by one: there may be a
// thousand.
func TestDirectFlights_TryWarehousesOnlyWhereItMatters(t *testing.T) {
	p := scattered(3, 0.05) // 0, 6 and 11 km from the delivery points
	o := &p.Orders[120]
	p.Drones = append(p.Drones, p.Drones[0])
	p.Drones[3].At.Lat -= 1
	f := newDirectFlights(p)
	for _, d := range p.Drones {
		f.approachFrom(d.At)
	}
	want, _ := f.earliest(o, p.Drones)
	for _, d := range p.Drones[1:] {
		for i := range f.approaches[d.At].metres {
			f.approaches[d.At].metres[i] = -1e6 // if used, the flight would be too short
		}
	}
	if soonest, drone := f.earliest(o, p.Drones); drone != "0" || soonest != want {
		t.Errorf("drone %s is first, after %s, want drone 0 after %s", drone, soonest, want)
	}
	if took, _ := f.try(&p.Drones[3], f.request(o)); took != never {
		t.Errorf("a drone 111 km away arrives after %s", took)
	}
}

// F-OPT-03: skipping warehouses changes no answer.
func TestDirectFlights_AgreeWithExhaustiveSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// On a grid, so that many flights are as short as their lower bound.
		location := rapid.Custom(func(t *rapid.T) solver.Location {
			return solver.Location{Lat: 48.7 + 0.05*float64(rapid.IntRange(0, 6).Draw(t, "lat")), Lon: 2.2 + 0.15*float64(rapid.IntRange(0, 2).Draw(t, "lon"))}
		})
		p := &solver.Problem{Depots: []solver.Depot{{ID: "A", At: location.Draw(t, "depot")}, {ID: "B", At: location.Draw(t, "depot")}}}
		for i := range rapid.IntRange(0, 6).Draw(t, "warehouses") {
			p.Warehouses = append(p.Warehouses, solver.Warehouse{ID: fmt.Sprint(i), At: location.Draw(t, "warehouse"),
				ColdStorage: rapid.Bool().Draw(t, "cold"), ProductTypes: []string{rapid.SampledFrom([]string{"BLOOD", "VACCINE"}).Draw(t, "product")}})
		}
		for i := range rapid.IntRange(1, 8).Draw(t, "drones") {
			p.Drones = append(p.Drones, solver.Drone{ID: fmt.Sprint(i), HomeDepotID: p.Depots[rapid.IntRange(0, 1).Draw(t, "home")].ID, At: location.Draw(t, "drone"),
				BatteryPercent: rapid.Float64Range(20, 100).Draw(t, "battery"), SpeedKmh: rapid.SampledFrom([]float64{0, 30, 90}).Draw(t, "speed"),
				MaxFlight: rapid.SampledFrom([]time.Duration{0, 20 * time.Minute}).Draw(t, "flight")})
		}
		f := newDirectFlights(p)
		for range 3 { // what is kept of one must not change the answer to the next
			o := &solver.Order{ProductType: "BLOOD", ColdChain: rapid.Bool().Draw(t, "chilled"), Delivery: location.Draw(t, "delivery")}
			if rapid.IntRange(0, 3).Draw(t, "own") == 0 {
				at := location.Draw(t, "pickup")
				o.Pickup = &at
			}
			want, first := never, ""
			for i := range p.Drones {
				if took := exhaustive(p, &p.Drones[i], o); took < want {
					want, first = took, p.Drones[i].ID
				}
			}
			if took, drone := f.earliest(o, p.Drones); took != want || drone != first {
				t.Fatalf("drone %q is first after %s, want %q after %s", drone, took, first, want)
			}
		}
	})
}

// exhaustive is how long a drone takes over the best of all sources, each computed
// anew.
func exhaustive(p *solver.Problem, d *solver.Drone, o *solver.Order) time.Duration {
	params := p.Params.WithDefaults()
	var sources []solver.Location
	if o.Pickup != nil {
		sources = append(sources, *o.Pickup)
	} else {
		for _, w := range p.Warehouses {
			if w.Supplies(*o) {
				sources = append(sources, w.At)
			}
		}
	}
	home := p.Depots[0].At
	if d.HomeDepotID == p.Depots[1].ID {
		home = p.Depots[1].At
	}
	best := never
	for _, s := range sources {
		out, back := metres(d.At, s)+metres(s, o.Delivery), metres(o.Delivery, home)
		took := flightTime(d, out) + params.PickupService
		charged := params.ReservePercent+(out+back)/1000*d.Consumption() <= d.BatteryPercent
		if charged && (d.MaxFlight == 0 || took+params.DeliveryService+flightTime(d, back) <= d.MaxFlight) {
			best = min(best, took)
		}
	}
	return best
}

// BenchmarkEarliest compares drones at one position with drones a decimetre apart.
func BenchmarkEarliest(b *testing.B) {
	for name, apart := range map[string]float64{"one-place": 0, "apart": 1e-6} {
		b.Run(name, func(b *testing.B) {
			p := scattered(300, apart)
			for b.Loop() {
				f := newDirectFlights(p)
				for i := range p.Orders {
					f.earliest(&p.Orders[i], p.Drones)
				}
			}
		})
	}
}

// scattered is a problem with drones at the given distance in degrees.
func scattered(drones int, apart float64) *solver.Problem {
	p := &solver.Problem{Depots: []solver.Depot{{ID: "D", At: solver.Location{Lat: 48.85, Lon: 2.35}}}}
	for i := range 40 {
		at := solver.Location{Lat: 48.80 + float64(i)/400, Lon: 2.35}
		p.Warehouses = append(p.Warehouses, solver.Warehouse{ID: fmt.Sprint(i), At: at, ProductTypes: []string{"BLOOD"}})
	}
	for i := range drones {
		at := solver.Location{Lat: 48.85 + float64(i)*apart, Lon: 2.35}
		p.Drones = append(p.Drones, solver.Drone{ID: fmt.Sprint(i), HomeDepotID: "D", At: at, BatteryPercent: 90})
	}
	for i := range 200 {
		at := solver.Location{Lat: 48.85, Lon: 2.30 + float64(i)/2000}
		p.Orders = append(p.Orders, solver.Order{ID: fmt.Sprint(i), ProductType: "BLOOD", Delivery: at})
	}
	return p
}
