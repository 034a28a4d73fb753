package plannersim_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// F-STP-10: every stop that the planner makes equals the stored coordinates bit by bit,
// after a journey over the wire in either form: no decision is refused, even with no
// tolerance at all.
func TestPlanner_StopsEqualStoredCoordinates(t *testing.T) {
	t.Parallel()
	rules := policy.DefaultMissionAssignmentPolicy()
	rules.StopToleranceMetres, rules.AllowUnfenced = 0, true
	now := time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)
	decided := 0
	for plan := range longtest.Size(t, "plans", 300, 3_000) {
		s, warehouses := randomSnapshot(rand.New(rand.NewPCG(1, uint64(plan))), now)
		p := planner.New(planner.Config{Options: solver.Options{Iterations: 5, Workers: 1}}, time.Now)
		result, err := p.PlanSnapshot(t.Context(), s, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range planner.DecisionsOf(result.Plan, s) {
			for _, form := range []wire.Format{wire.Protobuf, wire.JSON} {
				data, attrs, err := wire.EncodeDecision(d, form)
				if err != nil {
					t.Fatal(err)
				}
				got, err := wire.DecodeDecision(data, attrs)
				if err != nil {
					t.Fatal(err)
				}
				state := policy.DecisionState{Depots: s.Depots(), Warehouses: warehouses, Orders: map[domain.OrderID]domain.Order{}}
				for _, o := range s.Orders {
					state.Orders[o.ID] = o
				}
				for _, drone := range s.Drones {
					if drone.ID == d.DroneID {
						state.Drone = &drone
					}
				}
				v, err := rules.AssignMission(state, got, policy.Delivery{PublishedAt: now, ReceivedAt: now}, now)
				if err != nil || v.Entry.Outcome != domain.OutcomeApplied {
					t.Fatalf("plan %d as %s: %s %s, %v", plan, form, v.Entry.Reason, v.Entry.Detail, err)
				}
				decided++
			}
		}
	}
	t.Logf("%d decisions", decided)
	if decided == 0 {
		t.Error("nothing was decided")
	}
}

// randomSnapshot is a small fleet anywhere on Earth, with parcels at warehouses and at
// places of their own.
func randomSnapshot(random *rand.Rand, now time.Time) (domain.Snapshot, map[domain.WarehouseID]domain.Warehouse) {
	center := domain.Position{Lat: -70 + 140*random.Float64(), Lon: -180 + 360*random.Float64()}
	near := func() domain.Position {
		p := domain.Position{Lat: center.Lat + 0.05*random.Float64(), Lon: center.Lon + 0.05*random.Float64()}
		if p.Lon > 180 {
			p.Lon -= 360
		}
		return p
	}
	s := domain.Snapshot{Time: now, ReadTime: now, Depot: domain.Depot{ID: "A", Position: near()}, Neighbours: []domain.Depot{{ID: "B", Position: near()}}}
	warehouses := map[domain.WarehouseID]domain.Warehouse{}
	for i := range 2 {
		w := domain.Warehouse{ID: domain.WarehouseID(fmt.Sprint("W", i)), Position: near(), ProductTypes: []string{"BLOOD"}, ColdStorage: i == 0}
		warehouses[w.ID], s.Warehouses = w, append(s.Warehouses, w)
	}
	for i := range 1 + random.IntN(3) {
		home := s.Depots()[random.IntN(2)]
		s.Drones = append(s.Drones, domain.Drone{
			ID: domain.DroneID(fmt.Sprint("D", i)), Status: domain.DroneIdle, HomeDepotID: home.ID, Position: home.Position,
			Battery: 60 + 40*random.Float64(), SeenAt: now, LastUpdate: now, PayloadCapacityKg: 5,
		})
	}
	for i := range 1 + random.IntN(6) {
		o := domain.Order{ID: domain.OrderID(fmt.Sprint("O", i)), Status: domain.OrderPending, CreatedAt: now, Deadline: now.Add(time.Hour), OrderContent: domain.OrderContent{
			Priority: domain.PriorityHigh, ProductType: "BLOOD", Delivery: near(), WeightKg: random.Float64(), ColdChain: random.IntN(3) == 0,
		}}
		if random.IntN(3) == 0 {
			own := near()
			o.Pickup = &own
		}
		s.Orders = append(s.Orders, o)
	}
	return s, warehouses
}
