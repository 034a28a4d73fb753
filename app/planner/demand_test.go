package planner

import (
	"fmt"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/solver"
)

// watch returns what a planner remembers after minutes of steady demand, with a
// number of drones.
func watch(minutes int, urgentPerHour, launchesPerHour float64, drones int) (*demand, time.Time) {
	begin := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	m := &demand{}
	p := solver.Problem{
		Depots:     []solver.Depot{{ID: "D", At: solver.Location{Lat: 48.85, Lon: 2.35}}},
		Warehouses: []solver.Warehouse{{ID: "W", At: solver.Location{Lat: 48.86, Lon: 2.35}, ProductTypes: []string{"BLOOD"}}},
	}
	for i := range drones {
		p.Drones = append(p.Drones, solver.Drone{ID: fmt.Sprint("D", i), At: p.Depots[0].At, HomeDepotID: "D", BatteryPercent: 90})
	}
	orders, launches := 0.0, 0.0
	for minute := range minutes {
		p.Now = begin.Add(time.Duration(minute) * time.Minute)
		p.Orders = nil
		for orders += urgentPerHour / 60; orders >= 1; orders-- {
			p.Orders = append(p.Orders, solver.Order{
				ID: fmt.Sprint("O", minute, orders), Priority: solver.Critical, ProductType: "BLOOD", CreatedAt: p.Now,
				Delivery: solver.Location{Lat: 48.87, Lon: 2.35},
			})
		}
		m.observe(newDirectFlights(&p))
		for launches += launchesPerHour / 60; launches >= 1; launches-- {
			m.launches = append(m.launches, p.Now)
		}
	}
	return m, p.Now
}

func TestDemand_ReserveFollowsRatesOfOrdersAndReturns(t *testing.T) {
	for _, test := range []struct {
		name                    string
		urgent, launches        float64 // per hour
		drones, atMost, atLeast int
	}{
		{"calm", 2, 80, 40, 2, 1},
		{"usual", 24, 80, 40, 5, 3},
		{"busy", 48, 80, 40, 8, 7},
		{"more orders than returns", 120, 40, 40, 8, 8},
		{"at most a quarter of the drones", 48, 80, 12, 3, 3},
		{"none of three drones", 48, 80, 3, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, now := watch(60, test.urgent, test.launches, test.drones)
			if r := m.reserve(now); r > test.atMost || r < test.atLeast {
				t.Errorf("reserve %d of %d drones, want %d to %d", r, test.drones, test.atLeast, test.atMost)
			}
		})
	}
}

func TestDemand_RoutesAreShorterWithMoreUrgentOrders(t *testing.T) {
	calm, now := watch(60, 6, 80, 40)
	busy, _ := watch(60, 60, 80, 40)
	if c, b := calm.routeDuration(now), busy.routeDuration(now); c < 2*time.Hour || b > 20*time.Minute || b < 10*time.Minute {
		t.Errorf("routes of %s when calm, of %s when busy", c, b)
	}
}

func TestDemand_ForgetsOldObservations(t *testing.T) {
	m, now := watch(30, 60, 60, 10)
	empty := solver.Problem{Now: now.Add(DroneMemory + time.Minute)}
	m.observe(newDirectFlights(&empty))
	if len(m.urgent)+len(m.launches)+len(m.known)+len(m.drones) > 0 {
		t.Errorf("still remembers %d urgent orders, %d launches, %d orders, %d drones", len(m.urgent), len(m.launches), len(m.known), len(m.drones))
	}
	if len(m.sample) > maxSample {
		t.Errorf("keeps %d orders", len(m.sample))
	}
}

func TestDemand_CountsAWaitingOrderOnce(t *testing.T) {
	m, now := watch(1, 0, 0, 1)
	p := solver.Problem{Now: now, Depots: []solver.Depot{{ID: "D"}}, Drones: []solver.Drone{{ID: "D0", HomeDepotID: "D", BatteryPercent: 90}}}
	p.Orders = []solver.Order{{ID: "O", Priority: solver.Critical, CreatedAt: now, Pickup: &solver.Location{}, Delivery: solver.Location{Lat: 0.01}}}
	for range 100 {
		m.observe(newDirectFlights(&p))
		p.Now = p.Now.Add(10 * time.Second)
	}
	if len(m.urgent) != 1 || len(m.sample) != 1 {
		t.Errorf("counted %d times, kept %d times", len(m.urgent), len(m.sample))
	}
}

// F-OPT-04: when the clock is set back, observations that would lie in the future
// are forgotten, so that no rate is negative.
func TestDemand_StartsOverWhenTheClockIsSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Minute, 20 * time.Minute, 65 * time.Minute, 3 * time.Hour} {
		m, now := watch(60, 30, 80, 40)
		m.othersServed = now
		p := solver.Problem{Now: now.Add(-back), Drones: []solver.Drone{{ID: "D0", BatteryPercent: 90}}}
		m.observe(newDirectFlights(&p))
		fresh := &demand{}
		fresh.observe(newDirectFlights(&p))
		if got, want := m.urgentPerMinute(p.Now), fresh.urgentPerMinute(p.Now); got != want || m.othersServed.After(p.Now) || m.routeDuration(p.Now) <= 0 {
			t.Errorf("%s back: %v urgent per minute, want %v; others served in %s", back, got, want, m.othersServed.Sub(p.Now))
		}
	}
	// Lead times differ by less.
	m, now := watch(60, 30, 80, 40)
	p := solver.Problem{Now: now.Add(-maxLeadTime)}
	if m.observe(newDirectFlights(&p)); len(m.drones) != 40 {
		t.Errorf("the drones are forgotten after a shorter lead time")
	}
}
