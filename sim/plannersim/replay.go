package plannersim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// arrivedMetres is how near a stop a drone must report to have reached it, as in
// production.
const arrivedMetres = 75

// trackedDrone is a simulated drone and what the State Manager knows of it.
type trackedDrone struct {
	static  domain.Drone
	drone   fleetsim.Drone
	report  domain.Telemetry
	mission *domain.Mission  // bound
	command *domain.Command  // on its way to the drone
	due     time.Time        // when the command arrives
	acked   bool             // the drone has reported the mission
	reached time.Time        // when it reached its latest stop
	station *domain.Position // where it waits for missions; nil means the depot
}

// replay is a day in progress.
type replay struct {
	world    *fleetsim.World
	drones   []trackedDrone
	orders   map[domain.OrderID]*domain.Order
	amends   Amendments
	mayAmend bool
	pending  []*domain.Order
	flownKm  float64       // of missions
	flights  int           // to stations
	standby  int           // missions without orders
	busy     time.Duration // of all drones that fly or charge
	now      time.Time
	homes    map[domain.DepotID]domain.Position
}

func newReplay(w *fleetsim.World, s Scenario) (*replay, error) {
	homes := map[domain.DepotID]domain.Position{}
	for _, d := range w.Depots {
		homes[d.ID] = d.Position
	}
	r := &replay{world: w, orders: map[domain.OrderID]*domain.Order{}, now: Begin, mayAmend: s.Amend, homes: homes}
	random := rand.New(rand.NewPCG(s.Seed, 1913))
	for i, d := range w.Drones {
		home, ok := homes[d.HomeDepotID]
		if !ok {
			return nil, fmt.Errorf("drone %s: the world has no depot %q", d.ID, d.HomeDepotID)
		}
		d.SupportsStandby = s.Standby
		t := trackedDrone{static: d}
		if float64(i) < s.Away*float64(len(w.Drones)) {
			station := w.Hospitals[random.IntN(len(w.Hospitals))].Position
			t.station, d.Position = &station, station
		}
		t.drone = fleetsim.NewDrone(d, home).WithPace(s.Pace)
		t.drone, t.report = t.drone.Report(Begin)
		r.drones = append(r.drones, t)
	}
	return r, nil
}

// step advances the replay by one second.
func (r *replay) step() {
	r.now = r.now.Add(time.Second)
	for i := range r.drones {
		t := &r.drones[i]
		t.drone = t.drone.After(time.Second)
		if t.command != nil && !r.now.Before(t.due) {
			t.drone, _ = t.drone.Obey(*t.command, r.now)
			t.command = nil
		}
		t.drone, t.report = t.drone.Report(r.now)
		if t.report.Status != domain.DroneIdle || t.mission != nil {
			r.busy += time.Second
		}
		r.advance(t)
		r.returnToStation(t)
	}
}

// returnToStation sends a drone that has landed at its depot and is charged back to
// where it waits for missions.
func (r *replay) returnToStation(t *trackedDrone) {
	if t.station == nil || t.mission != nil || t.report.Status != domain.DroneIdle || t.report.Position.DistanceMetres(*t.station) <= arrivedMetres {
		return
	}
	r.flights++
	t.drone, _ = t.drone.Obey(domain.Command{
		Mission: domain.Mission{
			ID: domain.MissionID(fmt.Sprint("STATION-", r.flights)), DroneID: t.static.ID, Status: domain.MissionActive, StartTime: r.now,
			Route: []domain.Waypoint{{Type: domain.WaypointDepotReturn, Position: *t.station}},
		},
		ExpiresAt: r.now.Add(time.Hour),
	}, r.now)
	t.drone, t.report = t.drone.Report(r.now)
}

// advance advances a drone's mission by its report.
func (r *replay) advance(t *trackedDrone) {
	if t.mission == nil {
		return
	}
	if t.stands() {
		r.advanceStandby(t)
		return
	}
	if t.report.MissionID == t.mission.ID {
		t.acked = true
		r.confirm(t)
		for t.mission.ReachedStops < len(t.mission.Route) {
			stop := t.mission.Route[t.mission.ReachedStops]
			if t.report.Position.DistanceMetres(stop.Position) > arrivedMetres {
				break
			}
			t.mission.ReachedStops++
			t.reached = r.now
			r.reach(stop)
		}
		return
	}
	if t.acked {
		r.void(t)
		t.mission, t.acked = nil, false // it has landed
	}
}

func (r *replay) reach(stop domain.Waypoint) {
	order, ok := r.orders[stop.OrderID]
	if !ok {
		return
	}
	switch stop.Type {
	case domain.WaypointWarehousePickup:
		order.Status, order.Releasing = domain.OrderInDelivery, false
	case domain.WaypointHospitalDelivery:
		order.Status, order.DeliveredAt = domain.OrderDelivered, r.now
	case domain.WaypointDepotStart, domain.WaypointDepotReturn, domain.WaypointCharge, domain.WaypointWait: // of no order
	}
}

