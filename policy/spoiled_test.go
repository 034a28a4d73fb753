package policy

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

// spoiler draws documents as an operator's edit or another version may leave them: each field
// has its type, and some make no sense or do not fit the others.
type spoiler struct {
	*rapid.T
	spoils int // one value in this many makes no sense; 0 for none
}

// oneIn is true once in n draws.
func (s spoiler) oneIn(n int, label string) bool { return rapid.IntRange(1, n).Draw(s.T, label) == n }

func (s spoiler) spoil(label string) bool { return s.spoils > 0 && s.oneIn(s.spoils, "spoil "+label) }

func (s spoiler) bool(label string) bool { return rapid.Bool().Draw(s.T, label) }

func pick[V any](s spoiler, label string, values ...V) V {
	return rapid.SampledFrom(values).Draw(s.T, label)
}

func (s spoiler) number(least, most float64, label string) float64 {
	if s.spoil(label) {
		return pick(s, label, math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e18, math.MaxFloat64)
	}
	return rapid.Float64Range(least, most).Draw(s.T, label)
}

// count is at least 0, as no document with another decodes.
func (s spoiler) count(most int, label string) int {
	if s.spoil(label) {
		return pick(s, label, most+1, most+100, math.MaxInt)
	}
	return rapid.IntRange(0, most).Draw(s.T, label)
}

// time is within some minutes of the day's start, and may be missing if zero is true.
func (s spoiler) time(zero bool, label string) time.Time {
	switch {
	case s.spoil(label):
		return pick(s, label, time.Time{}, time.Unix(0, 0), time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC), at(1e9))
	case zero && s.bool("no "+label):
		return time.Time{}
	}
	return at(float64(rapid.IntRange(-900, 60).Draw(s.T, label)))
}

func (s spoiler) point(label string) domain.Position {
	if s.spoil(label) {
		return domain.Position{Lat: s.number(-90, 90, label+" latitude"), Lon: s.number(-180, 180, label+" longitude")}
	}
	return pick(s, label, append(slices.Clone(hospitalsAt), depotAt, warehouseAt, awayAt)...)
}

func (s spoiler) orderID() domain.OrderID {
	return pick(s, "order id", domain.OrderID("O0"), "O1", "O2", "O3", "GONE", "")
}

func (s spoiler) orderIDs(label string) []domain.OrderID {
	ids := rapid.SliceOfN(rapid.SampledFrom([]domain.OrderID{"O0", "O1", "O2"}), 0, 3)
	if s.spoil(label) {
		return append(ids.Draw(s.T, label), s.orderID())
	}
	return slices.Compact(slices.Sorted(slices.Values(ids.Draw(s.T, label))))
}

func (s spoiler) missionID() domain.MissionID {
	return pick(s, "mission id", domain.MissionID("M1"), "M1", "M2", "M0", "")
}

func (s spoiler) drone() domain.Drone {
	d := readyDrone("D1")
	d.Status, d.ReportedStatus = pick(s, "drone status", domain.DroneStatuses...), pick(s, "reported status", domain.DroneStatuses...)
	if s.spoil("drone status") {
		d.Status = pick(s, "drone status", domain.DroneStatus(""), "FLYING")
	}
	d.Position, d.Battery, d.SpeedKmh = s.point("drone"), s.number(0, 100, "battery"), s.number(0, 80, "speed")
	d.LastUpdate, d.SeenAt = s.time(false, "updated"), s.time(false, "seen")
	d.CurrentMissionID = s.missionID()
	d.MissionAcked, d.MissionMoved, d.NamedRevision = s.bool("acked"), s.bool("moved"), s.count(3, "named revision")
	d.FreeAfter, d.IdleSince, d.FaultSince = s.time(true, "free after"), s.time(true, "idle since"), s.time(true, "fault since")
	d.Homebound, d.HomeboundSince, d.ParkedSince = s.bool("homebound"), s.time(true, "homebound since"), s.time(true, "parked since")
	d.EmergencyLatched, d.Grounded = s.oneIn(5, "latched"), s.oneIn(5, "grounded")
	d.SupportsAmendments, d.SupportsStandby = s.bool("amendments"), s.bool("standby")
	d.GhostMissionID, d.GhostRevokedAt = s.missionID(), s.time(true, "ghost revoked")
	for range s.count(5, "failed missions") % 7 {
		d.FailedMissions = append(d.FailedMissions, domain.FailedMission{ID: s.missionID(), FailedAt: s.time(true, "failed")})
	}
	d.PayloadCapacityKg, d.ConsumptionPerKm = s.number(0, 5, "capacity"), s.number(0, 3, "consumption")
	return d
}

