package policy

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// A hazard is a story of messages that once led, or easily could lead, a fleet
// astray, with what must come of it.
type hazard struct {
	name  string
	story func(w *world)
}

func TestHazards(t *testing.T) {
	for _, h := range hazards {
		t.Run(h.name, func(t *testing.T) {
			if err := tell(contract(), h); err != nil {
				t.Error(err)
			}
		})
	}
}

func tell(r rules, h hazard) error {
	w := newWorld(r)
	h.story(w)
	return w.err()
}

// The words stories are told in.

func (w *world) clock(seconds float64) { w.now = at(seconds) }

// says delivers a report of D1 the moment it is measured.
func (w *world) says(seconds float64, status domain.DroneStatus, mission domain.MissionID) {
	w.clock(seconds)
	w.expectError(w.report(report("D1", status, mission, w.now)), "")
}

// saysAt delivers a report of D1 at a place the moment it is measured.
func (w *world) saysAt(seconds float64, p domain.Position, status domain.DroneStatus, mission domain.MissionID) {
	w.clock(seconds)
	w.expectError(w.report(near(report("D1", status, mission, w.now), p)), "")
}

func (w *world) expectError(err error, want Reason) {
	if got, _ := ReasonOf(err); got != want {
		w.violated("the answer is %q, not %q", got, want)
	}
}

func (w *world) expectOutcome(d domain.Decision, want string) {
	if got := w.decide(d); got != want {
		w.violated("decision %s came to %s, not %s", d.ID, got, want)
	}
}

func (w *world) expectDrone(id domain.DroneID, status domain.DroneStatus, mission domain.MissionID) {
	if d := w.drones[id]; d.Status != status || d.CurrentMissionID != mission {
		w.violated("drone %s is %s on %q, not %s on %q", id, d.Status, d.CurrentMissionID, status, mission)
	}
}

func (w *world) expectOrder(id domain.OrderID, status domain.OrderStatus, held bool) {
	if o := w.orders[id]; o.Status != status || o.Held != held {
		w.violated("order %s is %s, held %t, not %s, held %t", id, o.Status, o.Held, status, held)
	}
}

func (w *world) expectMission(id domain.MissionID, status domain.MissionStatus, reason domain.FailureReason) {
	if m := w.missions[id]; m.Status != status || m.FailureReason != reason {
		w.violated("mission %s is %s %s, not %s %s", id, m.Status, m.FailureReason, status, reason)
	}
}

const applied = string(domain.OutcomeApplied)

