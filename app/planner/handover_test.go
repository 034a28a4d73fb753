package planner_test

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// passing is a plan that leaves one order, and what there is elsewhere.
type passing struct {
	order     domain.Order
	reason    solver.Reason
	obstacles domain.Obstacles
	elsewhere planner.OtherAreas
	learned   learning.Estimates
}

// F-ARE-05: an order that its area cannot serve in time goes to a depot with an idle drone
// that can, and otherwise stays.
func TestHandOverCandidates_HandOvers(t *testing.T) {
	now := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	here := domain.Depot{ID: "HERE", Position: domain.Position{Lat: 48.85, Lon: 2.35}}
	there := domain.Depot{ID: "THERE", Position: domain.Position{Lat: 48.85, Lon: 2.5}} // 11 km
	drone := domain.Drone{ID: "D9", HomeDepotID: there.ID, Position: there.Position, Battery: 90, ConsumptionPerKm: 1, PayloadCapacityKg: 5}
	for _, c := range []struct {
		what   string
		change func(*passing)
		want   domain.DepotID
	}{
		{"no drone free", func(*passing) {}, there.ID},
		{"waits for a better route", func(p *passing) { p.reason = solver.WaitsForBetterRoute }, ""},
		{"not plannable", func(p *passing) { p.reason = solver.InvalidInput }, ""},
		{"stocked nowhere", func(p *passing) { p.reason = solver.NoCompatibleWarehouse }, ""},
		{"kept waiting, and nothing waits there", func(p *passing) { p.reason = solver.KeptForCritical }, there.ID},
		{"kept waiting, and others wait there", func(p *passing) { p.reason, p.elsewhere.Waiting[there.ID] = solver.KeptForCritical, 1 }, ""},
		{"too late there, too", func(p *passing) { p.order.Deadline = now.Add(8 * time.Minute) }, ""},
		{"over its deadline", func(p *passing) { p.order.Deadline = now.Add(-time.Minute) }, ""},
		{"more wait there than its drones serve", func(p *passing) { p.elsewhere.Waiting[there.ID] = 8 }, ""},
		{"CRITICAL, and many wait there", func(p *passing) {
			p.order.Priority, p.elsewhere.Waiting[there.ID] = domain.PriorityCritical, 8
		}, there.ID},
		{"no drone idle there", func(p *passing) { p.elsewhere.Idle = nil }, ""},
		{"too heavy for the drone there", func(p *passing) { p.order.WeightKg = 6 }, ""},
		{"planned there before", func(p *passing) { p.order.HandedOverBy = []domain.DepotID{there.ID} }, ""},
		{"handed over too often", func(p *passing) { p.order.HandedOverBy = []domain.DepotID{"A", "B", "C", "D"} }, ""},
		{"planned by nobody yet", func(p *passing) { p.order.PlanningDepotID = "" }, ""},
		{"out of range for ever, and late", func(p *passing) {
			p.reason, p.order.Deadline, p.elsewhere.Idle = solver.OutOfRange, now.Add(-time.Hour), nil
		}, there.ID},
		{"no drone at all here, and late", func(p *passing) {
			p.obstacles, p.order.Deadline, p.elsewhere.Idle = domain.Obstacles{}, now.Add(-time.Hour), nil
		}, there.ID},
		// F-LRN-02: 11 km and 1.3 km take 15 min at 50 km/h.
		{"too late at the speed that was learned", func(p *passing) {
			p.order.Deadline, p.learned = now.Add(18*time.Minute), learning.Estimates{SpeedKmh: 50, Speeds: map[domain.DroneID]float64{"D9": 30}}
		}, ""},
		{"in time at the speed that was learned", func(p *passing) {
			p.order.Deadline, p.learned = now.Add(12*time.Minute), learning.Estimates{SpeedKmh: 75}
		}, there.ID},
		{"never in range at the speed that was learned", func(p *passing) {
			p.reason, p.elsewhere.All[0].MaxFlightTimeMinutes = solver.OutOfRange, 35
			p.order.Deadline, p.elsewhere.Idle, p.learned = now.Add(-time.Hour), nil, learning.Estimates{SpeedKmh: 30}
		}, ""},
		{"no drone anywhere", func(p *passing) { p.obstacles, p.elsewhere.Idle, p.elsewhere.All = domain.Obstacles{}, nil, nil }, ""},
	} {
		pickup := here.Position
		p := passing{
			order: domain.Order{
				ID: "O1", Status: domain.OrderPending, PlanningDepotID: here.ID, Deadline: now.Add(30 * time.Minute), CreatedAt: now,
				OrderContent: domain.OrderContent{Priority: domain.PriorityStandard, ProductType: "BLOOD", Pickup: &pickup, Delivery: domain.Position{Lat: 48.86, Lon: 2.36}, WeightKg: 1},
			},
			reason: solver.NoDroneFree, obstacles: domain.Obstacles{Busy: 3},
			elsewhere: planner.OtherAreas{Depots: []domain.Depot{there}, Idle: []domain.Drone{drone}, All: []domain.Drone{drone}, Waiting: map[domain.DepotID]int{}},
		}
		c.change(&p)
		snap := domain.Snapshot{Depot: here, Beyond: []domain.Depot{there}, Orders: []domain.Order{p.order}}
		unserved := []solver.Unserved{{OrderID: "O1", Reason: p.reason}}
		left := planner.HandOverCandidatesOf(planner.ProblemOf(snap, now, solver.Params{}), unserved, []domain.Obstacles{p.obstacles}, snap, p.learned)
		list := left.HandOvers(p.elsewhere)
		if c.want == "" {
			if len(list) > 0 {
				t.Errorf("%s: %+v", c.what, list)
			}
			continue
		}
		if len(list) != 1 || list[0].To != c.want || list[0].From != here.ID || list[0].OrderID != "O1" || len(left.Depots()) != 1 {
			t.Errorf("%s: %+v, of the depots %v", c.what, list, left.Depots())
		}
	}
}
