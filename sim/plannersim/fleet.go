package plannersim

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// arrivedMetres is how near a stop a report proves it reached, as in
// production.
const arrivedMetres = 75

// member is a drone and what the State Manager knows of it.
type member struct {
	static  domain.Drone
	drone   fleetsim.Drone
	report  domain.Telemetry
	mission *domain.Mission // bound
	command *domain.Command // on its way to the drone
	due     time.Time       // when it arrives
	heard   bool            // the drone reported the mission
}

// fleet is all drones and orders of a day.
type fleet struct {
	world   *fleetsim.World
	members []member
	orders  map[domain.OrderID]*domain.Order
	flownKm float64
	busy    time.Duration // of drones bound or charging
	now     time.Time
}

func newFleet(w *fleetsim.World) (*fleet, error) {
	homes := map[domain.DepotID]domain.Position{}
	for _, d := range w.Depots {
		homes[d.ID] = d.Position
	}
	f := &fleet{world: w, orders: map[domain.OrderID]*domain.Order{}, now: begin}
	for _, d := range w.Drones {
		home, ok := homes[d.HomeDepotID]
		if !ok {
			return nil, fmt.Errorf("drone %s has no home depot %q in this world", d.ID, d.HomeDepotID)
		}
		m := member{static: d, drone: fleetsim.NewDrone(d, home)}
		m.drone, m.report = m.drone.Report(begin)
		f.members = append(f.members, m)
	}
	return f, nil
}

// pass lets a second go by.
func (f *fleet) pass() {
	f.now = f.now.Add(time.Second)
	for i := range f.members {
		m := &f.members[i]
		m.drone = m.drone.After(time.Second)
		if m.command != nil && !f.now.Before(m.due) {
			m.drone, _ = m.drone.Obey(*m.command, f.now)
			m.command = nil
		}
		m.drone, m.report = m.drone.Report(f.now)
		if m.report.Status != domain.DroneIdle || m.mission != nil {
			f.busy += time.Second
		}
		f.follow(m)
	}
}

// follow advances a drone's mission by its report.
func (f *fleet) follow(m *member) {
	if m.mission == nil {
		return
	}
	if m.report.MissionID == m.mission.ID {
		m.heard = true
		for m.mission.ReachedStops < len(m.mission.Route) {
			stop := m.mission.Route[m.mission.ReachedStops]
			if m.report.Position.DistanceMetres(stop.Position) > arrivedMetres {
				break
			}
			m.mission.ReachedStops++
			f.reach(stop)
		}
		return
	}
	if m.heard {
		m.mission, m.heard = nil, false // it has landed
	}
}

func (f *fleet) reach(stop domain.Waypoint) {
	order, ok := f.orders[stop.OrderID]
	if !ok {
		return
	}
	switch stop.Type {
	case domain.WaypointWarehousePickup:
		order.Status = domain.OrderInDelivery
	case domain.WaypointHospitalDelivery:
		order.Status, order.DeliveredAt = domain.OrderDelivered, f.now
	}
}

// snapshot is what a cycle of the depot reads now.
func (f *fleet) snapshot(depot domain.Depot, pending []*domain.Order) domain.Snapshot {
	s := domain.Snapshot{Time: f.now, ReadTime: f.now, Depot: depot, Warehouses: f.world.Warehouses}
	for i := range f.members {
		m := &f.members[i]
		if m.mission != nil || m.report.Status != domain.DroneIdle || m.report.Battery <= 20 || m.static.HomeDepotID != depot.ID {
			continue
		}
		d := m.static
		d.Status, d.Position, d.Battery, d.LastUpdate = domain.DroneIdle, m.report.Position, m.report.Battery, f.now
		s.Drones = append(s.Drones, d)
	}
	for _, o := range pending {
		if o.Status == domain.OrderPending {
			s.Orders = append(s.Orders, *o)
		}
	}
	return s
}

// assign makes a decision a mission; the drone hears of it after the latency.
func (f *fleet) assign(d domain.Decision, latency time.Duration) error {
	for i := range f.members {
		m := &f.members[i]
		if m.static.ID != d.DroneID {
			continue
		}
		if m.mission != nil {
			return fmt.Errorf("drone %s is bound already", d.DroneID)
		}
		m.mission = &domain.Mission{
			ID: domain.MissionID("M-" + d.ID), DroneID: d.DroneID, OrderIDs: d.OrderIDs, Route: d.Route,
			Status: domain.MissionActive, StartTime: f.now,
		}
		f.flownKm += m.mission.PlannedKm()
		for _, id := range d.OrderIDs {
			order := f.orders[id]
			if order == nil || order.Status != domain.OrderPending {
				return fmt.Errorf("order %s of drone %s is not pending", id, d.DroneID)
			}
			order.Status, order.AssignedDroneID = domain.OrderAssigned, d.DroneID
		}
		m.command = &domain.Command{Mission: *m.mission, ExpiresAt: f.now.Add(time.Hour)}
		m.due = f.now.Add(latency)
		return nil
	}
	return fmt.Errorf("no drone %s", d.DroneID)
}