func (s spoiler) order(id domain.OrderID) domain.Order {
	o := openOrder(id, int(id[1]))
	o.Status, o.Delivery = pick(s, "order status", domain.OrderStatuses...), s.point("delivery")
	if s.spoil("order status") {
		o.Status = pick(s, "order status", domain.OrderStatus(""), "LOST")
	}
	o.Priority, o.WeightKg = pick(s, "priority", 0, domain.PriorityStandard, domain.PriorityCritical), s.number(0, 2, "weight")
	o.CreatedAt, o.Deadline, o.PendingSince = s.time(true, "created"), s.time(true, "deadline"), s.time(true, "pending since")
	o.DeliveredAt, o.ContentPublishedAt = s.time(true, "delivered"), s.time(true, "published")
	o.Attempts, o.Held, o.Late, o.Releasing = s.count(3, "attempts"), s.oneIn(5, "held"), s.bool("late"), s.oneIn(5, "releasing")
	if s.oneIn(2, "assigned") {
		o.AssignedDroneID, o.AssignedMissionID = pick(s, "assigned drone", domain.DroneID("D1"), "D2", ""), s.missionID()
	}
	o.PinnedDroneID = pick(s, "pinned drone", "", "", domain.DroneID("D1"), "D2")
	o.PlanningDepotID = pick(s, "planning depot", domain.DepotID("DEPOT"), "GONE", "")
	return o
}

func (s spoiler) stop() domain.Waypoint {
	return domain.Waypoint{
		Type: pick(s, "type", append(slices.Clone(domain.WaypointTypes), "", "LOITER")...), Position: s.point("stop"), OrderID: s.orderID(),
		ETA: s.time(true, "eta"), ChargeToPercent: s.number(0, 100, "charge to"), WaitUntil: s.time(true, "wait until"),
	}
}

// route serves the orders, charges or waits, or is of any stops.
func (s spoiler) route(orders []domain.OrderID) []domain.Waypoint {
	var route []domain.Waypoint
	switch {
	case s.spoil("route"):
		for range rapid.IntRange(0, 5).Draw(s.T, "stops") {
			route = append(route, s.stop())
		}
	case s.oneIn(4, "standby"):
		route = append(route, domain.Waypoint{Type: domain.WaypointDepotStart, Position: depotAt},
			domain.Waypoint{Type: domain.WaypointCharge, Position: depotAt, ChargeToPercent: s.number(30, 100, "charge to")},
			domain.Waypoint{Type: domain.WaypointWait, Position: awayAt, WaitUntil: s.time(false, "wait until")})
	default:
		route = plan("", "", orders...).Route
	}
	if len(route) > 0 && s.spoil("lost stop") {
		i := rapid.IntRange(0, len(route)-1).Draw(s.T, "lost stop")
		route = slices.Delete(route, i, i+1)
	}
	return route
}

func (s spoiler) indexes(most int, label string) (list []int) {
	for range rapid.IntRange(0, 4).Draw(s.T, label) {
		list = append(list, s.count(most, label))
	}
	if !s.spoil(label) {
		list = slices.Compact(slices.Sorted(slices.Values(list)))
	}
	return list
}

func (s spoiler) mission(id domain.MissionID) domain.Mission {
	m := domain.Mission{
		ID: id, DroneID: pick(s, "mission's drone", domain.DroneID("D1"), "D1", "D1", "D2"), OrderIDs: s.orderIDs("orders of a mission"),
		Status: pick(s, "mission status", append(slices.Clone(domain.MissionStatuses), domain.MissionActive, domain.MissionActive)...), StartTime: s.time(false, "start"),
		EndTime: s.time(true, "end"), EstimatedBatteryConsumption: s.number(0, 60, "estimated consumption"), EstimatedDurationMinutes: s.number(0, 40, "estimated duration"),
		RouteRevision: s.count(3, "route revision"), AmendedAt: s.time(true, "amended"), RecalledAt: s.time(true, "recalled"),
		CommandPending: s.bool("command pending"), CommandExpiresAt: s.time(true, "command expires"), CommandPublishedAt: s.time(true, "command published"),
		RevokePending: s.oneIn(4, "revoke pending"), RevokePublishedAt: s.time(true, "revoke published"), Revision: int64(s.count(9, "revision")),
	}
	if s.spoil("mission status") {
		m.Status = pick(s, "mission status", domain.MissionStatus(""), "LOST")
	}
	m.Route = s.route(m.OrderIDs)
	m.ReachedStops = s.count(len(m.Route), "reached stops")
	for range rapid.IntRange(0, 4).Draw(s.T, "sightings") {
		m.Sightings = append(m.Sightings, domain.Sighting{Stop: s.count(len(m.Route), "sighted"), At: s.time(true, "sighted at"), Claimed: s.bool("claimed")})
	}
	m.DroppedStops = s.indexes(len(m.Route), "dropped")
	for range rapid.IntRange(0, domain.MaxEarlierRoutes+2).Draw(s.T, "earlier routes") {
		m.EarlierRoutes = append(m.EarlierRoutes, domain.EarlierRoute{Revision: s.count(3, "earlier revision"), Shared: s.count(len(m.Route), "shared")})
	}
	if s.oneIn(3, "amended") {
		added, released := s.orderIDs("added"), s.orderIDs("released")
		m.Amendment = &domain.Amendment{
			Revision: s.count(4, "amendment's revision"), Route: s.route(minus(append(slices.Clone(m.OrderIDs), added...), released)),
			DroppedStops: s.indexes(4, "amendment's dropped"), AddedIDs: added, ReleasedIDs: released,
			EstimatedDurationMinutes: s.number(0, 40, "amended duration"), DecidedAt: s.time(true, "decided"),
		}
	}
	return m
}

