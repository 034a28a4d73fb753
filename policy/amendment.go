package policy

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// A mission can be changed under way (F-AMD-01 to 05). Until its drone names the new
// revision nobody knows which route it flies, so an order that either route serves
// belongs to the mission: an added one at once, one that is taken away until then. A
// drone that names another revision after the command has expired will never fly the
// new one.

// ReasonAmendmentVoid is why orders that an amendment added wait again, and ReasonReleased
// why those that it took away do.
const (
	ReasonAmendmentVoid Reason = "AMENDMENT_VOID"
	ReasonReleased      Reason = "RELEASED"
)

// cruiseKmh is the speed of a drone that reports none, which plans assume.
const cruiseKmh = 50

// canAmend tells whether a drone in flight can be given a changed mission. The error, if
// any, is a Rejection with the first reason against it, in the order of decisionChecks.
func (c decisionCase) canAmend() error {
	d, m := *c.Drone, c.Mission
	refuse := func(reason Reason, format string, args ...any) error {
		return reject(reason, string(d.ID), format, args...)
	}
	silent := c.now.Sub(d.SeenAt)
	standby := c.decision.Standby()
	switch {
	case d.Grounded && (standby || len(c.added()) > 0):
		return refuse(ReasonDroneGrounded, "drone %s is grounded: %s", d.ID, d.GroundedReason)
	case silent > c.MaxSilence:
		return refuse(ReasonDroneSilent, "drone %s was last heard of %s ago", d.ID, silent.Round(time.Second))
	}
	var low string
	switch takesOnly := isSubsequence(c.decision.Route, m.Route); {
	case standby:
		low = c.standbyTooLow()
	case !takesOnly:
		low = c.drones().tooLow(d, c.decision.EstimatedBatteryConsumption)
	}
	if low != "" {
		return refuse(ReasonLowBattery, "%s", low)
	}
	return nil
}

func (c decisionCase) missionNotActive() string {
	id := c.decision.AmendsMissionID
	switch m := c.Mission; {
	case id == "":
		return ""
	case m == nil:
		return fmt.Sprintf("no mission %s", id)
	case m.DroneID != c.decision.DroneID:
		return fmt.Sprintf("mission %s is drone %s's", id, m.DroneID)
	case m.Status != domain.MissionActive || c.Drone.CurrentMissionID != id:
		return fmt.Sprintf("mission %s is %s", id, m.Status)
	}
	return ""
}

func (c decisionCase) notAmendable() string {
	if !c.decision.Amends() {
		return ""
	}
	return unfitForAmendment(*c.Drone, *c.Mission)
}

// Amendable reports whether a planner may change the mission that a drone flies: a
// decision that amends it would be refused otherwise.
func (p DronePolicy) Amendable(d domain.Drone, m domain.Mission, now time.Time) bool {
	return m.Status == domain.MissionActive && m.DroneID == d.ID && d.CurrentMissionID == m.ID && m.Amendment == nil &&
		p.Fit(d, now) && unfitForAmendment(d, m) == ""
}

// unfitForAmendment says why a mission cannot be changed while its drone flies it, "" if
// it can.
func unfitForAmendment(d domain.Drone, m domain.Mission) string {
	switch {
	case !d.SupportsAmendments:
		return fmt.Sprintf("drone %s does not support amendments", d.ID)
	case m.RouteRevision == 0:
		return fmt.Sprintf("mission %s was made by a version without amendments", m.ID)
	case !d.MissionAcked || d.NamedRevision != m.RouteRevision:
		return fmt.Sprintf("drone %s does not name revision %d of its mission, but %d", d.ID, m.RouteRevision, d.NamedRevision)
	case !m.RecalledAt.IsZero():
		return fmt.Sprintf("mission %s is recalled", m.ID)
	case !d.FaultSince.IsZero() || isFault(d.Status):
		return fmt.Sprintf("drone %s is %s", d.ID, d.Status)
	case !d.ParkedSince.IsZero():
		return fmt.Sprintf("drone %s has left the mission", d.ID)
	}
	return ""
}

func (c decisionCase) revisionChanged() string {
	switch planned, m := c.decision.AmendsRevision, c.Mission; {
	case !c.decision.Amends():
	case m.Amendment != nil:
		return fmt.Sprintf("revision %d of mission %s waits for the drone to name it", m.Amendment.Revision, m.ID)
	case planned != m.RouteRevision:
		return fmt.Sprintf("it was planned on revision %d, mission %s has %d", planned, m.ID, m.RouteRevision)
	}
	return ""
}

