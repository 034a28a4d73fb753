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

// trackedDrone is a simulated drone and what the State Manager knows of it.
type trackedDrone struct {
	drone    fleetsim.Drone
	document domain.Drone     // what cycles and decisions read
	known    domain.Drone     // the document with the reports since then that were not due
	commands []sentCommand    // on their way to the drone
	station  *domain.Position // where it waits for missions; nil means the depot
}

// sentCommand is a command and when it arrives.
type sentCommand struct {
	domain.Command
	due time.Time
}

// replay is a day in progress.
type replay struct {
	world    *fleetsim.World
	drones   []trackedDrone
	slots    *fleetsim.Slots
	rules    policy.MissionAssignmentPolicy
	latency  time.Duration
	orders   map[domain.OrderID]*domain.Order
	missions map[domain.MissionID]domain.Mission
	counts   counts
	mayAmend bool
	pending  []*domain.Order
	flownKm  float64
	flights  int           // to stations
	busy     time.Duration // of all drones that fly or charge
	lowest   float64       // charge that a drone reported
	now      time.Time

	foretelling       policy.Foretelling
	reported, written int // reports
}

// reports is the policy for what drones report.
func (r *replay) reports() policy.DronePolicy {
	return policy.DronePolicy{Limits: r.rules.Limits, Foretelling: r.foretelling}
}

func newReplay(w *fleetsim.World, s Scenario) (*replay, error) {
	homes := map[domain.DepotID]domain.Position{}
	for _, d := range w.Depots {
		homes[d.ID] = d.Position
	}
	r := &replay{
		world: w, slots: fleetsim.NewSlots(w.Depots), rules: policy.DefaultMissionAssignmentPolicy(), latency: s.Latency,
		orders: map[domain.OrderID]*domain.Order{}, missions: map[domain.MissionID]domain.Mission{}, now: Begin, mayAmend: s.Amend, lowest: 100,
		foretelling: s.Foretelling,
	}
	r.rules.AllowUnfenced = true
	random := rand.New(rand.NewPCG(s.Seed, 1913))
	for i, d := range w.Drones {
		home, ok := homes[d.HomeDepotID]
		if !ok {
			return nil, fmt.Errorf("drone %s: the world has no depot %q", d.ID, d.HomeDepotID)
		}
		d.SupportsStandby = d.SupportsStandby && s.Standby
		t := trackedDrone{}
		if float64(i) < s.Away*float64(len(w.Drones)) {
			station := w.Hospitals[random.IntN(len(w.Hospitals))].Position
			t.station, d.Position = &station, station
		}
		t.drone = fleetsim.NewDrone(d, home).Weighing(r.weightKg).WithPace(s.Pace).WithSlot(!r.slots.Limited())
		r.commit(&t, policy.SetupDrone(nil, d, Begin))
		t.known = t.document
		if err := r.report(&t); err != nil {
			return nil, err
		}
		r.drones = append(r.drones, t)
	}
	return r, nil
}

// step advances the replay by one second.
func (r *replay) step() error {
	r.now = r.now.Add(time.Second)
	for i := range r.drones {
		t := &r.drones[i]
		t.drone = t.drone.After(time.Second)
		r.slots.Allot(i, time.Second, r)
		for len(t.commands) > 0 && !r.now.Before(t.commands[0].due) {
			t.drone, _ = t.drone.Obey(t.commands[0].Command, r.now)
			t.commands = t.commands[1:]
		}
		if err := r.report(t); err != nil {
			return err
		}
		r.returnToStation(t)
	}
	return nil
}

func (r *replay) weightKg(id domain.OrderID) float64 { return r.orders[id].WeightKg }

// Charger implements fleetsim.Chargers.
func (r *replay) Charger(i int) *fleetsim.Drone { return &r.drones[i].drone }

// CatchUp implements fleetsim.Chargers. All drones are advanced together, to the second.
func (r *replay) CatchUp(int) {}

