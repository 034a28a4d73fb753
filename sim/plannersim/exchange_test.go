package plannersim_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/plannersim"
	"github.com/dronefleet/dronefleet/solver"
)

// lossy is a fleet whose reports and commands come late, out of order or not at all. Its
// State Manager is the policies of production over maps.
type lossy struct {
	t        *testing.T
	random   *rand.Rand
	now      time.Time
	lost     float64 // share of the messages
	world    *fleetsim.World
	homes    map[domain.DepotID]domain.Position
	flying   map[domain.DroneID]fleetsim.Drone
	drones   map[domain.DroneID]domain.Drone
	missions map[domain.MissionID]domain.Mission
	orders   map[domain.OrderID]domain.Order

	reports  []late[domain.Telemetry]
	commands []late[domain.Command]

	routes  map[string][]domain.Waypoint      // by mission and revision
	fetched map[domain.OrderID]domain.DroneID // in truth
	amended policyCounts

	standby     int                // decisions without orders
	fromStandby []domain.MissionID // missions that had no orders, and were given some
	withdrawn   int
}

type policyCounts struct{ released, letGo, void int }

// late is a message on its way.
type late[T any] struct {
	message T
	arrives time.Time
}

func newLossy(t *testing.T, s plannersim.Scenario, lost float64) (*lossy, []domain.Order) {
	t.Helper()
	w, orders, err := s.Day()
	if err != nil {
		t.Fatal(err)
	}
	l := &lossy{
		t: t, random: rand.New(rand.NewPCG(s.Seed, 4)), now: plannersim.Begin, lost: lost, world: w, homes: map[domain.DepotID]domain.Position{},
		flying: map[domain.DroneID]fleetsim.Drone{}, drones: map[domain.DroneID]domain.Drone{}, missions: map[domain.MissionID]domain.Mission{},
		orders: map[domain.OrderID]domain.Order{}, routes: map[string][]domain.Waypoint{}, fetched: map[domain.OrderID]domain.DroneID{},
	}
	for _, d := range w.Depots {
		l.homes[d.ID] = d.Position
	}
	for _, d := range w.Drones {
		l.flying[d.ID] = fleetsim.NewDrone(d, l.homes[d.HomeDepotID])
		l.commit(policy.SetupDrone(nil, d, l.now))
	}
	return l, orders
}

func (l *lossy) commit(c policy.Change) {
	if c.Drone != nil {
		l.drones[c.Drone.ID] = *c.Drone
	}
	for _, o := range c.Orders {
		if before := l.orders[o.ID]; before.Releasing && !o.Releasing && o.Status == domain.OrderPending {
			l.amended.letGo++
		}
		l.orders[o.ID] = o
	}
	for _, m := range c.Missions {
		if before := l.missions[m.ID]; before.Amendment != nil && m.Amendment == nil && m.RouteRevision == before.RouteRevision {
			l.amended.void++
		}
		if m.CommandPending || m.RevokePending { // the outbox
			command := m.Command()
			l.routes[revision(m.ID, command.Mission.RouteRevision)] = command.Mission.Route
			l.commands = send(l, l.commands, command)
			m.CommandPending, m.RevokePending = false, false
			m.CommandPublishedAt = l.now
		}
		l.missions[m.ID] = m
	}
}

func revision(m domain.MissionID, n int) string { return fmt.Sprint(m, "/", n) }

// send loses a message, or delays it by up to 12 seconds.
func send[T any](l *lossy, queue []late[T], message T) []late[T] {
	if l.random.Float64() < l.lost {
		return queue
	}
	return append(queue, late[T]{message, l.now.Add(time.Duration(l.random.Float64() * 12 * float64(time.Second)))})
}

// arrived takes the messages from a queue that arrive by now, in a random order.
func arrived[T any](l *lossy, queue *[]late[T]) (messages []T) {
	*queue = slices.DeleteFunc(*queue, func(m late[T]) bool {
		if m.arrives.After(l.now) {
			return false
		}
		messages = append(messages, m.message)
		return true
	})
	l.random.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	return messages
}

// step lets a second pass.
func (l *lossy) step() {
	l.now = l.now.Add(time.Second)
	for _, c := range arrived(l, &l.commands) {
		d := c.Mission.DroneID
		l.flying[d], _ = l.flying[d].Obey(c, l.now)
	}
	for _, id := range slices.Sorted(maps.Keys(l.flying)) {
		d, report := l.flying[id].After(time.Second).Report(l.now)
		l.flying[id] = d
		l.sees(report)
		l.reports = send(l, l.reports, report)
	}
	for _, report := range arrived(l, &l.reports) {
		_, change, err := policy.DefaultDronePolicy().ApplyTelemetry(l.binding(report.DroneID), report, l.now)
		if err == nil {
			l.commit(change)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.drones)) {
		l.commit(policy.DefaultDronePolicy().SweepBinding(l.binding(id), l.now))
	}
}