// orderAboard keeps a parcel on the drone that carries it.
func (c decisionCase) orderAboard() string {
	if !c.decision.Amends() {
		return ""
	}
	for _, id := range c.Mission.OrderIDs {
		if o := c.Orders[id]; o.Status != domain.OrderInDelivery || o.AssignedMissionID != c.Mission.ID {
			continue
		}
		delivers := slices.ContainsFunc(c.decision.Route, func(w domain.Waypoint) bool {
			return w.Type == domain.WaypointHospitalDelivery && w.OrderID == id
		})
		if !delivers || !slices.Contains(c.decision.OrderIDs, id) {
			return fmt.Sprintf("order %s is aboard, and the new route does not deliver it", id)
		}
	}
	return ""
}

// stopCommitted keeps what is behind the drone and what it cannot turn away from any more.
func (c decisionCase) stopCommitted() string {
	if !c.decision.Amends() {
		return ""
	}
	stays := c.committed()
	if i := sharedStops(c.Mission.Route, c.decision.Route); i < stays {
		return fmt.Sprintf("stop %d is reached or almost reached, and the new route has another or none there", i)
	}
	return ""
}

// committed is how many stops the drone has reached or is too near to turn, with those
// at the same place. A mission without orders is replaced whole.
func (c decisionCase) committed() int {
	m, d := *c.Mission, *c.Drone
	if m.Standby() {
		return 0
	}
	n := m.ReachedStops
	if n >= len(m.Route) {
		return n
	}
	speed := d.SpeedKmh
	if !(speed > 0) { // or NaN
		speed = cruiseKmh
	}
	next := m.Route[n].Position
	seconds := max(0, d.Position.DistanceMetres(next)-c.StopRadiusMetres)/(speed/3.6) - c.now.Sub(d.SeenAt).Seconds()
	if seconds > c.TurnTime.Seconds() {
		return n
	}
	for n < len(m.Route) && m.Route[n].Position.DistanceMetres(next) <= c.StopRadiusMetres {
		n++
	}
	return n
}

// added lists the orders that the decision gives the drone: all of those of a new mission.
func (c decisionCase) added() []domain.OrderID {
	if !c.decision.Amends() || c.Mission == nil {
		return c.decision.OrderIDs
	}
	return minus(c.decision.OrderIDs, c.Mission.OrderIDs)
}

// released lists the orders that an amendment takes away.
func (c decisionCase) released() []domain.OrderID {
	return minus(c.Mission.OrderIDs, c.decision.OrderIDs)
}

func minus[T comparable](list, others []T) (rest []T) {
	for _, x := range list {
		if !slices.Contains(others, x) {
			rest = append(rest, x)
		}
	}
	return rest
}

// amend writes a decided amendment: the added orders are bound, and those that are taken
// away are marked. The drone's document changes with its mission.
func (p MissionAssignmentPolicy) amend(c decisionCase, entry *domain.LedgerEntry) Change {
	r := &recorder{now: c.now, cause: domain.CauseDecision, decision: c.decision.ID, cycle: c.decision.CycleID}
	before, d := *c.Mission, c.decision
	m := before
	a := domain.Amendment{
		Revision: m.LatestRevision() + 1, Route: d.Route, AddedIDs: c.added(), ReleasedIDs: c.released(),
		EstimatedBatteryConsumption: d.EstimatedBatteryConsumption, EstimatedDurationMinutes: d.EstimatedDurationMinutes,
		DecisionID: d.ID, DecidedAt: c.now,
	}
	entry.Revision, entry.AddedIDs, entry.ReleasedIDs = a.Revision, a.AddedIDs, a.ReleasedIDs
	m.Amendment = &a
	m.OrderIDs = append(slices.Clone(m.OrderIDs), a.AddedIDs...)
	oweCommand(&m, c.now.Add(p.CommandLifetime))
	r.mission(before, &m, "")
	drone := *c.Drone
	r.drone(drone, &drone, m.ID, "")
	for _, id := range a.AddedIDs {
		before := c.Orders[id]
		o := before
		o.Status, o.AssignedDroneID, o.AssignedMissionID = domain.OrderAssigned, d.DroneID, m.ID
		r.order(before, &o, "")
	}
	for _, id := range a.ReleasedIDs {
		before := c.Orders[id]
		if before.Status != domain.OrderAssigned || before.AssignedMissionID != m.ID {
			continue
		}
		o := before
		o.Releasing = true
		r.order(before, &o, "")
	}
	return r.change
}

// checkRevision refuses a report that names a revision which its mission never had, or
// did not have yet when the drone measured.
func (p DronePolicy) checkRevision(m domain.Mission, t domain.Telemetry) error {
	a := m.Amendment
	switch {
	case t.MissionRevision > max(m.LatestRevision(), 1):
		return reject(ReasonUnknownRevision, string(t.DroneID), "mission_revision is %d; mission %s has had %d", t.MissionRevision, m.ID, m.LatestRevision())
	case a != nil && t.MissionRevision == a.Revision && t.Timestamp.Before(a.DecidedAt.Add(-2*p.ClockError)): // the drone's clock and the decider's
		return reject(ReasonUnknownRevision, string(t.DroneID), "mission_revision is %d, which was decided %s after the report was measured; check the drone's clock",
			t.MissionRevision, a.DecidedAt.Sub(t.Timestamp).Round(time.Millisecond))
	}
	return nil
}