// telemetry is a report that decodes, in time or late.
func (s spoiler) telemetry() domain.Telemetry {
	t := domain.Telemetry{
		DroneID: "D1", Timestamp: at(float64(rapid.IntRange(-900, 60).Draw(s.T, "measured"))), Position: pick(s, "reported", append(slices.Clone(hospitalsAt), depotAt, warehouseAt, awayAt)...),
		Battery: rapid.Float64Range(0, 100).Draw(s.T, "reported battery"), SpeedKmh: 40, Status: pick(s, "claim", append(slices.Clone(domain.DroneStatuses), "")...),
		MissionID: s.missionID(), MissionRevision: rapid.IntRange(0, 4).Draw(s.T, "reported revision"), SupportsAmendments: s.bool("amendments"), SupportsStandby: s.bool("standby"),
	}
	if s.bool("counts stops") {
		n := rapid.IntRange(0, 8).Draw(s.T, "completed stops")
		t.CompletedStops = &n
	}
	return t
}

// decision is one that decodes: it may not fit what it is about.
func (s spoiler) decision() domain.Decision {
	d := domain.Decision{
		ID: "DEC", CycleID: "C", Fence: firstFence, DepotID: "DEPOT", SnapshotTime: at(float64(rapid.IntRange(-100, 10).Draw(s.T, "snapshot"))), DroneID: "D1",
		OrderIDs: s.orderIDs("decision's orders"), EstimatedBatteryConsumption: s.number(0, 60, "consumption"), EstimatedDurationMinutes: s.number(0, 40, "duration"),
	}
	d.Route = s.route(d.OrderIDs)
	if s.bool("amends") {
		d.AmendsMissionID, d.AmendsRevision = s.missionID(), rapid.IntRange(0, 3).Draw(s.T, "amends revision")
	}
	return d
}

// spoiled are documents of a drone, two of its missions and their orders.
type spoiled struct {
	drone    domain.Drone
	missions map[domain.MissionID]domain.Mission
	orders   map[domain.OrderID]domain.Order
}

func (s spoiler) documents() spoiled {
	f := spoiled{drone: s.drone(), missions: map[domain.MissionID]domain.Mission{}, orders: map[domain.OrderID]domain.Order{}}
	for _, id := range []domain.MissionID{"M1", "M2"} {
		f.missions[id] = s.mission(id)
	}
	for _, id := range []domain.OrderID{"O0", "O1", "O2"} {
		f.orders[id] = s.order(id)
	}
	return f
}

// ordersOf are those that the store reads with a mission: the ones that it lists.
func (f spoiled) ordersOf(m *domain.Mission) map[domain.OrderID]domain.Order {
	orders := map[domain.OrderID]domain.Order{}
	if m != nil {
		for _, id := range m.EveryOrder() {
			if o, known := f.orders[id]; known {
				orders[id] = o
			}
		}
	}
	return orders
}

func (f spoiled) mission(id domain.MissionID) *domain.Mission {
	if m, known := f.missions[id]; known {
		return &m
	}
	return nil
}

func (f spoiled) binding() Binding {
	m := f.mission(f.drone.CurrentMissionID)
	return Binding{Drone: f.drone, Mission: m, Orders: f.ordersOf(m)}
}

func (f spoiled) order(id domain.OrderID) *domain.Order {
	if o, known := f.orders[id]; known {
		return &o
	}
	return nil
}