// sees notes what a drone has fetched in truth: no other drone may have fetched it.
func (l *lossy) sees(report domain.Telemetry) {
	if report.CompletedStops == nil {
		return
	}
	for _, stop := range l.routes[revision(report.MissionID, report.MissionRevision)][:*report.CompletedStops] {
		if stop.Type != domain.WaypointWarehousePickup {
			continue
		}
		if other, known := l.fetched[stop.OrderID]; known && other != report.DroneID {
			l.t.Fatalf("%s: order %s is fetched by drone %s, and was by %s", l.now.Sub(plannersim.Begin), stop.OrderID, report.DroneID, other)
		}
		l.fetched[stop.OrderID] = report.DroneID
	}
}

func (l *lossy) binding(id domain.DroneID) policy.Binding {
	b := policy.Binding{Drone: l.drones[id], Orders: map[domain.OrderID]domain.Order{}}
	if m, bound := l.missions[b.Drone.CurrentMissionID]; bound {
		b.Mission = &m
		for _, o := range m.OrderIDs {
			b.Orders[o] = l.orders[o]
		}
	}
	return b
}

func (l *lossy) snapshot(cycle int) domain.Snapshot {
	s := domain.Snapshot{
		CycleID: domain.CycleID(fmt.Sprint("C", cycle)), Time: l.now, ReadTime: l.now, Depot: l.world.Depots[0], Neighbours: l.world.Depots[1:], Warehouses: l.world.Warehouses,
	}
	rules := policy.DefaultDronePolicy()
	for _, id := range slices.Sorted(maps.Keys(l.drones)) {
		d := l.drones[id]
		m := l.missions[d.CurrentMissionID]
		switch {
		case d.Status == domain.DroneIdle && !d.Bound() && d.Battery > rules.MinBattery && l.now.Sub(d.SeenAt) <= rules.MaxSilence:
			s.Drones = append(s.Drones, d)
		case d.Bound() && rules.Amendable(d, m, l.now):
			f := domain.Flight{Drone: d, Mission: m, ReachedAt: policy.LastReachedAt(m)}
			for _, o := range m.OrderIDs {
				if l.orders[o].Status != domain.OrderDelivered {
					f.Orders = append(f.Orders, l.orders[o])
				}
			}
			s.Flights = append(s.Flights, f)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.orders)) {
		if o := l.orders[id]; o.Status == domain.OrderPending && !o.Held {
			s.Orders = append(s.Orders, o)
		}
	}
	return s
}

// decide judges a decision as the State Manager does.
func (l *lossy) decide(d domain.Decision) {
	drone := l.drones[d.DroneID]
	state := policy.DecisionState{Drone: &drone, Orders: map[domain.OrderID]domain.Order{}, Depots: l.world.Depots, Warehouses: map[domain.WarehouseID]domain.Warehouse{}}
	for _, w := range l.world.Warehouses {
		state.Warehouses[w.ID] = w
	}
	orders := d.OrderIDs
	if m, known := l.missions[d.AmendsMissionID]; known {
		state.Mission, orders = &m, append(slices.Clone(orders), m.OrderIDs...)
	}
	for _, id := range orders {
		state.Orders[id] = l.orders[id]
	}
	rules := policy.DefaultMissionAssignmentPolicy()
	rules.AllowUnfenced = true
	verdict, err := rules.AssignMission(state, d, policy.Delivery{}, l.now)
	if err != nil {
		l.t.Fatal(err)
	}
	l.amended.released += len(verdict.Entry.ReleasedIDs)
	if verdict.Entry.Outcome == domain.OutcomeApplied && len(d.OrderIDs) == 0 {
		l.standby++
	}
	if m, known := l.missions[d.AmendsMissionID]; known && m.Standby() && len(verdict.Entry.AddedIDs) > 0 {
		l.fromStandby = append(l.fromStandby, m.ID)
	}
	l.commit(verdict.Change)
}

// cancel cancels the only order of a mission that had none, if there is such a one that its
// drone has not fetched. The mission then fails as WITHDRAWN.
func (l *lossy) cancel() {
	for _, id := range l.fromStandby {
		m := l.missions[id]
		if m.Status != domain.MissionActive || len(m.OrderIDs) != 1 || m.Standby() {
			continue
		}
		o := l.orders[m.OrderIDs[0]]
		b := l.binding(m.DroneID)
		change, err := policy.DefaultOrderPolicy().IngestOrder(&o, &b, domain.OrderRequest{ID: o.ID, Cancel: true, OrderContent: domain.OrderContent{RequesterID: o.RequesterID}}, l.now, l.now)
		if err == nil && o.Status == domain.OrderAssigned {
			l.commit(change)
			l.withdrawn++
			return
		}
	}
}

