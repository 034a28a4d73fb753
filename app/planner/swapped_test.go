package planner_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
)

// F-ORD-05: an order whose coordinates are swapped says so, also while no drone is free. One
// that is far away either way is only out of range.
func TestJudgeByAllDrones_NamesSwappedCoordinates(t *testing.T) {
	swap := func(p domain.Position) domain.Position { return domain.Position{Lat: p.Lon, Lon: p.Lat} }
	near := north(4, 0)
	for name, c := range map[string]struct {
		change func(*domain.Order)
		want   string
	}{
		"delivery swapped": {func(o *domain.Order) { o.Delivery = swap(near) }, "out_of_range: its latitude and longitude look swapped"},
		"pickup and delivery": {func(o *domain.Order) {
			o.Delivery, o.Pickup = swap(near), &domain.Position{Lat: depot.Position.Lon, Lon: depot.Position.Lat}
		}, "out_of_range: its latitude and longitude look swapped"},
		"far away":                   {func(o *domain.Order) { o.Delivery = domain.Position{Lat: -33, Lon: 151} }, "out_of_range"},
		"too heavy for every drone":  {func(o *domain.Order) { o.Delivery, o.WeightKg = swap(near), 1e6 }, "over_capacity"},
		"near, and no drone is free": {func(*domain.Order) {}, "no_drone_free"},
	} {
		for _, free := range []int{0, 2} {
			w := newTown(2)
			for i := range w.drones {
				w.drones[i].PayloadCapacityKg = 5
			}
			w.order("O", domain.PriorityStandard, near, time.Hour)
			c.change(&w.orders[0])
			all := w.drones
			w.drones = w.drones[:free]
			r := w.plan(t, newPlanner(t))
			if len(r.Plan.Unserved) == 0 {
				continue // near
			}
			planner.JudgeByAllDrones(r.Problem, r.Plan.Unserved, all, r.Learned)
			if got := r.Plan.Unserved[0].String(); got != c.want && !strings.HasPrefix(got, c.want+";") {
				t.Errorf("%s, %d free: %q, want %q", name, free, got, c.want)
			}
		}
	}
}