// write stores a change as the store does.
func (f *spoiled) write(c Change) {
	if c.Drone != nil {
		f.drone = *c.Drone
	}
	for _, m := range c.Missions {
		f.missions[m.ID] = m
	}
	for _, o := range c.Orders {
		f.orders[o.ID] = o
	}
}

// happenings are what can happen to the documents.
var happenings = map[string]func(spoiler, spoiled, time.Time) (Change, error){
	"telemetry": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		_, change, err := DefaultDronePolicy().ApplyTelemetry(f.binding(), s.telemetry(), now)
		return change, err
	},
	"late telemetry": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		t := s.telemetry()
		t.MissionID = pick(s, "ended mission", domain.MissionID("M1"), "M2")
		m := f.missions[t.MissionID]
		e := Ended{Mission: m, Orders: f.ordersOf(&m)}
		if _, taken := e.TakenOver(t); taken && s.bool("other binding") {
			other := f.binding()
			e.Other = &other
		}
		return DefaultDronePolicy().ProveLate(e, t, now)
	},
	"decision": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		d, via := s.decision(), Delivery{MessageID: "1", PublishedAt: now, ReceivedAt: now}
		state := DecisionState{
			Fences: Fences{}, Issued: Fences{"DEPOT": firstFence}, Drone: &f.drone, Mission: f.mission(d.AmendsMissionID), Orders: f.orders,
			Depots: []domain.Depot{{ID: "DEPOT", Position: s.point("depot")}},
		}
		verdict, err := DefaultMissionAssignmentPolicy().AssignMission(state, d, via, now)
		return verdict.Change, err
	},
	"sweep of a binding": func(_ spoiler, f spoiled, now time.Time) (Change, error) {
		return DefaultDronePolicy().SweepBinding(f.binding(), now), nil
	},
	"sweep of a mission": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		m := f.missions[pick(s, "mission", domain.MissionID("M1"), "M2")]
		drone := &f.drone
		if s.bool("drone deleted") {
			drone = nil
		}
		return SweepUnflown(m, f.ordersOf(&m), drone, now), nil
	},
	"sweep of an idle drone": func(_ spoiler, f spoiled, now time.Time) (Change, error) {
		return DefaultDronePolicy().SweepIdle(f.drone, now), nil
	},
	"sweep of an order": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		o := f.orders["O1"]
		return SweepOrder(o, now).Merge(SweepPlanningDepot(o, []domain.Depot{{ID: "DEPOT", Position: s.point("depot")}}, now)), nil
	},
	"cancellation": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		id, binding := pick(s, "cancelled", slices.Sorted(maps.Keys(f.orders))...), f.binding()
		return DefaultOrderPolicy().IngestOrder(f.order(id), &binding, cancellation(id), now, now)
	},
	"request": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		id := pick(s, "requested", domain.OrderID("O0"), "O1", "O9")
		p := DefaultOrderPolicy()
		p.Depots = []domain.Depot{{ID: "DEPOT", Position: s.point("depot")}, {ID: "OTHER", Position: s.point("depot")}}
		return p.IngestOrder(f.order(id), nil, request(id, 1), now, now)
	},
	"recall": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		id := s.missionID()
		return RecallMission(f.binding(), f.mission(id), id, "why", now)
	},
	"command about a drone": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		command := pick(s, "command", ClearDrone, GroundDrone, ReleaseDrone)
		return command(&f.drone, f.drone.ID, "why", now)
	},
	"setup of a drone": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		return SetupDrone(&f.drone, s.drone(), now), nil
	},
	"command about an order": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		o, pin := f.order("O1"), Pin{Order: "O1", Drone: pick(s, "pin", domain.DroneID("D1"), "D2"), Why: "why"}
		return pick(s, "command", []func() (Change, error){
			func() (Change, error) { return HoldOrder(o, o.ID, "why", now) },
			func() (Change, error) { return ReleaseOrder(o, o.ID, "why", now) },
			func() (Change, error) {
				high, later := domain.PriorityHigh, now.Add(time.Hour)
				return DefaultOrderPolicy().ChangeOrder(o, o.ID, domain.OrderChange{Priority: &high, Deadline: &later, Delivery: &domain.Position{Lat: 1}}, "why", now)
			},
			func() (Change, error) { return PinOrder(o, true, pin, now) },
			func() (Change, error) { return UnpinOrder(o, o.ID, "why", now) },
			func() (Change, error) { return ForbidDrone(o, true, pin, now) },
			func() (Change, error) { return AllowDrone(o, pin, now) },
		}...)()
	},
	"hand-over": func(s spoiler, f spoiled, now time.Time) (Change, error) {
		areas := AreasOf([]domain.Depot{{ID: "DEPOT", Position: s.point("depot")}, {ID: "OTHER", Position: s.point("depot")}}, 5)
		return HandOverOrder(f.order("O1"), areas, domain.HandOvers{DepotID: "DEPOT", CycleID: "C"}, domain.HandOver{OrderID: "O1", From: "DEPOT", To: "OTHER"}, now)
	},
}

