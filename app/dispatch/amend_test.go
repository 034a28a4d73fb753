package dispatch_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/simclock"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// flying has D1 take off with the order SERVED, and name its mission.
func (b *bench) flying(t *testing.T) domain.Mission {
	t.Helper()
	if _, err := b.runner(t, b.store, 15*time.Second).Once(t.Context(), depot.ID, nil); err != nil {
		t.Fatal(err)
	}
	b.assignLast(t)
	missions := b.missions(t)
	b.names(t, missions[0], 1, 1)
	return missions[0]
}

func (b *bench) missions(t *testing.T) []domain.Mission {
	t.Helper()
	missions, err := b.store.Missions(t.Context(), "", firestoretx.Page{})
	if err != nil || len(missions) != 1 {
		t.Fatalf("%d missions, %v", len(missions), err)
	}
	return missions
}

// names has D1 report a revision of its mission, and how many stops it has completed.
func (b *bench) names(t *testing.T, m domain.Mission, revision, completed int) {
	t.Helper()
	report := domain.Telemetry{
		DroneID: m.DroneID, Timestamp: time.Now(), Position: domain.Position{Lat: 48.859, Lon: 2.3522}, Battery: 88, SpeedKmh: 50, Status: domain.DroneMoving,
		MissionID: m.ID, MissionRevision: revision, SupportsAmendments: true, CompletedStops: &completed,
	}
	if err := b.store.NewTelemetryApplier().Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
		t.Fatal(err)
	}
}