// heedRevision applies what a report that names the bound mission says about its
// amendment: naming it puts it in force, naming another after its command has expired
// makes it void.
func (r *recorder) heedRevision(p DronePolicy, b *Binding, t domain.Telemetry) {
	m := b.Mission
	if m == nil || m.Status != domain.MissionActive || m.Amendment == nil {
		return
	}
	switch {
	case t.MissionRevision == m.Amendment.Revision:
		r.confirmAmendment(b)
	case t.Timestamp.After(m.CommandExpiresAt.Add(p.ClockError)):
		r.voidAmendment(b, p.CommandLifetime)
	}
}

// confirmAmendment puts the amendment in force. Orders that it took away wait from now on.
// One that was picked up meanwhile, as far as the store knows, waits for an operator: the
// drone says that it flies without it.
func (r *recorder) confirmAmendment(b *Binding) {
	m := b.Mission
	before, a := *m, *m.Amendment
	adopt(m)
	for _, id := range a.ReleasedIDs {
		o := b.Orders[id]
		if o.AssignedMissionID != m.ID || o.Status != domain.OrderAssigned && o.Status != domain.OrderInDelivery {
			continue
		}
		before := o
		if o.Status == domain.OrderInDelivery {
			o.Held, o.HeldReason = true, fmt.Sprintf("the parcel may be aboard drone %s, which flies revision %d without it", m.DroneID, a.Revision)
		}
		r.unassign(b, before, o, ReasonReleased)
	}
	r.settle(b)
	r.mission(before, m, "")
}

// voidAmendment leaves the old revision in force. The drone is told again what that is: it
// may have missed a command that the amendment's replaced.
func (r *recorder) voidAmendment(b *Binding, commandLifetime time.Duration) {
	m := b.Mission
	before, a := *m, *m.Amendment
	m.EarlierRoutes = withEarlier(m.EarlierRoutes, a.Revision, sharedIndexes(*m))
	m.Amendment = nil
	r.unassignAdded(b, a)
	for _, id := range a.ReleasedIDs {
		if o := b.Orders[id]; o.Releasing {
			before := o
			o.Releasing = false
			r.order(before, &o, string(ReasonAmendmentVoid))
			b.Orders[id] = o
		}
	}
	if !m.Revoked() {
		oweCommand(m, r.now.Add(commandLifetime))
	}
	r.settle(b)
	r.mission(before, m, string(ReasonAmendmentVoid))
}

// unassignAdded makes the orders wait that an amendment added and that the drone has not
// picked up.
func (r *recorder) unassignAdded(b *Binding, a domain.Amendment) {
	for _, id := range a.AddedIDs {
		if o := b.Orders[id]; o.AssignedMissionID == b.Mission.ID && o.Status == domain.OrderAssigned {
			r.unassign(b, o, o, ReasonAmendmentVoid)
		}
	}
}

// unassign takes an order from the bound mission. It does not count as a failed attempt.
func (r *recorder) unassign(b *Binding, before, o domain.Order, reason Reason) {
	o.Status, o.PendingSince = domain.OrderPending, r.now
	o.AssignedDroneID, o.AssignedMissionID, o.Releasing = "", "", false
	r.order(before, &o, string(reason))
	delete(b.Orders, o.ID)
	b.Mission.OrderIDs = minus(b.Mission.OrderIDs, []domain.OrderID{o.ID})
}

// settle completes a mission that has nothing left to pick up or deliver, unless its drone
// may still fly to orders that an amendment adds. From then on the drone flies home.
func (r *recorder) settle(b *Binding) {
	m := b.Mission
	if m.Status != domain.MissionActive || !m.LastOrderStopReached() || m.AwaitsAdded() {
		return
	}
	if m.Amendment != nil { // it only takes away, and nothing is left to take
		m.EarlierRoutes = withEarlier(m.EarlierRoutes, m.Amendment.Revision, sharedIndexes(*m))
		m.Amendment = nil
	}
	m.Status, m.EndTime = domain.MissionCompleted, r.now
	b.Drone.Homebound, b.Drone.HomeboundSince = true, r.now
}

// endLeft ends the mission of a drone that has left it with stops missing. If only stops
// are missing that an amendment added, the mission is COMPLETED without them; it keeps the
// amendment, since late reports may show that they were served.
func (r *recorder) endLeft(b *Binding, reason domain.FailureReason) (failed string) {
	m := b.Mission
	if m == nil || m.Status != domain.MissionActive || !m.LastOrderStopReached() || !m.AwaitsAdded() {
		return r.failMission(b, reason)
	}
	before := *m
	r.unassignAdded(b, *m.Amendment)
	m.Status, m.EndTime = domain.MissionCompleted, r.now
	m.CommandPending = false
	r.mission(before, m, string(ReasonAmendmentVoid))
	return ""
}