// F-TEL-06, F-TEL-11, F-ORD-04: whatever documents say, no policy panics, its error is a
// rejection, and what it writes decodes.
func TestPolicies_JudgeAnyDocuments(t *testing.T) {
	names := slices.Sorted(maps.Keys(happenings))
	rapid.Check(t, func(rt *rapid.T) {
		s := spoiler{rt, rapid.SampledFrom([]int{0, 5, 20, 100}).Draw(rt, "spoils")}
		f := s.documents()
		for i := range rapid.IntRange(1, 4).Draw(rt, "happenings") {
			name := rapid.SampledFrom(names).Draw(rt, "happening")
			change, err := happenings[name](s, f, at(float64(10*i)))
			if _, rejected := errors.AsType[*Rejection](err); err != nil && !rejected {
				rt.Fatalf("%s: %v, not a rejection", name, err)
			}
			for _, m := range change.Missions {
				if problem := undecodable(m); problem != "" {
					rt.Fatalf("%s leaves mission %s with %s", name, m.ID, problem)
				}
				domain.Mission.Command(m)
			}
			f.write(change)
			DefaultDronePolicy().Amendable(f.drone, f.missions["M1"], at(0))
			LastReachedAt(f.missions["M1"])
		}
	})
}

// flown is a drone on a mission of two orders, which an edit has changed.
func flown(edit func(*domain.Mission)) Binding {
	d := readyDrone("D1")
	d.Status, d.CurrentMissionID, d.MissionAcked = domain.DroneMoving, "M1", true
	m := domain.Mission{ID: "M1", DroneID: "D1", OrderIDs: []domain.OrderID{"O0", "O1"}, Route: plan("", "D1", "O0", "O1").Route, Status: domain.MissionActive, StartTime: at(-60)}
	edit(&m)
	b := Binding{Drone: d, Mission: &m, Orders: map[domain.OrderID]domain.Order{}}
	for i, id := range m.OrderIDs {
		o := openOrder(id, i)
		o.Status, o.AssignedDroneID, o.AssignedMissionID = domain.OrderAssigned, "D1", "M1"
		b.Orders[id] = o
	}
	return b
}

// F-TEL-12: a drone that counts its stops is heard though its mission lists a dropped stop twice.
func TestDronePolicy_TakesAStopThatIsDroppedTwice(t *testing.T) {
	b := flown(func(m *domain.Mission) { m.DroppedStops = []int{1, 1, 1} })
	r, completed := near(report("D1", domain.DroneMoving, "M1", at(1)), warehouseAt), 2
	r.CompletedStops = &completed
	after, _, err := DefaultDronePolicy().ApplyTelemetry(b, r, at(1))
	if err != nil || after.Mission.ReachedStops == 0 {
		t.Errorf("%+v, %v", after.Mission, err)
	}
}

// F-ORD-03: an order can be cancelled whose mission has more reached stops than stops.
func TestOrderPolicy_CancelsBehindTheLastStop(t *testing.T) {
	b := flown(func(m *domain.Mission) { m.ReachedStops = 99 })
	o := b.Orders["O0"]
	change, err := DefaultOrderPolicy().IngestOrder(&o, &b, cancellation("O0"), at(1), at(1))
	if err != nil || len(change.Missions) != 1 || len(change.Missions[0].OrderIDs) != 1 {
		t.Errorf("%+v, %v", change, err)
	}
}

// undecodable says which of the mission's indexes no document may have, "" if none.
func undecodable(m domain.Mission) string {
	dropped := m.DroppedStops
	if m.Amendment != nil {
		dropped = append(slices.Clone(dropped), m.Amendment.DroppedStops...)
	}
	negative := func(n int) bool { return n < 0 }
	switch {
	case m.ReachedStops < 0:
		return fmt.Sprintf("%d reached stops", m.ReachedStops)
	case slices.ContainsFunc(dropped, negative):
		return fmt.Sprintf("dropped stops %v", dropped)
	case slices.ContainsFunc(m.Sightings, func(x domain.Sighting) bool { return x.Stop < 0 }):
		return fmt.Sprintf("sightings %v", m.Sightings)
	case slices.ContainsFunc(m.EarlierRoutes, func(e domain.EarlierRoute) bool { return e.Shared < 0 }):
		return fmt.Sprintf("earlier routes %v", m.EarlierRoutes)
	}
	return ""
}
