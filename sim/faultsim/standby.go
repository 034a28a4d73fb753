package faultsim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// standByOnce sends about every fourth idle drone to charge or wait, and now and then one
// that is busy or does not support it. One in six decisions is one that no planner should
// make.
// F-AMD-06
func (sim *simulation) standByOnce(ctx context.Context, random *rand.Rand, fences map[domain.DepotID]string, publish func(domain.Decision)) error {
	seen := sim.clock.Now()
	drones, err := sim.store.Drones(ctx, "", firestoretx.Page{})
	if err != nil {
		return fmt.Errorf("read the drones: %w", err)
	}
	depots, err := sim.store.Depots(ctx)
	if err != nil {
		return fmt.Errorf("read the depots: %w", err)
	}
	at := make(map[domain.DepotID]domain.Position, len(depots.Items))
	for _, d := range depots.Items {
		at[d.ID] = d.Position
	}
	for _, drone := range drones {
		idle := drone.Status == domain.DroneIdle
		able := drone.SupportsStandby || random.IntN(8) == 0
		if !able || idle && random.IntN(4) > 0 || !idle && random.IntN(40) > 0 || fences[drone.HomeDepotID] == "" {
			continue
		}
		d := randomStandby(drone, at[drone.HomeDepotID], seen, random)
		d.ID, d.CycleID = domain.DecisionID("standby-"+uuid.NewString()), "standby"
		d.DepotID, d.Fence, d.SnapshotTime = drone.HomeDepotID, fences[drone.HomeDepotID], seen
		publish(d)
	}
	return nil
}

// randomStandby has a drone charge at its depot, wait north of it, or do both.
func randomStandby(drone domain.Drone, home domain.Position, now time.Time, random *rand.Rand) domain.Decision {
	d := domain.Decision{DroneID: drone.ID, EstimatedBatteryConsumption: 6, EstimatedDurationMinutes: 2}
	north := domain.Position{Lat: home.Lat + 0.01, Lon: home.Lon}
	charge := domain.Waypoint{Type: domain.WaypointCharge, Position: home, ChargeToPercent: min(100, drone.Battery+5*random.Float64())}
	wait := domain.Waypoint{
		Type: domain.WaypointWait, Position: north,
		WaitUntil: now.Add(time.Duration(5+random.IntN(60)) * time.Second).Truncate(time.Microsecond),
	}
	switch random.IntN(12) {
	case 0:
		charge.Position = north
	case 1:
		wait.WaitUntil = now.Add(24 * time.Hour).Truncate(time.Microsecond)
	}
	switch random.IntN(3) {
	case 0:
		d.Route = append(d.Route, charge)
	case 1:
		d.Route = append(d.Route, wait)
	case 2:
		d.Route = append(d.Route, charge, wait)
	}
	if random.IntN(3) > 0 {
		d.Route = append(d.Route, domain.Waypoint{Type: domain.WaypointDepotReturn, Position: home})
	}
	return d
}

// instead replaces the route of a mission without orders by one with orders, as a cycle
// does for a new order.
func instead(m domain.Mission, waiting []domain.Order, random *rand.Rand) domain.Decision {
	served := m
	served.Route, served.OrderIDs, served.ReachedStops = m.Route[len(m.Route):], nil, 0
	d := randomAmendment(served, waiting, random)
	if random.IntN(2) == 0 { // what the drone has done may stay
		d.Route = append(m.Route[:m.ReachedStops:m.ReachedStops], d.Route...)
	}
	return d
}
