package policy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

// expectImplausible checks what was recorded of D1's claims.
func (w *world) expectImplausible(part string) {
	d := w.drones["D1"]
	w.expect(part == "" && d.Implausible == "" || part != "" && strings.Contains(d.Implausible, part), "recorded %q, want %q", d.Implausible, part)
}

// expectDelivered checks when an order was delivered.
func (w *world) expectDelivered(id domain.OrderID, when time.Time) {
	w.expectOrder(id, domain.OrderDelivered, false)
	w.expect(w.orders[id].DeliveredAt.Equal(when), "order %s was delivered at %s, want %s", id, w.orders[id].DeliveredAt, when)
}

// delivers has D1 deliver O1 after a minute.
func delivers(w *world) {
	w.counts(1, depotAt, 1)
	w.counts(30, warehouseAt, 2)
	w.counts(60, hospitalsAt[0], 3)
}

// boasts are stories of drones that claim more than they can have done. The warehouse is
// 2.2 km from the depot, and the hospital 2.2 km from there. F-SND-03
var boasts = []hazard{
	{"a drone at the depot that claims its stops proves none", func(w *world) {
		for s := 1.0; s < 60; s++ {
			w.counts(s, depotAt, 3)
		}
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.expectImplausible("claimed 3 stops of mission M-X; at most 1 were possible")
		w.counts(60, depotAt, 1)
		w.expectOrder("O1", domain.OrderAssigned, false)
	}},
	{"a drone that jumps to its stops proves none", func(w *world) {
		w.saysAt(1, depotAt, domain.DroneMoving, "M-X")
		w.saysAt(2, hospitalsAt[1], domain.DroneMoving, "M-X")
		w.expectImplausible("reported 6.7 km from where it was 1s before; at most 1.")
		w.saysAt(3, warehouseAt, domain.DroneMoving, "M-X") // nor from where it jumped to
		w.expectOrder("O1", domain.OrderAssigned, false)
		if d := w.drones["D1"]; d.Position != warehouseAt {
			w.violated("drone D1 is at %v; a report is applied, plausible or not", d.Position)
		}
		w.saysAt(30, warehouseAt, domain.DroneMoving, "M-X") // by now it can be there
		w.expectOrder("O1", domain.OrderInDelivery, false)
	}},
	{"a drone that uses up the error of its clock again with each report proves no stop early", func(w *world) {
		w.counts(1, depotAt, 1)
		w.counts(2, between(depotAt, warehouseAt, 0.5), 1)
		w.counts(3, warehouseAt, 2)
		w.expectImplausible("claimed 2 stops of mission M-X; at most 1 were possible")
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.counts(30, warehouseAt, 2)
		w.expectOrder("O1", domain.OrderInDelivery, false)
	}},
	{"a drone that was silent is judged by the time that it had", func(w *world) {
		w.counts(1, depotAt, 1)
		w.counts(50, hospitalsAt[0], 3)
		w.expectImplausible("")
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"a drone that was silent must have had time to come back", func(w *world) {
		w.counts(1, depotAt, 1)
		w.counts(50, depotAt, 3)
		w.expectImplausible("claimed 3 stops")
		w.expectOrder("O1", domain.OrderInDelivery, false) // the warehouse was possible
	}},
	{"what was possible before an implausible claim still counts", func(w *world) {
		w.counts(1, depotAt, 1)
		w.counts(30, warehouseAt, 2)
		w.expectImplausible("")
		w.counts(31, warehouseAt, 3)
		w.expectImplausible("claimed 3 stops of mission M-X; at most 2 were possible")
		w.expectOrder("O1", domain.OrderInDelivery, false)
		w.counts(60, hospitalsAt[0], 3)
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"a late report claims no more than the reports applied since allow", func(w *world) {
		w.counts(1, depotAt, 1)
		w.counts(10, depotAt, 1)
		w.clock(11)
		w.expectError(w.report(near(counted(report("D1", domain.DroneMoving, "M-X", at(9)), 3), hospitalsAt[0])), "")
		w.expectImplausible("claimed 3 stops")
		w.expectOrder("O1", domain.OrderAssigned, false)
	}},
	{"a late claim dates no delivery to before it was possible", func(w *world) {
		delivers(w)
		w.clock(61)
		w.expectError(w.report(near(counted(report("D1", domain.DroneMoving, "M-X", at(5)), 3), depotAt)), "")
		w.expectImplausible("claimed 3 stops of mission M-X; at most 1 were possible")
		w.expectDelivered("O1", at(60))
	}},
	{"a late claim about a mission that has ended dates no delivery to before it was possible", func(w *world) {
		delivers(w)
		w.clock(90)
		w.expectError(w.report(near(report("D1", domain.DroneIdle, "", w.now), depotAt)), "")
		_ = w.report(near(counted(report("D1", domain.DroneMoving, "M-X", at(5)), 3), depotAt))
		w.expectDelivered("O1", at(60))
	}},
	{"a late claim of what was possible dates a delivery", func(w *world) {
		delivers(w)
		w.clock(61)
		w.expectError(w.report(near(counted(report("D1", domain.DroneMoving, "M-X", at(55)), 3), hospitalsAt[0])), "")
		w.expectImplausible("")
		w.expectDelivered("O1", at(55))
	}},
	{"a claim about a mission that has ended needs the time for it", func(w *world) {
		w.counts(1, depotAt, 1)
		w.clock(10)
		w.expectError(w.report(near(report("D1", domain.DroneMaintenance, "", w.now), depotAt)), "") // it fails
		w.expectOrder("O1", domain.OrderPending, false)
		w.clock(20)
		_ = w.report(near(counted(report("D1", domain.DroneMoving, "M-X", w.now), 3), depotAt))
		w.expectOrder("O1", domain.OrderPending, false)
	}},
	{"implausible reports are recorded once a minute", func(w *world) {
		for s := 1.0; s < 130; s++ {
			w.counts(s, depotAt, 3)
		}
		if d := w.drones["D1"]; !d.ImplausibleAt.Equal(at(121)) {
			w.violated("recorded last at %s", d.ImplausibleAt)
		}
	}},
}

func TestPlausible_Boasts(t *testing.T) {
	for _, h := range boasts {
		t.Run(h.name, func(t *testing.T) {
			w := newWorld(configured(DefaultDronePolicy(), DefaultOrderPolicy(), DefaultMissionAssignmentPolicy()))
			w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
			w.expectOutcome(plan("X", "D1", "O1"), applied)
			h.story(w)
			if err := w.err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// F-SND-03: a claim that is made again proves no more, although the hospital is near the depot
// and the pickup is proven meanwhile.
func TestPlausible_AClaimMadeAgainProvesNoMore(t *testing.T) {
	nearDepot := domain.Position{Lat: depotAt.Lat, Lon: depotAt.Lon + 0.007} // half a kilometre
	farAway := domain.Position{Lat: depotAt.Lat + 5, Lon: depotAt.Lon}
	begin := func() *world {
		w := newWorld(configured(DefaultDronePolicy(), DefaultOrderPolicy(), DefaultMissionAssignmentPolicy()))
		o := openOrder("O1", 0)
		o.Delivery = nearDepot
		w.with(readyDrone("D1"), o)
		x := plan("X", "D1", "O1")
		x.Route[2].Position = nearDepot
		w.expectOutcome(x, applied)
		w.counts(1, depotAt, 1)
		return w
	}
	t.Run("of a mission that has ended", func(t *testing.T) {
		w := begin()
		w.clock(2)
		w.expectError(w.report(near(report("D1", domain.DroneMaintenance, "", w.now), depotAt)), "") // it fails
		for s := 32.0; s < 34; s++ {                                                                 // enough for the warehouse and back, not for the hospital as well
			w.clock(s)
			_ = w.report(near(counted(report("D1", domain.DroneMoving, "M-X", w.now), 3), depotAt))
			w.expectOrder("O1", domain.OrderPending, true)
		}
		if err := w.err(); err != nil {
			t.Error(err)
		}
	})
	t.Run("from where the drone cannot be", func(t *testing.T) {
		w := begin()
		for s := 20.0; s < 24; s++ { // enough for the warehouse
			w.counts(s, farAway, 3)
			w.expectOrder("O1", domain.OrderAssigned, false)
		}
		if err := w.err(); err != nil {
			t.Error(err)
		}
	})
}

// F-SND-03: no report of a drone that flies its route, at its top speed at most, is
// implausible: whatever of its reports is lost or late, and however its clock is set meanwhile
// within the error that is allowed.
func TestPlausible_HonestDronesNeverAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := DefaultDronePolicy()
		route := []domain.Waypoint{{Type: domain.WaypointDepotStart, Position: depotAt}}
		var ids []domain.OrderID
		orders := map[domain.OrderID]domain.Order{}
		anywhere := func() domain.Position {
			return domain.Position{Lat: depotAt.Lat + random.Float64()*0.1, Lon: depotAt.Lon + random.Float64()*0.1}
		}
		for i := range 1 + random.IntN(4) {
			o := openOrder(domain.OrderID(string(rune('A'+i))), 0)
			ids, orders[o.ID] = append(ids, o.ID), o
			route = append(route,
				domain.Waypoint{Type: domain.WaypointWarehousePickup, Position: anywhere(), OrderID: o.ID, WarehouseID: "WH"},
				domain.Waypoint{Type: domain.WaypointHospitalDelivery, Position: anywhere(), OrderID: o.ID})
		}
		route = append(route, domain.Waypoint{Type: domain.WaypointDepotReturn, Position: depotAt})
		drone := readyDrone("D1")
		change := MissionAssignmentPolicy{Limits: DefaultLimits()}.assign(DecisionState{Drone: &drone, Orders: orders},
			domain.Decision{ID: "X", DroneID: "D1", OrderIDs: ids, Route: route}, at(0))
		b := Binding{Drone: *change.Drone, Mission: &change.Missions[0], Orders: orders}
		// In every second flight the drone turns to another route after some stops.
		turns := len(route) + 1
		if random.IntN(2) == 0 {
			turns = 1 + random.IntN(len(route)-2)
			b.Mission.Amendment = &domain.Amendment{Revision: 2, Route: route, DecidedAt: at(0)}
			b.Mission.Route = slices.Clone(route)
			slices.Reverse(b.Mission.Route[turns : len(route)-1])
			b.Mission.CommandExpiresAt = at(1e6)
		}
		for _, o := range change.Orders {
			b.Orders[o.ID] = o
		}

		var reports []domain.Telemetry
		position, now, completed := depotAt, at(random.Float64()*20), 1
		clockError := func() time.Duration { return time.Duration((random.Float64()*2 - 1) * float64(p.ClockError)) }
		off := clockError()
		say := func() {
			n := completed
			m := near(report("D1", domain.DroneMoving, "M-X", now.Add(off)), position)
			m.CompletedStops, m.SupportsAmendments = &n, true
			if m.MissionRevision = 1; n >= turns {
				m.MissionRevision = 2
			}
			reports = append(reports, m)
		}
		say()
		for i, stop := range route[1:] {
			for speed := (0.2 + 0.8*random.Float64()) * p.TopSpeedKmh / 3.6; position != stop.Position; say() {
				dt := 0.5 + random.ExpFloat64()*5
				left := position.DistanceMetres(stop.Position)
				part := min(1, speed*dt/left)
				now = now.Add(time.Duration(max(dt*part, left*part/speed) * float64(time.Second)))
				if position = between(position, stop.Position, part); part == 1 {
					position, completed = stop.Position, i+2
				}
				if random.IntN(20) == 0 {
					off = clockError()
				}
			}
			now = now.Add(time.Duration(random.ExpFloat64() * 10 * float64(time.Second)))
		}
		last := len(reports) - 1
		landed := near(report("D1", domain.DroneIdle, "", reports[last].Timestamp.Add(time.Second)), depotAt)
		landed.SupportsAmendments = true
		reports = append(reports, landed)
		// Most arrive in order, some are lost or late. The drone has heard of its mission.
		lossy := random.Float64() * 0.9
		var order []int
		for i := range reports {
			if i == 0 || i >= last || random.Float64() > lossy {
				order = append(order, i)
			}
		}
		for range random.IntN(len(order)) {
			i := 1 + random.IntN(len(order)-1)
			j := min(len(order)-1, i+random.IntN(5))
			order[i], order[j] = order[j], order[i]
		}
		for _, i := range order {
			after, _, err := p.ApplyTelemetry(b, reports[i], reports[i].Timestamp.Add(time.Second))
			if err == nil {
				b = after
			}
			if b.Drone.Implausible != "" {
				t.Fatalf("report %d of %d: %s", i, len(reports), b.Drone.Implausible)
			}
		}
		if i := slices.Index(order, last); b.Mission.Status != domain.MissionCompleted {
			t.Fatalf("the mission is %s after the last report, the %dth that arrived, and %d of %d stops", b.Mission.Status, i, b.Mission.ReachedStops, len(route))
		}
		for i, m := range reports[:last] { // that came after the mission's end
			if n := p.possibleLate(b.Mission.Track, b.Mission, m); n < min(*m.CompletedStops, countedStops(*b.Mission)) {
				t.Fatalf("report %d of %d claims %d stops; %d of %d count as possible", i, last, *m.CompletedStops, n, len(route))
			}
		}
	})
}

// F-SND-03: a late report that is the first to name the route which its drone flies proves no more
// stops than the drone can have passed, and neither do the reports after it.
func TestPlausible_ALateBoastOfAnAmendedRoute(t *testing.T) {
	for name, ended := range map[string]bool{"of a mission under way": false, "of a mission that has ended": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(configured(DefaultDronePolicy(), DefaultOrderPolicy(), DefaultMissionAssignmentPolicy()))
			w.inFlight("O1")
			w.expectOutcome(amendment("Y", 1, 12, "O1", "O2"), applied)
			status := domain.OrderAssigned
			if w.hears(near(names(1, 14, 1), depotAt)); ended {
				w.clock(15)
				w.expectError(w.report(near(report("D1", domain.DroneMaintenance, "", w.now), depotAt)), "") // it fails
				status = domain.OrderPending
			}
			w.clock(16)
			_ = w.report(near(names(2, 13.5, 5), hospitalsAt[1]))
			for measured := 17.0; measured < 20; measured++ {
				w.clock(measured)
				_ = w.report(near(names(2, measured, 5), depotAt))
			}
			w.expectOrder("O1", status, false)
			w.expectOrder("O2", status, false)
			if err := w.err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// between is a part of the way from one position to another.
func between(a, b domain.Position, part float64) domain.Position {
	return domain.Position{Lat: a.Lat + (b.Lat-a.Lat)*part, Lon: a.Lon + (b.Lon-a.Lon)*part}
}