// adopt makes the amendment's route the one in force. Sightings of stops that both routes
// begin with stay.
func adopt(m *domain.Mission) {
	a := *m.Amendment
	from, to := commandedIndexes(m.Route, m.DroppedStops), commandedIndexes(a.Route, a.DroppedStops)
	same := sharedStops(m.Route, a.Route)
	var sightings []domain.Sighting
	for _, s := range m.Sightings {
		if i := slices.Index(from, s.Stop); i >= 0 && i < same {
			s.Stop = to[i]
			sightings = append(sightings, s)
		}
	}
	m.EarlierRoutes = withEarlier(m.EarlierRoutes, m.RouteRevision, sharedIndexes(*m))
	m.RouteRevision, m.Route, m.DroppedStops = a.Revision, a.Route, a.DroppedStops
	m.Sightings, m.ReachedStops = sightings, min(m.ReachedStops, same)
	m.EstimatedBatteryConsumption, m.EstimatedDurationMinutes = a.EstimatedBatteryConsumption, a.EstimatedDurationMinutes
	m.Amendment, m.AmendedAt = nil, a.DecidedAt
}

// withEarlier adds a revision that is no longer in force, or never was. All earlier ones
// share at most as much with the route in force as the one before it does.
func withEarlier(earlier []domain.EarlierRoute, revision, shared int) []domain.EarlierRoute {
	list := make([]domain.EarlierRoute, 0, len(earlier)+1)
	for _, e := range earlier {
		e.Shared = min(e.Shared, shared)
		list = append(list, e)
	}
	list = append(list, domain.EarlierRoute{Revision: revision, Shared: shared})
	if n := len(list) - domain.MaxEarlierRoutes; n > 0 { // the oldest one left stands for those before it
		least := list[n].Shared
		for _, e := range list[:n] {
			least = min(least, e.Shared)
		}
		list = list[n:]
		list[0].Shared = least
	}
	return list
}

// sharedIndexes is how many stops, counted as commanded, the route in force and the
// amendment begin with. A stop of a withdrawn order ends the count: only one of the routes
// may count it.
func sharedIndexes(m domain.Mission) int {
	from, to := commandedIndexes(m.Route, m.DroppedStops), commandedIndexes(m.Amendment.Route, m.Amendment.DroppedStops)
	for i := range sharedStops(m.Route, m.Amendment.Route) {
		if from[i] != i || to[i] != i {
			return i
		}
	}
	return sharedStops(m.Route, m.Amendment.Route)
}

// provable is how many stops, counted as commanded, a report that names a revision can
// prove: those that its route shares with the one in force.
func provable(m domain.Mission, revision int) int {
	if len(m.EarlierRoutes) == 0 || revision == m.RouteRevision {
		return math.MaxInt
	}
	least := math.MaxInt
	for _, e := range m.EarlierRoutes {
		if e.Revision == revision {
			return e.Shared
		}
		least = min(least, e.Shared)
	}
	return least // one that is forgotten, or a drone that names none
}

// sharedStops is how many stops two routes begin with; when they are expected does not
// matter.
func sharedStops(a, b []domain.Waypoint) (n int) {
	for n < len(a) && n < len(b) && sameStop(a[n], b[n]) {
		n++
	}
	return n
}

func sameStop(a, b domain.Waypoint) bool {
	if !a.WaitUntil.Equal(b.WaitUntil) {
		return false
	}
	a.ETA, b.ETA = time.Time{}, time.Time{}
	a.WaitUntil, b.WaitUntil = time.Time{}, time.Time{}
	return a == b
}

// isSubsequence reports whether a route is another one with stops left out.
func isSubsequence(short, long []domain.Waypoint) bool {
	for _, stop := range short {
		i := slices.IndexFunc(long, func(w domain.Waypoint) bool { return sameStop(w, stop) })
		if i < 0 {
			return false
		}
		long = long[i+1:]
	}
	return true
}

// withoutOrder is a route without an order's stops from the given stop on.
func withoutOrder(route []domain.Waypoint, dropped []int, from int, id domain.OrderID) ([]domain.Waypoint, []int) {
	indexes := commandedIndexes(route, dropped)
	from = min(from, len(route))
	rest, dropped := slices.Clone(route[:from]), slices.Clone(dropped)
	for i := from; i < len(route); i++ {
		if route[i].OrderID == id {
			dropped = append(dropped, indexes[i])
			continue
		}
		rest = append(rest, route[i])
	}
	slices.Sort(dropped)
	return rest, dropped
}