// snapshot is what a cycle of the area reads now: its drones and the orders that it plans.
func (r *replay) snapshot(area domain.Area) domain.Snapshot {
	s := domain.Snapshot{Time: r.now, ReadTime: r.now, Depot: area.Depots[0], Neighbours: area.Depots[1:], Warehouses: r.world.Warehouses}
	for _, d := range r.world.Depots {
		if !area.Has(d.ID) {
			s.Beyond = append(s.Beyond, d)
		}
	}
	s.Drones = r.idle(area)
	if r.mayAmend {
		s.Flights = r.inFlight(area)
	}
	for _, o := range r.pending {
		if o.Waits() && area.Has(o.PlanningDepotID) {
			s.Orders = append(s.Orders, *o)
		}
	}
	return s
}

// idle are the drones of an area that a cycle is offered now.
func (r *replay) idle(area domain.Area) (idle []domain.Drone) {
	for i := range r.drones {
		t := &r.drones[i]
		if t.mission != nil || t.report.Status != domain.DroneIdle || t.report.Battery <= 20 || !area.Has(t.static.HomeDepotID) {
			continue
		}
		d := t.static
		d.Status, d.Position, d.Battery, d.LastUpdate = domain.DroneIdle, t.report.Position, t.report.Battery, r.now
		idle = append(idle, d)
	}
	return idle
}

// handOver gives what an area's cycle cannot serve in time to others that can, as the
// optimizer does at the end of a cycle. It returns how many orders.
func (r *replay) handOver(planned planner.Result, snap domain.Snapshot) int {
	left := planner.LeftoversOf(planned.Usable(), planned.Plan.Unserved, planned.Obstacles, snap)
	e := planner.Elsewhere{Depots: left.Depots(), Waiting: map[domain.DepotID]int{}}
	if len(e.Depots) == 0 {
		return 0
	}
	there := domain.Area{Depots: e.Depots}
	e.Idle = r.idle(there)
	for i := range r.drones {
		if d := r.drones[i].static; left.NeedAllDrones() && there.Has(d.HomeDepotID) {
			e.All = append(e.All, d)
		}
	}
	for _, o := range r.pending {
		if o.Waits() {
			e.Waiting[o.PlanningDepotID]++
		}
	}
	list := left.HandOvers(e)
	for _, h := range list {
		o := r.orders[h.OrderID]
		change, err := policy.HandOverOrder(o, there.Has(h.To), h, snap.CycleID, r.now)
		if err != nil {
			continue
		}
		*o = change.Orders[0]
	}
	return len(list)
}

// takenError says that another area's cycle has given an order to a drone.
type takenError struct{ order domain.OrderID }

func (e *takenError) Error() string { return fmt.Sprintf("order %s is not pending", e.order) }

// assign turns a decision into a mission; the drone hears of it after the
// latency. It changes nothing beside an error.
func (r *replay) assign(d domain.Decision, latency time.Duration) error {
	for i := range r.drones {
		t := &r.drones[i]
		if t.static.ID != d.DroneID {
			continue
		}
		if len(d.OrderIDs) == 0 {
			r.standBy(t, d, latency)
			return nil
		}
		if t.stands() && d.AmendsMissionID == t.mission.ID {
			t.mission = nil // replaced whole
		} else if d.Amends() {
			return r.amend(t, d, latency)
		}
		homebound := t.homebound()
		if t.mission != nil && !homebound {
			return fmt.Errorf("drone %s already has a mission", d.DroneID)
		}
		for _, id := range d.OrderIDs {
			if order := r.orders[id]; order == nil || order.Status != domain.OrderPending {
				return &takenError{id}
			}
		}
		t.mission = &domain.Mission{
			ID: domain.MissionID("M-" + d.ID), DroneID: d.DroneID, OrderIDs: d.OrderIDs, Route: d.Route,
			Status: domain.MissionActive, StartTime: r.now, RouteRevision: 1,
		}
		r.flownKm += t.mission.PlannedKm() + t.report.Position.DistanceMetres(d.Route[0].Position)/1000
		if homebound { // it flies there instead of home
			r.flownKm += (t.report.Position.DistanceMetres(d.Route[0].Position) - t.report.Position.DistanceMetres(r.homes[t.static.HomeDepotID])) / 1000
			t.acked = false
		}
		for _, id := range d.OrderIDs {
			order := r.orders[id]
			order.Status, order.AssignedDroneID, order.AssignedMissionID = domain.OrderAssigned, d.DroneID, t.mission.ID
		}
		t.command = &domain.Command{Mission: *t.mission, ExpiresAt: r.now.Add(time.Hour)}
		t.due = r.now.Add(latency)
		return nil
	}
	return fmt.Errorf("no drone %s", d.DroneID)
}