var hazards = []hazard{
	{"a drone that has not heard of a withdrawal counts both stops of the order", func(w *world) { // F-TEL-12 F-ORD-03
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		w.expectOutcome(plan("X", "D1", "O1", "O2"), applied)
		w.counts(5, awayAt, 1)
		w.expectError(w.request(cancellation("O1")), "")
		w.counts(40, hospitalsAt[0], 4) // depot, both pickups, and the first hospital
		w.expectOrder("O2", domain.OrderInDelivery, false)
		w.counts(60, awayAt, 5)
		w.expectOrder("O2", domain.OrderDelivered, false)
	}},
	{"a report measured before the drone knew its mission frees nothing", func(w *world) { // F-TEL-06 a, c
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(1, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneMoving, "M-X")
		for _, second := range []float64{24, 25} { // the command has expired, but clocks differ
			w.says(second, domain.DroneIdle, "")
			w.expectDrone("D1", domain.DroneMoving, "M-X")
		}
		d := plan("Y", "D1", "O2")
		d.SnapshotTime = at(24)
		w.expectOutcome(d, string(ReasonDroneNotIdle))
		w.expectMission("M-X", domain.MissionActive, "")
		w.expectOrder("O1", domain.OrderAssigned, false)
	}},
	{"a late report measured before the assignment frees nothing", func(w *world) { // F-TEL-06 c
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.clock(40)
		w.expectError(w.report(report("D1", domain.DroneIdle, "", at(-0.5))), "")
		w.expectDrone("D1", domain.DroneMoving, "M-X")
	}},
	{"no timer alone frees a drone", func(w *world) { // F-TEL-06 c
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.clock(60)
		w.sweep()
		w.expectDrone("D1", domain.DroneMoving, "M-X")
		w.says(61, domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionFailed, domain.FailureNotAcked)
		w.expectDrone("D1", domain.DroneIdle, "")
		w.expectOrder("O1", domain.OrderPending, false)
	}},
	{"a recalled mission that its drone never named keeps its orders while late reports may come", func(w *world) { // F-OPR-02 F-TEL-11
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.expectError(w.recallMission("M-X"), "")
		w.says(26, domain.DroneIdle, "") // the command has expired
		w.expectMission("M-X", domain.MissionActive, "")
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.says(56, domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionFailed, domain.FailureRecalled)
		w.expectOrder("O1", domain.OrderPending, false)
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"two overlapping cycles want one drone: the second is refused and its order served later", func(w *world) { // F-DEC-01, F-DEC-03
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1)) // T0 A reads, T1 B reads
		a, b := plan("A", "D1", "O1"), plan("B", "D1", "O2")
		a.Fence, b.Fence = "000000000000001", "000000000000002"
		w.clock(2)
		w.expectOutcome(a, applied) // T2 A commits
		w.clock(3)
		w.expectOutcome(b, string(ReasonDroneNotIdle)) // T3 B is refused
		w.expectOrder("O2", domain.OrderPending, false)
		w.expectMission("M-A", domain.MissionActive, "")
		w.says(4, domain.DroneMoving, "M-A") // T4 the drone flies A
		w.saysAt(100, warehouseAt, domain.DroneMoving, "M-A")
		w.saysAt(200, hospitalsAt[0], domain.DroneDelivering, "M-A")
		w.expectMission("M-A", domain.MissionCompleted, "")
		w.saysAt(400, depotAt, domain.DroneIdle, "") // T5 home again
		c := plan("C", "D1", "O2")                   // T6 the next cycle
		c.SnapshotTime, c.Fence = at(401), "000000000000003"
		w.clock(402)
		w.expectOutcome(c, applied) // T7
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.expectOrder("O2", domain.OrderAssigned, false)
	}},
	{"stale telemetry is dropped, equal timestamps too", func(w *world) { // F-TEL-02
		w.with(readyDrone("D1"))
		w.clock(2)
		w.expectError(w.report(report("D1", domain.DroneCharging, "", at(1))), "")
		w.expectError(w.report(report("D1", domain.DroneIdle, "", at(0))), ReasonStaleTelemetry)
		w.expectError(w.report(report("D1", domain.DroneIdle, "", at(1))), ReasonStaleTelemetry)
		w.expectDrone("D1", domain.DroneCharging, "")
	}},
	{"a report from the future would block the drone and is refused", func(w *world) { // F-TEL-03
		w.with(readyDrone("D1"))
		w.expectError(w.report(report("D1", domain.DroneCharging, "", at(5.001))), ReasonFutureTimestamp)
		w.expectError(w.report(report("D1", domain.DroneCharging, "", at(5))), "")
		w.clock(6)
		w.expectError(w.report(report("D1", domain.DroneIdle, "", at(6))), "")
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"an unknown drone is registered, and idle only by a fresh word", func(w *world) { // F-TEL-04
		w.clock(60)
		w.expectError(w.report(report("D1", domain.DroneIdle, "", at(40))), "") // waited out an outage
		w.expectDrone("D1", domain.DroneUnknown, "")
		w.says(61, domain.DroneMoving, "")
		w.expectDrone("D1", domain.DroneUnknown, "")
		w.says(62, domain.DroneProblem, "")
		w.expectDrone("D1", domain.DroneProblem, "")
		w.says(63, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"an order redelivered after its assignment changes nothing", func(w *world) { // F-ORD-02
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.expectError(w.request(request("O1", 0)), ReasonDuplicateOrder)
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.expectError(w.request(request("O1", 1)), ReasonOrderConflict)
		w.expectOrder("O1", domain.OrderAssigned, false)
	}},
	{"one bad order refuses the whole mission", func(w *world) { // F-DEC-03, I7
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O3", 2))
		w.expectError(w.request(cancellation("O3")), "")
		w.expectOutcome(plan("X", "D1", "O1", "O2"), string(ReasonOrderUnknown))
		w.expectOutcome(plan("Y", "D1", "O1", "O3"), string(ReasonOrderNotPending))
		w.expectDrone("D1", domain.DroneIdle, "")
		w.expectOrder("O1", domain.OrderPending, false)
	}},
	{"a cancellation that overtakes its order keeps it from coming alive", func(w *world) { // F-ORD-03
		w.expectError(w.request(cancellation("O1")), "")
		w.expectOrder("O1", domain.OrderCancelled, false)
		w.expectError(w.request(request("O1", 0)), ReasonAlreadyCancelled)
		w.expectError(w.request(cancellation("O1")), ReasonAlreadyCancelled)
		w.expectOrder("O1", domain.OrderCancelled, false)
	}},
	{"a cancellation after the pickup comes too late", func(w *world) { // F-ORD-03
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.expectError(w.request(cancellation("O1")), ReasonCancelTooLate)
		w.saysAt(90, hospitalsAt[0], domain.DroneDelivering, "M-X")
		w.expectError(w.request(cancellation("O1")), ReasonAlreadyDelivered)
		w.expectOrder("O1", domain.OrderDelivered, false)
	}},
	{"a withdrawn order leaves the route, the last one ends the mission", func(w *world) { // F-ORD-03
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		w.expectOutcome(plan("X", "D1", "O1", "O2"), applied)
		w.clock(10)
		w.expectError(w.request(cancellation("O2")), "")
		m := w.missions["M-X"]
		w.expect(len(m.OrderIDs) == 1 && len(m.Route) == 4, "the route still has %d stops for %v", len(m.Route), m.OrderIDs)
		w.expect(m.CommandPublishedAt.IsZero() && m.CommandExpiresAt.Equal(at(30)), "the drone is not owed the shorter route")
		w.expect(w.drones["D1"].FreeAfter.Equal(at(35)), "the new command may expire unseen at %s", w.drones["D1"].FreeAfter)
		w.clock(12)
		w.expectError(w.request(cancellation("O1")), "")
		w.expectMission("M-X", domain.MissionFailed, domain.FailureWithdrawn)
		w.expect(w.missions["M-X"].RevokePending && !w.missions["M-X"].CommandPending, "what is owed is not the revocation alone") // F-DEC-05
		w.expectDrone("D1", domain.DroneMoving, "")
		w.says(13, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"withdrawing the last open stop completes a mission and sends the drone home", func(w *world) { // F-ORD-03
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		d := plan("X", "D1", "O1", "O2") // first O1 alone, then O2
		d.Route[2], d.Route[3] = d.Route[3], d.Route[2]
		w.expectOutcome(d, applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.saysAt(90, hospitalsAt[0], domain.DroneDelivering, "M-X")
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.publish("M-X")
		w.expectError(w.request(cancellation("O2")), "")
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.expectDrone("D1", domain.DroneDelivering, "M-X")
		m := w.missions["M-X"]
		w.expect(m.CommandPending && m.CommandPublishedAt.IsZero(), "the drone is not told to fly home") // F-DEC-05
		w.saysAt(95, hospitalsAt[0], domain.DroneMoving, "M-X")
		w.clock(m.CommandExpiresAt.Sub(start).Seconds())
		w.sweep()
		w.expect(w.missions["M-X"].CommandExpiresAt.Equal(m.CommandExpiresAt), "the command was dated anew before it expired")
		w.clock(w.now.Sub(start).Seconds() + 0.001)
		w.sweep()
		w.expect(w.missions["M-X"].CommandExpiresAt.Equal(w.now.Add(20*time.Second)), "the command that expired unsent stays as it is")
		w.publish("M-X")
		w.clock(w.now.Sub(start).Seconds() + 21)
		w.sweep()
		w.expect(w.missions["M-X"].CommandExpiresAt.Equal(w.now.Add(-time.Second)), "the command was dated anew after it was sent")
	}},
	{"a shorter route expires after the longer one, by whatever clock", func(w *world) { // F-DEC-05
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		w.expectOutcome(plan("X", "D1", "O1", "O2"), applied)
		long := w.missions["M-X"].CommandExpiresAt
		w.clock(-3) // another server's
		w.expectError(w.request(cancellation("O2")), "")
		m := w.missions["M-X"]
		w.expect(m.CommandExpiresAt.After(long) && w.drones["D1"].FreeAfter.Equal(m.CommandExpiresAt.Add(5*time.Second)),
			"the shorter route expires %s, the longer %s, the drone is free after %s", m.CommandExpiresAt, long, w.drones["D1"].FreeAfter)
	}},
	{"a drone that flies a withdrawn mission while another holds it is a ghost", func(w *world) { // F-TEL-10
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.clock(2)
		w.expectError(w.request(cancellation("O1")), "")
		w.says(3, domain.DroneIdle, "")
		d := plan("Y", "D1", "O2")
		d.SnapshotTime = at(4)
		w.clock(5)
		w.expectOutcome(d, applied)
		w.says(6, domain.DroneMoving, "M-X") // the first command arrived after all
		w.expect(w.drones["D1"].GhostMissionID == "M-X", "the ghost is not flagged")
		w.expect(len(w.revokes) == 1 && w.revokes[0] == "M-X", "revocations sent again: %v", w.revokes)
		w.expectDrone("D1", domain.DroneMoving, "M-Y")
		w.says(7, domain.DroneMoving, "M-X")
		w.expect(len(w.revokes) == 1, "a ghost is told again within 10 s")
		w.says(17, domain.DroneMoving, "M-Y")
		w.expect(w.drones["D1"].GhostMissionID == "", "it is a ghost no more")
	}},
	{"a ghost that lands is not offered before it has understood", func(w *world) { // F-TEL-06 e, F-TEL-10
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(5, domain.DroneMoving, "M-X")
		w.clock(126)
		w.sweep()
		w.expectMission("M-X", domain.MissionFailed, domain.FailureContactLost) // F-TEL-09
		w.expectDrone("D1", domain.DroneUnknown, "")
		w.says(130, domain.DroneMoving, "M-X")
		w.expect(w.drones["D1"].GhostMissionID == "M-X" && len(w.revokes) == 1, "the ghost is not told")
		w.says(156, domain.DroneIdle, "M-X") // 30 s after the failure, not later
		w.expectDrone("D1", domain.DroneMoving, "")
		w.says(156.5, domain.DroneIdle, "M-X")
		w.expectDrone("D1", domain.DroneIdle, "")
		w.expect(w.drones["D1"].GhostMissionID == "", "the flag stays")
	}},
	{"a drone that names a mission it just failed is not idle for it", func(w *world) { // F-TEL-06 e
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.clock(2)
		w.expectError(w.request(cancellation("O1")), "")
		w.says(3, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneIdle, "")
		w.says(4, domain.DroneIdle, "M-X") // the command came late, it sits on the pad with it
		w.expectDrone("D1", domain.DroneUnknown, "")
		w.says(5, "", "M-X")
		w.expectDrone("D1", domain.DroneUnknown, "")
		w.says(6, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneIdle, "")
		w.says(7, "", "M-X") // no claim, but the name is enough to doubt
		w.expectDrone("D1", domain.DroneUnknown, "")
	}},
	{"naming an older failure while unacked does not make it idle", func(w *world) { // F-TEL-06 c, e
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.clock(1)
		w.expectError(w.request(cancellation("O1")), "")
		w.says(2, domain.DroneIdle, "")
		d := plan("Y", "D1", "O2")
		d.SnapshotTime = at(3)
		w.clock(4)
		w.expectOutcome(d, applied)
		w.says(30, domain.DroneIdle, "M-X") // after Y's 25 s, within X's 30 s
		w.expectMission("M-Y", domain.MissionFailed, domain.FailureNotAcked)
		w.expectDrone("D1", domain.DroneUnknown, "")
	}},
	{"an acked drone that parks unfinished aborts, its parcel waits for an operator", func(w *world) { // F-TEL-06 d, F-ORD-04
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		d := plan("X", "D1", "O1", "O2")
		d.Route[2], d.Route[3] = d.Route[3], d.Route[2]
		w.expectOutcome(d, applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.says(70, domain.DroneCharging, "")
		w.expectMission("M-X", domain.MissionActive, "") // a late report may prove the rest: F-TEL-11
		w.says(100, domain.DroneCharging, "")
		w.expectMission("M-X", domain.MissionFailed, domain.FailureAbortedByDrone)
		w.expectDrone("D1", domain.DroneCharging, "")
		w.expectOrder("O1", domain.OrderPending, true)
		w.expectOrder("O2", domain.OrderPending, false)
		w.expectError(w.releaseOrder("O1"), "")
		w.expectOrder("O1", domain.OrderPending, false)
	}},
	{"the report that ends a mission may reach its last stop", func(w *world) { // F-TEL-07
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.saysAt(90, hospitalsAt[0], domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"a route may end where the last parcel goes", func(w *world) { // F-TEL-07
		w.with(readyDrone("D1"), openOrder("O1", 0))
		d := plan("X", "D1", "O1")
		d.Route = d.Route[:3]
		w.expectOutcome(d, applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.saysAt(90, hospitalsAt[0], domain.DroneDelivering, "M-X")
		w.expectMission("M-X", domain.MissionCompleted, "")
	}},
	{"a drone remembers its latest failures only", func(w *world) { // F-TEL-06 e
		w.with(readyDrone("D1"))
		for i, id := range []domain.DecisionID{"A", "B", "C", "D", "E"} {
			t, order := float64(i)*30, domain.OrderID("O-"+id)
			w.says(t, domain.DroneIdle, "")
			w.with(openOrder(order, 0))
			d := plan(id, "D1", order)
			d.SnapshotTime = at(t + 1)
			w.clock(t + 2)
			w.expectOutcome(d, applied)
			w.says(t+29, domain.DroneIdle, "")
		}
		f := w.drones["D1"].FailedMissions
		w.expect(len(f) == 4 && f[0].ID == "M-B" && f[3].ID == "M-E" && f[3].FailedAt.Equal(at(149)), "it remembers %v", f)
	}},
	{"idle while naming the mission keeps it until it has moved and is done", func(w *world) { // F-TEL-06 d
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(5, domain.DroneIdle, "M-X")
		w.expectDrone("D1", domain.DroneMoving, "M-X")
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.says(70, domain.DroneIdle, "M-X") // hovers
		w.expectDrone("D1", domain.DroneMoving, "M-X")
		w.saysAt(90, hospitalsAt[0], domain.DroneDelivering, "M-X")
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.expectDrone("D1", domain.DroneDelivering, "M-X")
		w.saysAt(120, depotAt, domain.DroneIdle, "M-X")
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"idle on the spot does not end a mission the drone never flew", func(w *world) { // F-TEL-06 d
		o := openOrder("O1", 0)
		o.Pickup, o.Delivery = &depotAt, depotAt
		w.with(readyDrone("D1"), o)
		d := plan("X", "D1", "O1")
		for i := range d.Route {
			d.Route[i].Position = depotAt
		}
		w.expectOutcome(d, applied)
		w.saysAt(5, depotAt, domain.DroneIdle, "M-X")
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.expectDrone("D1", domain.DroneMoving, "M-X")
	}},
	{"stops are reached in route order only", func(w *world) { // F-TEL-07
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(30, hospitalsAt[0], domain.DroneMoving, "M-X")
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.saysAt(40, domain.Position{Lat: warehouseAt.Lat + 0.00068, Lon: warehouseAt.Lon}, domain.DroneMoving, "M-X") // 75.6 m
		w.expectOrder("O1", domain.OrderAssigned, false)
		w.saysAt(50, domain.Position{Lat: warehouseAt.Lat + 0.00067, Lon: warehouseAt.Lon}, domain.DroneMoving, "M-X") // 74.5 m
		w.expectOrder("O1", domain.OrderInDelivery, false)
	}},
	{"an unacked drone reaches no stop", func(w *world) { // F-TEL-07
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(5, warehouseAt, domain.DroneMoving, "")
		w.expectOrder("O1", domain.OrderAssigned, false)
	}},
	{"a drone that flies for somebody else reaches no stop of its mission", func(w *world) { // F-TEL-07
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(5, domain.DroneMoving, "M-X")
		for i, mission := range []domain.MissionID{"M-replaced", ""} {
			w.saysAt(float64(60+i), warehouseAt, domain.DroneMoving, mission)
			w.expectOrder("O1", domain.OrderAssigned, false)
		}
		w.saysAt(70, warehouseAt, domain.DroneMoving, "M-X")
		w.expectOrder("O1", domain.OrderInDelivery, false)
	}},
	{"a drone that arrives with an empty battery has arrived", func(w *world) { // F-TEL-05, F-TEL-07
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.clock(90)
		w.expectError(w.report(charged(near(report("D1", domain.DroneDelivering, "M-X", w.now), hospitalsAt[0]), 4)), "")
		w.expectOrder("O1", domain.OrderDelivered, false)
		w.expectMission("M-X", domain.MissionCompleted, "")
	}},
	{"three failures hold an order, a release gives it all its attempts again", func(w *world) { // F-ORD-04
		w.with(readyDrone("D1"), openOrder("O1", 0))
		for i, id := range []domain.DecisionID{"X", "Y", "Z"} {
			t := float64(i) * 100
			w.says(t, domain.DroneIdle, "")
			d := plan(id, "D1", "O1")
			d.SnapshotTime = at(t + 1)
			w.clock(t + 2)
			w.expectOutcome(d, applied)
			w.says(t+60, domain.DroneIdle, "")
			w.expectOrder("O1", domain.OrderPending, i == 2)
			w.expect(w.orders["O1"].Attempts == i+1, "%d attempts", w.orders["O1"].Attempts)
		}
		d := plan("V", "D1", "O1")
		d.SnapshotTime = at(261)
		w.clock(262)
		w.expectOutcome(d, string(ReasonOrderHeld))
		w.expectError(w.releaseOrder("O1"), "")
		w.expect(w.orders["O1"].Attempts == 0, "%d attempts", w.orders["O1"].Attempts)
		d = plan("U", "D1", "O1")
		d.SnapshotTime = at(261)
		w.expectOutcome(d, string(ReasonOrderChanged)) // its snapshot saw the order held
	}},
	{"an equal fence passes, a lower is rejected, a higher is stored", func(w *world) { // F-DEC-02, I5
		w.with(readyDrone("D1"), readyDrone("D2"), readyDrone("D3"), readyDrone("D4"))
		for i, id := range []domain.OrderID{"O1", "O2", "O3", "O4"} {
			w.with(openOrder(id, i))
		}
		fenced := func(id domain.DecisionID, drone domain.DroneID, order domain.OrderID, fence string) domain.Decision {
			d := plan(id, drone, order)
			d.Fence = fence
			return d
		}
		w.expectOutcome(fenced("A", "D1", "O1", "000000000000009"), applied)
		w.expect(w.fences["DEPOT"] == "000000000000009", "stored %q", w.fences["DEPOT"])
		w.expectOutcome(fenced("B", "D2", "O2", "000000000000008"), string(ReasonStaleFence))
		w.expectOutcome(fenced("C", "D2", "O2", "000000000000009"), applied)
		w.expectOutcome(fenced("D", "D3", "O3", "000000000000010"), applied)
		w.expect(w.fences["DEPOT"] == "000000000000010", "stored %q", w.fences["DEPOT"])
		w.expectOutcome(fenced("E", "D4", "O4", ""), string(ReasonFenceMissing)) // made outside any cycle
	}},
	{"a forged fence is refused, and the next real decision is applied", func(w *world) { // F-DEC-07, I5
		w.with(readyDrone("D1"), readyDrone("D2"), openOrder("O1", 0), openOrder("O2", 1))
		w.issued["DEPOT"] = "000000000000041"
		w.expectOutcome(plan("A", "D1", "O1"), applied)
		forged := plan("FORGED", "D2", "O2")
		forged.Fence = "999999999999999"
		w.expectOutcome(forged, string(ReasonFenceUnknown))
		w.expect(w.fences["DEPOT"] == firstFence, "stored %q", w.fences["DEPOT"])
		next := plan("B", "D2", "O2")
		next.Fence = "000000000000042"
		w.expectOutcome(next, string(ReasonFenceUnknown)) // a guess is no better
		w.issued["DEPOT"] = next.Fence
		next.ID = "C"
		w.expectOutcome(next, applied)
	}},
	{"a forged fence that was applied once holds nobody up", func(w *world) { // F-DEC-07
		w.with(readyDrone("D1"), readyDrone("D2"), openOrder("O1", 0), openOrder("O2", 1))
		w.issued["DEPOT"], w.fences["DEPOT"] = "000000000000042", "999999999999999"
		again := plan("FORGED", "D1", "O1")
		again.Fence = w.fences["DEPOT"]
		s := w.decisionState(again)
		s.Issued = w.issued
		v, err := w.assign(s, again, Delivery{}, w.now)
		w.expect(err == nil && v.Entry.Reason == string(ReasonFenceUnknown), "%v %+v", err, v.Entry)
		real := plan("A", "D1", "O1")
		real.Fence = "000000000000042"
		v, err = w.assign(w.decisionState(real), real, Delivery{}, w.now)
		w.expect(err == nil && v.Entry.Outcome == domain.OutcomeApplied && v.Fence == real.Fence && v.Lowers, "%v %+v", err, v)
		late := plan("B", "D2", "O2")
		late.Fence = "000000000000041"
		v, err = w.assign(w.decisionState(late), late, Delivery{}, w.now)
		w.expect(err == nil && v.Entry.Reason == string(ReasonStaleFence), "%v %+v", err, v.Entry)
	}},
	{"fences of 15 and 19 digits compare by value", func(w *world) { // F-DEC-02, L-FENCE-05
		w.with(readyDrone("D1"), readyDrone("D2"), openOrder("O1", 0), openOrder("O2", 1))
		old, next := plan("A", "D1", "O1"), plan("B", "D2", "O2")
		old.Fence, next.Fence = "0000000000000000041", "000000000000042"
		w.expectOutcome(old, applied)
		w.expectOutcome(next, applied)
		w.expect(w.fences["DEPOT"] == next.Fence, "stored %q", w.fences["DEPOT"])
		late := plan("C", "D2", "O2")
		late.Fence = "0000000000000000040"
		w.expectOutcome(late, string(ReasonStaleFence))
		wide := plan("D", "D2", "O2")
		wide.Fence = "0000000000000000042" // equal: judged on, and nothing to store
		w.expectOutcome(wide, string(ReasonDroneNotIdle))
	}},
	{"each depot has a fence of its own", func(w *world) { // F-OPT-01
		elsewhere := readyDrone("D2")
		elsewhere.HomeDepotID = "DEPOT-2"
		w.with(readyDrone("D1"), elsewhere, openOrder("O1", 0), openOrder("O2", 1))
		a, b := plan("A", "D1", "O1"), plan("B", "D2", "O2")
		w.issued["DEPOT"] = "000000000000900"
		a.Fence, b.Fence = "000000000000900", "000000000000001"
		w.expectOutcome(a, applied)
		v, err := w.assign(w.decisionState(b), b, Delivery{}, w.now)
		w.expect(err == nil && v.Entry.Outcome == domain.OutcomeApplied && v.Depot == "DEPOT-2" && v.Fence == b.Fence, "%v %+v", err, v.Entry)
	}},
	{"a fence is of the depot that decided, wherever the drone is at home by now", func(w *world) { // F-OPT-01, F-DEC-02
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.fences["DEPOT"] = "000000000000900"
		d := plan("A", "D1", "O1")
		d.DepotID, d.Fence = "DEPOT-2", "000000000000001"
		v, err := w.assign(w.decisionState(d), d, Delivery{}, w.now)
		w.expect(err == nil && v.Entry.Outcome == domain.OutcomeApplied && v.Depot == "DEPOT-2" && v.Fence == d.Fence && v.Entry.DepotID == d.DepotID, "%v %+v", err, v.Entry)
		w.fences["DEPOT-2"], w.issued["DEPOT-2"] = "000000000000002", "000000000000002"
		d.DroneID = "GONE"
		w.expectOutcome(d, string(ReasonStaleFence))
	}},
	{"a decision redelivered replays its outcome, another under its id is a conflict", func(w *world) { // F-DEC-02, F-DEC-04, I6
		w.with(readyDrone("D1"), openOrder("O1", 0))
		d := plan("X", "D1", "O1")
		w.expectOutcome(d, applied)
		w.clock(600) // long after it would have expired
		w.expectOutcome(d, applied)
		d.PayloadHash = "another"
		w.expectOutcome(d, string(ReasonDecisionConflict))
		refused := plan("Y", "D9", "O1")
		w.expectOutcome(refused, string(ReasonDecisionExpired))
		w.with(readyDrone("D9"))
		w.expectOutcome(refused, string(ReasonDecisionExpired))
	}},
	{"a snapshot from the future is as old as its message", func(w *world) { // F-DEC-02
		d := readyDrone("D1")
		d.IdleSince = at(100)
		d.SeenAt = at(159)
		w.with(d, openOrder("O1", 0))
		w.clock(160)
		ahead := plan("X", "D1", "O1")
		ahead.SnapshotTime = at(3600)
		s := w.decisionState(ahead)
		v, _ := w.assign(s, ahead, Delivery{PublishedAt: at(30)}, w.now)
		w.expect(v.Entry.Reason == string(ReasonDecisionExpired), "published 130 s ago: %q", v.Entry.Reason)
		v, _ = w.assign(s, ahead, Delivery{PublishedAt: at(90)}, w.now)
		w.expect(v.Entry.Reason == string(ReasonDroneChanged), "published before the drone came back: %q", v.Entry.Reason)
		v, _ = w.assign(s, ahead, Delivery{PublishedAt: at(150)}, w.now)
		w.expect(v.Entry.Outcome == domain.OutcomeApplied, "%q", v.Entry.Reason)
	}},
	{"a reported emergency stays until an operator clears it, an empty battery does not", func(w *world) { // F-TEL-05, F-TEL-08
		w.with(readyDrone("D1"))
		w.clock(1)
		w.expectError(w.report(charged(report("D1", domain.DroneIdle, "", at(0.5)), 5)), "")
		w.expectDrone("D1", domain.DroneIdle, "")
		w.expectError(w.report(charged(report("D1", domain.DroneIdle, "", at(1)), 4.9)), "")
		w.expectDrone("D1", domain.DroneEmergency, "")
		w.says(2, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneIdle, "")
		w.says(3, domain.DroneEmergency, "")
		w.says(4, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneEmergency, "")
		w.expectError(w.clearDrone("D1"), "")
		w.expectDrone("D1", domain.DroneUnknown, "")
		w.says(5, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneIdle, "")
		w.expectError(w.clearDrone("D1"), ReasonNotEmergency)
	}},
	{"a grounded drone finishes its mission and gets no other until it is released", func(w *world) { // F-OPR-01
		w.with(readyDrone("D1"), openOrder("O1", 0), openOrder("O2", 1))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.expectError(w.groundDrone("D1"), "")
		w.expectError(w.groundDrone("D1"), ReasonAlreadyGrounded)
		w.saysAt(5, warehouseAt, domain.DroneMoving, "M-X")
		w.saysAt(10, hospitalsAt[0], domain.DroneMoving, "M-X")
		w.expectMission("M-X", domain.MissionCompleted, "")
		w.says(20, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneIdle, "")
		w.expectOutcome(plan("Y", "D1", "O2"), string(ReasonDroneGrounded))
		w.expectError(w.releaseDrone("D1"), "")
		w.expectError(w.releaseDrone("D1"), ReasonNotGrounded)
		later := plan("Z", "D1", "O2")
		later.SnapshotTime = w.now
		w.expectOutcome(later, applied)
	}},
	{"an acked drone may recover from a fault within 30 s", func(w *world) { // F-TEL-08
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(5, domain.DroneMoving, "M-X")
		w.says(10, domain.DroneProblem, "M-X")
		w.expectDrone("D1", domain.DroneProblem, "M-X")
		w.says(39, domain.DroneMoving, "M-X")
		w.expectDrone("D1", domain.DroneMoving, "M-X")
		w.says(40, domain.DroneProblem, "M-X")
		w.says(69.9, domain.DroneProblem, "M-X")
		w.expectMission("M-X", domain.MissionActive, "")
		w.says(70, domain.DroneProblem, "M-X")
		w.expectMission("M-X", domain.MissionFailed, domain.FailureDroneFault)
		w.expectDrone("D1", domain.DroneProblem, "")
	}},
	{"a fault that goes quiet fails the mission by the sweeper", func(w *world) { // F-TEL-08, F-TEL-09
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(5, domain.DroneMoving, "M-X")
		w.says(10, domain.DroneEmergency, "M-X")
		w.clock(44.9)
		w.sweep()
		w.expectMission("M-X", domain.MissionActive, "")
		w.clock(45)
		w.sweep()
		w.expectMission("M-X", domain.MissionFailed, domain.FailureDroneFault)
		w.expectDrone("D1", domain.DroneEmergency, "")
	}},
	{"clearing an emergency gives the mission its grace anew", func(w *world) { // F-TEL-08
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(5, domain.DroneMoving, "M-X")
		w.says(10, domain.DroneEmergency, "M-X")
		w.clock(30)
		w.expectError(w.clearDrone("D1"), "")
		w.expectDrone("D1", domain.DroneMoving, "M-X")
		w.clock(60)
		w.sweep()
		w.expectMission("M-X", domain.MissionActive, "")
	}},
	{"a problem with an empty battery is an emergency", func(w *world) { // F-TEL-05
		w.with(readyDrone("D1"))
		w.clock(1)
		w.expectError(w.report(charged(report("D1", domain.DroneProblem, "", at(1)), 3)), "")
		w.expectDrone("D1", domain.DroneEmergency, "")
	}},
	{"a drone in maintenance may be without its battery", func(w *world) { // F-TEL-05, F-TEL-08
		w.with(readyDrone("D1"))
		w.clock(1)
		w.expectError(w.report(charged(report("D1", domain.DroneMaintenance, "", at(1)), 0)), "")
		w.expectDrone("D1", domain.DroneMaintenance, "")
	}},
	{"a mission over twice its estimate has stalled", func(w *world) { // F-TEL-09
		w.with(readyDrone("D1"), openOrder("O1", 0), readyDrone("D2"), openOrder("O2", 1))
		d := plan("X", "D1", "O1")
		d.EstimatedDurationMinutes = 2
		w.expectOutcome(d, applied)
		vague := plan("Y", "D2", "O2")
		vague.EstimatedDurationMinutes = 0
		w.expectOutcome(vague, applied)
		for s := 10.0; s <= 240; s += 10 {
			w.says(s, domain.DroneMoving, "M-X")
			w.expectError(w.report(report("D2", domain.DroneMoving, "M-Y", at(s))), "")
			w.sweep()
		}
		w.expectMission("M-X", domain.MissionActive, "")
		w.clock(241)
		w.sweep()
		w.expectMission("M-X", domain.MissionFailed, domain.FailureStalled)
		w.expectMission("M-Y", domain.MissionActive, "") // no estimate to exceed
		w.expectDrone("D1", domain.DroneMoving, "")
	}},
	{"a drone silent on its way home is lost, its mission stays completed", func(w *world) { // F-TEL-09
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.saysAt(90, hospitalsAt[0], domain.DroneDelivering, "M-X")
		w.clock(209.9)
		w.sweep()
		w.expectDrone("D1", domain.DroneDelivering, "M-X")
		w.clock(210)
		w.sweep()
		w.expectDrone("D1", domain.DroneUnknown, "")
		w.expectMission("M-X", domain.MissionCompleted, "")
	}},
	{"a lost drone with an emergency stays one", func(w *world) { // F-TEL-08, F-TEL-09
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(5, domain.DroneMoving, "M-X")
		w.says(6, domain.DroneEmergency, "M-X")
		w.says(7, domain.DroneMoving, "M-X")
		w.clock(127)
		w.sweep()
		w.expectMission("M-X", domain.MissionFailed, domain.FailureContactLost)
		w.expectDrone("D1", domain.DroneEmergency, "")
	}},
	{"an idle drone silent for 15 s is offered to nobody", func(w *world) { // F-TEL-09
		w.with(readyDrone("D1")) // seen at -1
		w.clock(13.999)
		w.sweep()
		w.expectDrone("D1", domain.DroneIdle, "")
		w.clock(14)
		w.sweep()
		w.expectDrone("D1", domain.DroneUnknown, "")
	}},
	{"a binding whose mission is gone is left to the drone's word", func(w *world) { // F-TEL-09
		d := readyDrone("D1")
		d.Status, d.CurrentMissionID, d.MissionAcked = domain.DroneMoving, "M-gone", true
		w.with(d)
		w.clock(500)
		w.sweep()
		w.expectDrone("D1", domain.DroneMoving, "M-gone")
		w.says(501, domain.DroneIdle, "")
		w.expectDrone("D1", domain.DroneIdle, "")
	}},
	{"a drone whose clock is slow is not silent for that", func(w *world) { // F-TEL-09
		w.with(readyDrone("D1"))
		w.clock(10)
		w.expectError(w.report(report("D1", domain.DroneIdle, "", at(5))), "")
		w.clock(24.999)
		w.sweep()
		w.expectDrone("D1", domain.DroneIdle, "")
		w.clock(25)
		w.sweep()
		w.expectDrone("D1", domain.DroneUnknown, "")
	}},
	{"a backlog of reports is no sign of life now", func(w *world) { // F-TEL-09
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.clock(60)
		w.expectError(w.report(report("D1", domain.DroneIdle, "", at(10))), "")
		d := plan("X", "D1", "O1")
		d.SnapshotTime = at(59)
		w.expectOutcome(d, string(ReasonDroneSilent))
		w.sweep()
		w.expectDrone("D1", domain.DroneUnknown, "")
	}},
	{"a change of a pending order keeps when it was created", func(w *world) { // F-ORD-01, F-ORD-02
		w.expectError(w.request(request("O1", 0)), "")
		changed := request("O1", 1)
		changed.Priority, changed.CreatedAt = domain.PriorityCritical, at(500)
		w.clock(600)
		w.expectError(w.request(changed), "")
		o := w.orders["O1"]
		w.expect(o.CreatedAt.Equal(at(0)), "created at %s", o.CreatedAt)
		w.expect(o.Deadline.Equal(at(900)), "due at %s, not 15 min after its creation", o.Deadline)
		w.expect(o.PendingSince.Equal(at(600)), "plans made for the old content still fit")
	}},
	{"an order without a status becomes pending, with a deadline of its own time", func(w *world) { // F-ORD-02
		w.with(domain.Order{ID: "O1", Revision: 3})
		c, err := w.ingest(ptr(w.orders["O1"]), nil, request("O1", 0), at(10), at(12))
		w.expect(err == nil && len(c.Orders) == 1, "%v", err)
		if len(c.Orders) == 1 {
			o := c.Orders[0]
			w.expect(o.CreatedAt.Equal(at(10)) && o.Deadline.Equal(at(3610)), "created %s, due %s", o.CreatedAt, o.Deadline)
		}
		same := domain.Order{ID: "O1", ContentHash: request("O1", 0).Hash()}
		c, err = w.ingest(&same, nil, request("O1", 0), at(10), at(12))
		w.expect(err == nil && len(c.Orders) == 1, "an order without a status stays lost: %v", err)
	}},
	{"a later deadline given by the requester makes an order timely again", func(w *world) { // F-ORD-02, F-TEL-09
		w.expectError(w.request(request("O1", 0)), "")
		w.clock(3700)
		w.sweep()
		w.expect(w.orders["O1"].Late, "not late")
		changed := request("O1", 0)
		changed.Deadline = at(7200)
		w.expectError(w.request(changed), "")
		w.expect(!w.orders["O1"].Late, "still late")
	}},
	{"an order delivered in time is not late for news that came late", func(w *world) { // F-TEL-09
		o := openOrder("O1", 0)
		o.Deadline = at(95)
		w.with(readyDrone("D1"), o)
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.clock(100)
		w.sweep()
		w.expect(w.orders["O1"].Late, "not late")
		w.expectError(w.report(near(report("D1", domain.DroneDelivering, "M-X", at(94)), hospitalsAt[0])), "")
		w.expect(!w.orders["O1"].Late && w.orders["O1"].DeliveredAt.Equal(at(94)), "late %t, delivered %s", w.orders["O1"].Late, w.orders["O1"].DeliveredAt)
	}},
	{"an order that turns late between snapshot and decision is assigned", func(w *world) { // F-TEL-09, F-DEC-02
		o := openOrder("O1", 0)
		o.Deadline = at(1)
		w.with(readyDrone("D1"), o)
		w.clock(2)
		w.sweep()
		w.expect(w.orders["O1"].Late, "not late")
		w.expectOutcome(plan("X", "D1", "O1"), applied)
	}},
	{"an order without a deadline is never late", func(w *world) { // F-TEL-09
		o := openOrder("O1", 0)
		o.Deadline = time.Time{}
		w.with(readyDrone("D1"), o)
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.saysAt(60, warehouseAt, domain.DroneMoving, "M-X")
		w.saysAt(90, hospitalsAt[0], domain.DroneDelivering, "M-X")
		w.sweep()
		w.expect(w.orders["O1"].Status == domain.OrderDelivered && !w.orders["O1"].Late, "%+v", w.orders["O1"])
	}},
	{"a mission that fails leaves an order to the mission that holds it", func(w *world) { // F-ORD-04, I1
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		d, m, o := readyDrone("D2"), w.missions["M-X"], w.orders["O1"]
		m.ID, m.DroneID = "M-Y", d.ID
		d.Status, d.CurrentMissionID = domain.DroneMoving, m.ID
		o.AssignedDroneID, o.AssignedMissionID = d.ID, m.ID
		w.with(d, m, o)
		w.says(30, domain.DroneIdle, "")
		w.expectMission("M-X", domain.MissionFailed, domain.FailureNotAcked)
		w.expect(w.orders["O1"].AssignedMissionID == "M-Y" && w.orders["O1"].Status == domain.OrderAssigned, "%+v", w.orders["O1"])
	}},
	{"a drone at a stop leaves an order to the mission that holds it", func(w *world) { // F-TEL-07, I1
		w.with(readyDrone("D1"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		b := w.binding("D1")
		o := b.Orders["O1"]
		o.AssignedDroneID, o.AssignedMissionID = "D2", "M-Y"
		b.Orders["O1"] = o
		_, c, err := w.telemetry(b, near(report("D1", domain.DroneMoving, "M-X", at(5)), warehouseAt), at(5))
		w.expect(err == nil && len(c.Orders) == 0, "%+v, %v", c.Orders, err)
	}},
	{"deadlines follow from priority unless given", func(w *world) { // F-ORD-01
		for priority, minutes := range map[domain.Priority]float64{domain.PriorityCritical: 15, domain.PriorityHigh: 30, domain.PriorityStandard: 60} {
			req := request(domain.OrderID(priority.String()), 0)
			req.Priority = priority
			w.expectError(w.request(req), "")
			w.expect(w.orders[req.ID].Deadline.Equal(at(minutes*60)), "%s is due %s", priority, w.orders[req.ID].Deadline)
		}
		req := request("own", 0)
		req.Deadline, req.CreatedAt = at(77), at(-5)
		w.expectError(w.request(req), "")
		w.expect(w.orders["own"].Deadline.Equal(at(77)) && w.orders["own"].CreatedAt.Equal(at(-5)), "%+v", w.orders["own"])
	}},
	{"an order from the future is as old as its message", func(w *world) { // F-ORD-01
		req := request("O1", 0)
		req.CreatedAt = at(3600)
		w.expectError(w.request(req), "")
		w.expect(w.orders["O1"].CreatedAt.Equal(at(0)) && w.orders["O1"].Deadline.Equal(at(3600)), "%+v", w.orders["O1"])
	}},
	{"a plan from before an order's mission failed no longer fits it", func(w *world) { // F-DEC-02, F-ORD-04
		w.with(readyDrone("D1"), readyDrone("D2"), openOrder("O1", 0))
		w.expectOutcome(plan("X", "D1", "O1"), applied)
		w.says(5, domain.DroneMoving, "M-X")
		w.says(10, domain.DroneMaintenance, "M-X")
		w.expectMission("M-X", domain.MissionFailed, domain.FailureDroneFault)
		w.expectOutcome(plan("Y", "D2", "O1"), string(ReasonOrderChanged))
		again := plan("Z", "D2", "O1")
		again.SnapshotTime = at(10)
		w.expectOutcome(again, applied)
	}},
	{"a setup keeps what a drone is doing", func(w *world) { // F-TEL-04
		w.commit(w.setup(nil, domain.Drone{ID: "D1", HomeDepotID: "DEPOT"}, w.now))
		w.expectDrone("D1", domain.DroneUnknown, "")
		w.says(1, domain.DroneIdle, "")
		facts := domain.Drone{
			ID: "D1", HomeDepotID: "DEPOT-2", ShortName: "one", BatteryCapacityMah: 9000, ConsumptionPerKm: 2,
			MaxFlightTimeMinutes: 40, PayloadCapacityKg: 3, ConsumptionPerKmKg: 0.1,
		}
		want := w.drones["D1"]
		want.HomeDepotID, want.ShortName, want.BatteryCapacityMah = "DEPOT-2", "one", 9000
		want.ConsumptionPerKm, want.MaxFlightTimeMinutes, want.PayloadCapacityKg = 2, 40, 3
		want.ConsumptionPerKmKg = 0.1
		w.commit(w.setup(ptr(w.drones["D1"]), facts, w.now))
		w.expect(reflect.DeepEqual(w.drones["D1"], want), "%+v, not %+v", w.drones["D1"], want)
	}},
	{"a plan that lands with exactly the reserve is flown", func(w *world) { // F-DEC-02
		d := readyDrone("D1")
		d.Battery = 80.1
		w.with(d, openOrder("O1", 0))
		x := plan("X", "D1", "O1")
		x.EstimatedBatteryConsumption = 60.1 // 80.1 - 60.1 is 19.999999999999993 in binary
		w.expectOutcome(x, applied)
	}},
}

func (w *world) expect(ok bool, format string, args ...any) {
	if !ok {
		w.violated(format, args...)
	}
}

// publish stands for the outbox.
func (w *world) publish(id domain.MissionID) {
	m := w.missions[id]
	m.CommandPublishedAt, m.CommandPending = w.now, false
	w.missions[id] = m
}

func ptr[T any](v T) *T { return &v }

// An operator's commands on what is not there are answered, not obeyed.
func TestOperatorCommands_OnNothing(t *testing.T) {
	w := newWorld(contract())
	for name, err := range map[string]error{
		"hold": w.holdOrder("O"), "release": w.releaseOrder("O"), "cancel": w.operatorCancels("O"), "clear": w.clearDrone("D"),
		"ground": w.groundDrone("D"), "release drone": w.releaseDrone("D"), "recall": w.recallMission("M"),
	} {
		if !errors.Is(err, &Rejection{Reason: ReasonNotFound}) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