func (b *bench) urgent(t *testing.T) {
	t.Helper()
	req := domain.OrderRequest{ID: "URGENT", OrderContent: domain.OrderContent{
		Priority: domain.PriorityCritical, ProductType: "BLOOD", Delivery: domain.Position{Lat: 48.861, Lon: 2.361},
	}}
	if err := b.store.IngestOrder(t.Context(), req, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// F-AMD-01 F-AMD-03: with no drone idle, a CRITICAL order reaches the one that flies. It is
// bound at once, stays when the drone names the revision, and is delivered on its route.
func TestRunner_GivesACriticalOrderToADroneInFlight(t *testing.T) {
	b := newBench(t)
	m := b.flying(t)
	b.urgent(t)
	b.published = nil
	cycle, err := b.runner(t, b.store, 15*time.Second).Once(t.Context(), depot.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(b.published) != 1 || cycle.Drones != 0 || cycle.Flights != 1 || cycle.Missions != 0 || cycle.Amended != 1 || cycle.Assigned != 1 {
		t.Fatalf("published %+v in cycle %+v", b.published, cycle)
	}
	d := b.published[0]
	if d.AmendsMissionID != m.ID || d.AmendsRevision != 1 || d.ID != domain.DecisionIDFor(cycle.ID, "D1") || d.Fence != cycle.Fence ||
		!slices.Equal(d.OrderIDs, []domain.OrderID{"SERVED", "URGENT"}) {
		t.Errorf("decision %+v", d)
	}
	if got := b.clients.Meter.Cycles.Amended.Value(); got != 1 {
		t.Errorf("%d amendments counted", got)
	}
	if stored, err := b.store.Cycle(t.Context(), cycle.ID); err != nil || stored.Amended != 1 || stored.Flights != 1 {
		t.Errorf("recorded %+v, %v", stored, err)
	}
	b.assignLast(t)
	if o, err := b.store.Order(t.Context(), "URGENT"); err != nil || o.Status != domain.OrderAssigned || o.AssignedMissionID != m.ID {
		t.Errorf("order %+v, %v", o, err)
	}
	b.names(t, m, 2, len(d.Route)-1)
	if m := b.missions(t)[0]; m.RouteRevision != 2 || m.Status != domain.MissionCompleted {
		t.Errorf("mission %+v", m)
	}
	for _, id := range []domain.OrderID{"SERVED", "URGENT"} {
		if o, err := b.store.Order(t.Context(), id); err != nil || o.Status != domain.OrderDelivered {
			t.Errorf("order %+v, %v", o, err)
		}
	}
}

// F-AMD-04: to bring a CRITICAL order in time, an order that is not fetched is taken away. It
// stays with its drone until the drone names the new revision, and waits from then on. The
// drone carries one of them, and cannot fly to the warehouse twice.
func TestRunner_TakesAnOrderAwayInTwoSteps(t *testing.T) {
	b := newBench(t)
	b.drone(t, domain.Drone{ID: "D1", HomeDepotID: depot.ID, PayloadCapacityKg: 1, ConsumptionPerKm: 10.5}, domain.DroneIdle)
	order := func(id domain.OrderID, p domain.Priority, lon float64) {
		t.Helper()
		req := domain.OrderRequest{ID: id, OrderContent: domain.OrderContent{
			Priority: p, ProductType: "BLOOD", WeightKg: 1, Delivery: domain.Position{Lat: 48.861, Lon: lon},
		}}
		if err := b.store.IngestOrder(t.Context(), req, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	order("HEAVY", domain.PriorityHigh, 2.361)
	m := b.flying(t)
	order("URGENT", domain.PriorityCritical, 2.37)
	cycle, err := b.runner(t, b.store, 15*time.Second).Once(t.Context(), depot.ID, nil)
	if err != nil || cycle.Amended != 1 || cycle.Assigned != 1 || cycle.Exchanged != 1 || b.clients.Meter.Cycles.Exchanged.Value() != 1 {
		t.Fatalf("cycle %+v, %v", cycle, err)
	}
	if stored, err := b.store.Cycle(t.Context(), cycle.ID); err != nil || stored.Exchanged != 1 {
		t.Errorf("recorded %+v, %v", stored, err)
	}
	b.assignLast(t)
	if o, err := b.store.Order(t.Context(), "HEAVY"); err != nil || o.Status != domain.OrderAssigned || o.AssignedMissionID != m.ID || !o.Releasing {
		t.Errorf("before the drone knows: %+v, %v", o, err)
	}
	b.names(t, m, 2, 1)
	if o, err := b.store.Order(t.Context(), "HEAVY"); err != nil || o.Status != domain.OrderPending || o.Releasing || o.AssignedMissionID != "" {
		t.Errorf("once it names the revision: %+v, %v", o, err)
	}
	if o, err := b.store.Order(t.Context(), "URGENT"); err != nil || o.AssignedMissionID != m.ID {
		t.Errorf("URGENT: %+v, %v", o, err)
	}
}

// F-AMD-01 F-DEC-03: an amendment that comes too late is refused, and its order waits for
// the next cycle.
func TestRunner_LeavesTheOrderOfARefusedAmendmentToTheNextCycle(t *testing.T) {
	b := newBench(t)
	m := b.flying(t)
	b.urgent(t)
	b.published = nil
	runner := b.runner(t, b.store, 15*time.Second)
	if _, err := runner.Once(t.Context(), depot.ID, nil); err != nil || len(b.published) != 1 {
		t.Fatalf("published %+v, %v", b.published, err)
	}
	b.names(t, m, 1, len(m.Route)-1) // it ends before the decision arrives
	entry, err := b.store.AssignMission(t.Context(), b.published[0], policy.Delivery{})
	if err != nil || entry.Reason != string(policy.ReasonMissionNotActive) {
		t.Fatalf("%+v, %v", entry, err)
	}
	b.drone(t, domain.Drone{ID: "D2", HomeDepotID: depot.ID}, domain.DroneIdle)
	if _, err := runner.Once(t.Context(), depot.ID, nil); err != nil {
		t.Fatal(err)
	}
	if d := b.published[len(b.published)-1]; d.DroneID != "D2" || d.Amends() || !slices.Contains(d.OrderIDs, "URGENT") {
		t.Errorf("decision %+v", d)
	}
}

// F-DEC-02: a drone that has served its mission takes a CRITICAL order on its way home.
func TestRunner_GivesACriticalOrderToADroneOnItsWayHome(t *testing.T) {
	b := newBench(t)
	m := b.flying(t)
	b.names(t, m, 1, len(m.Route)-1)
	b.urgent(t)
	cycle, err := b.runner(t, b.store, 15*time.Second).Once(t.Context(), depot.ID, nil)
	if err != nil || cycle.Missions != 1 || cycle.Amended != 0 {
		t.Fatalf("%+v, %v", cycle, err)
	}
	d := b.published[len(b.published)-1]
	if d.DroneID != m.DroneID || d.Amends() || d.Route[0].Type != domain.WaypointWarehousePickup || !slices.Equal(d.OrderIDs, []domain.OrderID{"URGENT"}) {
		t.Fatalf("decision %+v", d)
	}
	entry, err := b.store.AssignMission(t.Context(), d, policy.Delivery{})
	if err != nil || entry.Outcome != domain.OutcomeApplied {
		t.Errorf("%+v, %v", entry, err)
	}
}

// Amendments can be switched off.
func TestRunner_LeavesMissionsAloneWithoutAmendments(t *testing.T) {
	b := newBench(t)
	b.flying(t)
	b.urgent(t)
	publish := func(_ context.Context, decisions []domain.Decision) []error {
		t.Errorf("published %+v", decisions)
		return make([]error, len(decisions))
	}
	cfg := dispatch.Config{Iterations: steps, Limits: policy.Limits{MaxSilence: patient}, NoAmendments: true}
	r := dispatch.NewRunner(b.store, b.locks, publish, uuid.NewString, simclock.Real(), cfg, emutest.Log(t), b.clients.Meter)
	if cycle, err := r.Once(t.Context(), depot.ID, nil); err != nil || cycle.Flights != 0 || len(cycle.Unserved) != 2 {
		t.Errorf("cycle %+v, %v", cycle, err)
	}
}