// check fails if an order is lost, or on two missions under way.
func (l *lossy) check() {
	missions := map[domain.OrderID]domain.MissionID{}
	for _, m := range l.missions {
		if m.Status != domain.MissionActive {
			continue
		}
		for _, id := range m.OrderIDs {
			o := l.orders[id]
			if o.Status != domain.OrderAssigned && o.Status != domain.OrderInDelivery {
				continue
			}
			if other, twice := missions[id]; twice {
				l.t.Fatalf("%s: order %s is on missions %s and %s", l.now.Sub(plannersim.Begin), id, m.ID, other)
			}
			missions[id] = m.ID
		}
	}
	for id, o := range l.orders {
		waits := o.Status == domain.OrderPending && !o.Releasing
		if on := missions[id]; !waits && !o.Status.Final() && (on == "" || on != o.AssignedMissionID) {
			l.t.Fatalf("%s: order %s is %s of mission %q, and on mission %q", l.now.Sub(plannersim.Begin), id, o.Status, o.AssignedMissionID, on)
		}
	}
}

// F-AMD-03 F-AMD-04 F-AMD-06: whatever reports and commands are lost, delayed or out of order, an
// order that is exchanged is never on two drones, and none is lost: each is delivered in the
// end, or waits for an operator because a parcel may be aboard. Drones that wait are given
// orders meanwhile, and one whose only order is cancelled flies home and is sent again later.
func TestExchange_KeepsEveryOrderOnOneDrone(t *testing.T) {
	t.Parallel()
	var sum policyCounts
	withdrawn, served := 0, 0
	for _, c := range []struct{ seed, lost float64 }{{2, 0.2}, {3, 0.4}} {
		s := plannersim.Scenario{Duration: 70 * time.Minute, Quiet: 50 * time.Minute, Drones: 16, PerMinute: 4, Seed: uint64(c.seed)}
		l, orders := newLossy(t, s, c.lost)
		p := planner.New(planner.Config{
			Options: solver.Options{Iterations: 10, Workers: 1}, Params: solver.Params{PickupService: fleetsim.Dwell, DeliveryService: fleetsim.Dwell},
			Advance: true,
			Refused: func(_ solver.Problem, fault error) { t.Error(fault) },
		}, time.Now)
		for second := 0; l.now.Sub(plannersim.Begin) < s.Duration; second++ {
			for len(orders) > 0 && !orders[0].CreatedAt.After(l.now) {
				l.orders[orders[0].ID] = orders[0]
				orders = orders[1:]
			}
			if second%10 == 0 {
				snap := l.snapshot(second)
				result, err := p.PlanSnapshot(t.Context(), snap, l.now.Add(3*time.Second))
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range planner.DecisionsOf(result.Plan, snap) {
					l.decide(d)
				}
				if second%60 == 0 {
					l.cancel()
				}
			}
			if l.now.Sub(plannersim.Begin) > s.Duration-s.Quiet/2 {
				l.lost = 0 // so that every mission comes to its end
			}
			l.step()
			l.check()
		}
		delivered, held := 0, 0
		for _, o := range l.orders {
			switch {
			case o.Status == domain.OrderDelivered || o.Status == domain.OrderCancelled:
				delivered++
			case o.Held:
				held++
			default:
				t.Errorf("lost %v, seed %v: order %s is %s in the end", c.lost, c.seed, o.ID, o.Status)
			}
		}
		t.Logf("%d delivered, %d held, %+v, %d standby, %d of them served, %d withdrawn", delivered, held, l.amended, l.standby, len(l.fromStandby), l.withdrawn)
		withdrawn, served = withdrawn+l.withdrawn, served+len(l.fromStandby)
		if l.standby > 60 { // of at most 4 drones that wait for 15 minutes at a time, over 70
			t.Errorf("lost %v, seed %v: drones were sent %d times", c.lost, c.seed, l.standby)
		}
		sum.released, sum.letGo, sum.void = sum.released+l.amended.released, sum.letGo+l.amended.letGo, sum.void+l.amended.void
	}
	if sum.released < 5 || sum.letGo < 3 || sum.void < 1 || withdrawn < 2 || served < 5 {
		t.Errorf("too little to prove anything: %+v, %d withdrawn, %d waiting drones served", sum, withdrawn, served)
	}
}
