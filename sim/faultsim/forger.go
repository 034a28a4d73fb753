package faultsim

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/firestore"
	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// forgedPrefix begins the ids of forged decisions.
const forgedPrefix = "forged-"

// forge publishes decisions that are valid except for their fence, one for each kind of
// wrong fence. F-DEC-07
func (sim *simulation) forge(ctx context.Context) error {
	drones, err := sim.store.Drones(ctx, domain.DroneIdle, firestoretx.Page{})
	if err != nil {
		return fmt.Errorf("forge decisions: read the drones: %w", err)
	}
	orders, err := sim.store.Orders(ctx, domain.OrderPending, firestoretx.Page{})
	if err != nil {
		return fmt.Errorf("forge decisions: read the orders: %w", err)
	}
	highest, err := sim.store.Fences(ctx)
	if err != nil {
		return fmt.Errorf("forge decisions: read the fences: %w", err)
	}
	for _, o := range orders {
		if len(drones) == 0 {
			return nil
		}
		if !o.Waits() || o.Pickup == nil {
			continue
		}
		drone := drones[0]
		drones = drones[1:]
		if drone.Unregistered {
			continue
		}
		issued, err := sim.issued(ctx, drone.HomeDepotID)
		if err != nil {
			return err
		}
		fences := []string{"", strconv.FormatInt(issued+1000, 10), strconv.FormatInt(lock.FenceMax, 10), "999999999999999"}
		if applied, err := lock.ParseFence(highest[drone.HomeDepotID]); err == nil && applied > 1 {
			fences = append(fences, "1")
		}
		for _, fence := range fences {
			sim.publishForged(ctx, drone, o, fence)
		}
	}
	return nil
}

// issued returns the highest fence that the lock of a depot's cycle has issued.
func (sim *simulation) issued(ctx context.Context, depot domain.DepotID) (int64, error) {
	path, err := firestorelock.Config{}.CounterPath(domain.CycleLockKey(depot))
	if err != nil {
		return 0, err
	}
	docs, err := sim.reliable.Firestore.GetAll(ctx, []*firestore.DocumentRef{sim.reliable.Firestore.Doc(path)})
	if err != nil {
		return 0, fmt.Errorf("read the fence counter of depot %s: %w", depot, err)
	}
	if !docs[0].Exists() {
		return 0, nil // no cycle yet
	}
	fence, _ := docs[0].Data()["fence"].(string)
	return lock.ParseFence(fence)
}

// directFlight has a drone fly one order, which has a pickup position.
func directFlight(drone domain.Drone, o domain.Order) domain.Decision {
	return domain.Decision{
		DroneID: drone.ID, OrderIDs: []domain.OrderID{o.ID},
		Route: []domain.Waypoint{
			{Type: domain.WaypointWarehousePickup, Position: *o.Pickup, OrderID: o.ID},
			{Type: domain.WaypointHospitalDelivery, Position: o.Delivery, OrderID: o.ID},
		},
		EstimatedBatteryConsumption: 5, EstimatedDurationMinutes: 10,
	}
}

func (sim *simulation) publishForged(ctx context.Context, drone domain.Drone, o domain.Order, fence string) {
	d := directFlight(drone, o)
	d.ID, d.CycleID = domain.DecisionID(forgedPrefix+uuid.NewString()), "forged"
	d.DepotID, d.Fence, d.SnapshotTime = drone.HomeDepotID, fence, sim.clock.Now()
	data, attrs, err := wire.EncodeDecision(d, wire.Protobuf)
	if err != nil {
		return // cannot happen: every field can be encoded
	}
	attrs[poisonAttr] = "yes" // a fence beyond the lock's range may be dead-lettered
	sim.count(faultForgedDecisions, 1)
	sim.hospitals.answers.Go(func() {
		sim.hospitals.publish(ctx, pubsubio.TopicDecisions, data, attrs, invariant.Message{
			Topic: pubsubio.TopicDecisions, DecisionID: d.ID, Timestamp: d.SnapshotTime,
		})
	})
}

// checkFences lists the forged decisions that were not rejected for their fence, and the
// depots with a forged fence, which would block their real decisions.
func (sim *simulation) checkFences(ctx context.Context, h invariant.History) ([]string, error) {
	var found []string
	for _, row := range h.Ledger {
		if !strings.HasPrefix(string(row.ID), forgedPrefix) {
			continue
		}
		if row.Outcome != domain.OutcomeRejected || !strings.Contains(row.Reason, "FENCE") {
			found = append(found, fmt.Sprintf("F-DEC-07 forged decision %s with fence %q is %s %q", row.ID, row.Fence, row.Outcome, row.Reason))
		}
	}
	for depot, fence := range h.Fences {
		applied, err := lock.ParseFence(fence)
		if err != nil {
			return nil, fmt.Errorf("fence of depot %s: %w", depot, err)
		}
		issued, err := sim.issued(ctx, depot)
		if err != nil {
			return nil, err
		}
		if applied > issued {
			found = append(found, fmt.Sprintf("F-DEC-07 depot %s holds fence %d, but its lock has handed out only %d", depot, applied, issued))
		}
	}
	return found, nil
}