// returnToStation sends a drone that has landed at its depot and is charged back to
// where it waits for missions.
func (r *replay) returnToStation(t *trackedDrone) {
	if t.station == nil || t.known.Bound() || t.drone.Status() != domain.DroneIdle || t.known.Position.DistanceMetres(*t.station) <= r.rules.StopRadiusMetres {
		return
	}
	r.flights++
	t.drone, _ = t.drone.Obey(domain.Command{
		Mission: domain.Mission{
			ID: domain.MissionID(fmt.Sprint("STATION-", r.flights)), DroneID: t.known.ID, Status: domain.MissionActive, StartTime: r.now,
			Route: []domain.Waypoint{{Type: domain.WaypointDepotReturn, Position: *t.station}},
		},
		ExpiresAt: r.now.Add(time.Hour),
	}, r.now)
}

// snapshot is what a cycle of the area reads now: its drones and the orders that it plans.
func (r *replay) snapshot(area domain.Area) domain.Snapshot {
	s := domain.Snapshot{Time: r.now, ReadTime: r.now, Depot: area.Depots[0], Neighbours: area.Depots[1:], Warehouses: r.world.Warehouses}
	for _, d := range r.world.Depots {
		if !area.Has(d.ID) {
			s.Beyond = append(s.Beyond, d)
		}
	}
	s.Drones, s.Charging = r.idle(area), r.charging(area)
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
		d := r.drones[i].document
		if area.Has(d.HomeDepotID) && d.Status == domain.DroneIdle && !d.Bound() && r.reports().Fit(d, r.now) {
			idle = append(idle, d)
		}
	}
	return idle
}

// charging are the drones of an area that charge without a mission, if slots are limited.
func (r *replay) charging(area domain.Area) (charging []domain.Drone) {
	if !r.slots.Limited() {
		return nil
	}
	for i := range r.drones {
		if d := r.drones[i].document; area.Has(d.HomeDepotID) && d.Status == domain.DroneCharging {
			charging = append(charging, d)
		}
	}
	return charging
}

// inFlight are the drones of an area whose missions can be amended now, and those on their
// way home that can take the next one.
func (r *replay) inFlight(area domain.Area) (flights []domain.Flight) {
	for i := range r.drones {
		d := r.drones[i].document
		m, bound := r.missions[d.CurrentMissionID]
		if !bound || !area.Has(d.HomeDepotID) {
			continue
		}
		f := domain.Flight{Drone: d, Mission: m, ReachedAt: policy.LastReachedAt(m)}
		switch {
		case r.reports().Amendable(d, m, r.now):
			for _, id := range m.OrderIDs {
				if o := r.orders[id]; o.AssignedMissionID == m.ID && o.Status != domain.OrderDelivered {
					f.Orders = append(f.Orders, *o)
				}
			}
		case m.Status != domain.MissionCompleted || !d.SupportsAmendments || r.reports().CanAcceptMission(d, 0, r.now, r.now) != nil:
			continue
		}
		flights = append(flights, f)
	}
	return flights
}

// handOver gives what an area's cycle cannot serve in time to others that can, as the
// optimizer does at the end of a cycle. It returns how many orders.
func (r *replay) handOver(planned planner.Result, snap domain.Snapshot) int {
	candidates := planner.HandOverCandidatesOf(planned.Usable(), planned.Plan.Unserved, planned.Obstacles, snap, planned.Learned)
	e := planner.OtherAreas{Depots: candidates.Depots(), Waiting: map[domain.DepotID]int{}}
	if len(e.Depots) == 0 {
		return 0
	}
	there := domain.Area{Depots: e.Depots}
	e.Idle = r.idle(there)
	for i := range r.drones {
		if d := r.drones[i].document; candidates.NeedAllDrones() && there.Has(d.HomeDepotID) {
			e.All = append(e.All, d)
		}
	}
	for _, o := range r.pending {
		if o.Waits() {
			e.Waiting[o.PlanningDepotID]++
		}
	}
	list := candidates.HandOvers(e)
	areas := []domain.Area{{Depots: snap.Depots()}, there}
	by := domain.HandOvers{CycleID: snap.CycleID, DepotID: snap.Depot.ID}
	for _, h := range list {
		o := r.orders[h.OrderID]
		change, err := policy.HandOverOrder(o, areas, by, h, r.now)
		if err != nil {
			continue
		}
		*o = change.Orders[0]
	}
	return len(list)
}
