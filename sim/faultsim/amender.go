package faultsim

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// amendEvery is the simulated time between two rounds of amendments.
const amendEvery = 8 * time.Second

// amend changes missions under way at random until ctx ends: it takes orders away, adds
// waiting ones, and moves orders between drones by doing both. One in five decisions is
// one that no planner should make. It also has idle drones stand by. F-AMD-01 to F-AMD-06
func (sim *simulation) amend(ctx context.Context) {
	random := rand.New(rand.NewPCG(sim.cfg.Seed, 0x616d656e64))
	var answers sync.WaitGroup
	defer answers.Wait()
	publish := func(d domain.Decision) { answers.Go(func() { sim.publishAmendment(ctx, d) }) }
	for sim.wait(ctx, sim.clock.Now().Add(amendEvery)) {
		if err := sim.amendOnce(ctx, random, publish); err != nil && ctx.Err() == nil {
			sim.cfg.Log.WarnContext(ctx, "no missions amended", slog.Any("err", err))
		}
	}
}

// amendOnce decides about every third mission.
func (sim *simulation) amendOnce(ctx context.Context, random *rand.Rand, publish func(domain.Decision)) error {
	seen := sim.clock.Now()
	missions, err := sim.store.Missions(ctx, domain.MissionActive, firestoretx.Page{})
	if err != nil {
		return fmt.Errorf("read the missions: %w", err)
	}
	orders, err := sim.store.Orders(ctx, domain.OrderPending, firestoretx.Page{})
	if err != nil {
		return fmt.Errorf("read the orders: %w", err)
	}
	fences, err := sim.store.Fences(ctx)
	if err != nil {
		return fmt.Errorf("read the fences: %w", err)
	}
	waiting := slices.DeleteFunc(orders, func(o domain.Order) bool { return !o.Waits() || o.Pickup == nil })
	for _, m := range missions {
		if random.IntN(3) > 0 {
			continue
		}
		drone, err := sim.store.Drone(ctx, m.DroneID)
		if err != nil {
			return fmt.Errorf("read drone %s: %w", m.DroneID, err)
		}
		d := randomAmendment(m, waiting, random)
		if m.Standby() {
			d = instead(m, waiting, random)
		}
		d.ID, d.CycleID = domain.DecisionID("amend-"+uuid.NewString()), "amend"
		d.DepotID, d.Fence, d.SnapshotTime = drone.HomeDepotID, fences[drone.HomeDepotID], seen
		if len(d.OrderIDs) == 0 || d.Fence == "" {
			continue
		}
		publish(d)
	}
	return sim.standByOnce(ctx, random, fences, publish)
}

// randomAmendment keeps what is reached, most of what is not, and adds up to two waiting
// orders.
func randomAmendment(m domain.Mission, waiting []domain.Order, random *rand.Rand) domain.Decision {
	d := domain.Decision{
		DroneID: m.DroneID, AmendsMissionID: m.ID, AmendsRevision: max(m.RouteRevision, 1),
		EstimatedBatteryConsumption: 20 * random.Float64(), EstimatedDurationMinutes: 10,
	}
	reached := m.Route[:min(m.ReachedStops, len(m.Route))]
	for _, id := range m.OrderIDs {
		begun := slices.ContainsFunc(reached, func(w domain.Waypoint) bool { return w.OrderID == id })
		if begun && random.IntN(20) > 0 || !begun && random.IntN(10) < 6 {
			d.OrderIDs = append(d.OrderIDs, id)
		}
	}
	for i, stop := range m.Route {
		last := stop.Type == domain.WaypointDepotReturn
		if i < len(reached) || !last && (stop.OrderID == "" || slices.Contains(d.OrderIDs, stop.OrderID)) {
			d.Route = append(d.Route, stop)
		}
	}
	for range min(random.IntN(3), len(waiting)) {
		o := waiting[random.IntN(len(waiting))]
		if slices.Contains(d.OrderIDs, o.ID) {
			continue
		}
		d.OrderIDs = append(d.OrderIDs, o.ID)
		d.Route = append(d.Route,
			domain.Waypoint{Type: domain.WaypointWarehousePickup, Position: *o.Pickup, OrderID: o.ID},
			domain.Waypoint{Type: domain.WaypointHospitalDelivery, Position: o.Delivery, OrderID: o.ID})
	}
	if n := len(m.Route); n > 0 && m.Route[n-1].Type == domain.WaypointDepotReturn {
		d.Route = append(d.Route, m.Route[n-1])
	}
	switch random.IntN(15) {
	case 0:
		d.AmendsRevision += 1 + random.IntN(3)
	case 1:
		d.AmendsMissionID = "M-of-nobody"
	case 2:
		slices.Reverse(d.Route)
	}
	return d
}

// publishAmendment publishes a decision like the hospitals' messages: if the server confirms
// it, the checker requires its effect.
func (sim *simulation) publishAmendment(ctx context.Context, d domain.Decision) {
	data, attrs, err := wire.EncodeDecision(d, wire.Protobuf)
	if err != nil {
		return // cannot happen: every field can be encoded
	}
	sim.hospitals.publish(ctx, pubsubio.TopicDecisions, data, attrs, invariant.Message{
		Topic: pubsubio.TopicDecisions, DecisionID: d.ID, Timestamp: d.SnapshotTime,
	})
}

// Amendments counts what came of the missions that were changed under way.
type Amendments struct {
	Decided, InForce, Void int
	Released               int // orders that a drone let go
	Standby, GaveWay       int // missions without orders, and amendments that gave them some
}

func (a Amendments) String() string {
	return fmt.Sprintf("%d amendments decided, %d in force, %d void, %d orders let go, %d missions without orders, %d given some",
		a.Decided, a.InForce, a.Void, a.Released, a.Standby, a.GaveWay)
}

func amendmentsOf(h invariant.History) (a Amendments) {
	standby := map[domain.MissionID]bool{}
	for _, row := range h.Ledger {
		if row.Outcome == domain.OutcomeApplied && row.AmendsMissionID == "" && len(row.OrderIDs) == 0 {
			standby[row.MissionID] = true
		}
	}
	a.Standby = len(standby)
	for _, row := range h.Ledger {
		if row.Outcome != domain.OutcomeApplied || row.AmendsMissionID == "" {
			continue
		}
		a.Decided++
		if standby[row.AmendsMissionID] && len(row.AddedIDs) > 0 {
			a.GaveWay++
		}
	}
	for _, m := range h.Missions {
		if m.RouteRevision > 1 {
			a.InForce++
		}
	}
	for _, e := range h.Events {
		switch {
		case e.Entity == domain.EntityMission && e.Reason == "AMENDMENT_VOID":
			a.Void++
		case e.Entity == domain.EntityOrder && e.Reason == "RELEASED":
			a.Released++
		}
	}
	return a
}
