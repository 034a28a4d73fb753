package policy

import (
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// A mission's reached stops follow from the reports of its drone that name it, taken in
// the order of their timestamps, whatever order they arrive in (F-TEL-11). The mission
// keeps the times at which each stop was sighted. A stop is reached at its earliest
// sighting that is not before the previous stop was reached. Reports only add sightings,
// so a stop may turn out to be reached earlier, but is never lost.

// maxSightings bounds the sightings kept per stop. A dropped one lies between two kept
// ones, so the stop is still reached, perhaps at a later time.
const maxSightings = 16

// countedStops is the length of the route up to the last stop that counts: the last order
// stop, without the way home, or in a mission without orders the last stop at which the
// drone charges or waits.
func countedStops(m domain.Mission) int {
	counts := domain.Waypoint.ForOrder
	if m.Standby() {
		counts = domain.Waypoint.Duty
	}
	for i := len(m.Route); i > 0; i-- {
		if counts(m.Route[i-1]) {
			return i
		}
	}
	return 0
}

// commandedIndexes returns, for each stop of the route, its index in the route as first
// commanded.
func commandedIndexes(route []domain.Waypoint, dropped []int) []int {
	indexes := make([]int, 0, len(route))
	for i := range len(route) + len(dropped) {
		if !slices.Contains(dropped, i) {
			indexes = append(indexes, i)
		}
	}
	return indexes
}

// ReachTimes returns the times at which a mission's stops were reached, in route order, by
// its drone's clock.
func ReachTimes(m domain.Mission) []time.Time {
	indexes := commandedIndexes(m.Route, m.DroppedStops)
	var times []time.Time
	var before time.Time
	for i := range countedStops(m) {
		at, sighted := reachedAt(m.Sightings, indexes[i], before)
		switch {
		case sighted:
			before = at
		case i >= m.ReachedStops: // below that, a version without sightings counted it
			return times
		}
		times = append(times, before)
	}
	return times
}

// LastReachedAt is when the drone reached the latest of the mission's reached stops, by
// its clock; zero if it has reached none.
func LastReachedAt(m domain.Mission) time.Time {
	times := ReachTimes(m)
	if len(times) == 0 {
		return time.Time{}
	}
	return times[len(times)-1]
}

// reachedAt is the earliest sighting of a stop that is not before the previous stop was
// reached. A drone that claims a stop has also completed those before it.
func reachedAt(sightings []domain.Sighting, stop int, before time.Time) (at time.Time, sighted bool) {
	for _, s := range sightings {
		if s.Stop == stop && (s.Claimed || !s.At.Before(before)) && (!sighted || s.At.Before(at)) {
			at, sighted = s.At, true
		}
	}
	return at, sighted
}

// addEvidence adds to a mission what a report proves about its stops and reports whether
// that is new. A report of a parked drone that does not name the mission proves, by its
// position, at most the next stop, and is not kept.
func (p DronePolicy) addEvidence(m *domain.Mission, t domain.Telemetry, named bool) bool {
	times, indexes := ReachTimes(*m), commandedIndexes(m.Route, m.DroppedStops)
	most := math.MaxInt
	if named {
		most = provable(*m, t.MissionRevision)
	}
	from, to := 0, countedStops(*m) // the stops to judge by position
	var fresh []domain.Sighting
	see := func(i int, claimed bool) {
		s := domain.Sighting{Stop: indexes[i], At: t.Timestamp, Claimed: claimed}
		if indexes[i] < most && (i >= len(times) || s.At.Before(times[i])) && !slices.Contains(m.Sightings, s) {
			fresh = append(fresh, s)
		}
	}
	if named && t.CompletedStops != nil {
		completed := min(*t.CompletedStops, most)
		from, to = min(certainStops(*m, completed), to), min(completed, to)
		for i := range from {
			see(i, true)
		}
	}
	if isFault(t.Status) {
		to = from // a drone that failed near a stop has not served it
	}
	for i := from; i < to; i++ {
		stop := m.Route[i]
		done := t.Position.DistanceMetres(stop.Position) <= p.StopRadiusMetres
		switch {
		case stop.Duty():
			done = dutyDone(stop, t, named)
		case stop.Type == domain.WaypointDepotStart && named:
			done = true
		}
		if done {
			see(i, false)
		}
	}
	if len(fresh) == 0 {
		return false
	}
	before := *m
	m.Sightings = kept(*m, append(slices.Clone(m.Sightings), fresh...))
	if news := named || len(ReachTimes(*m)) > len(times); !news || slices.Equal(m.Sightings, before.Sightings) {
		m.Sightings = before.Sightings
		return false
	}
	return true
}

// certainStops is how many stops of the route are certainly completed when the drone
// claims a number. It may still fly the route from before orders were withdrawn, and count
// their stops.
func certainStops(m domain.Mission, completed int) int {
	certain, _ := slices.BinarySearch(commandedIndexes(m.Route, m.DroppedStops), completed)
	return certain
}

// routeStops is how many stops a revision of the mission had, as commanded; known is false
// for one that is no longer kept.
func routeStops(m domain.Mission, revision int) (n int, known bool) {
	if a := m.Amendment; a != nil && revision == a.Revision {
		return len(a.Route) + len(a.DroppedStops), true
	}
	return len(m.Route) + len(m.DroppedStops), len(m.EarlierRoutes) == 0 || revision == m.RouteRevision
}

// kept drops sightings after their stop was reached, which no longer matter, and those
// beyond the bound. The rest is sorted by stop and time, so that equal evidence makes equal
// documents.
func kept(m domain.Mission, all []domain.Sighting) []domain.Sighting {
	m.Sightings = all
	times, indexes := ReachTimes(m), commandedIndexes(m.Route, m.DroppedStops)
	var rest []domain.Sighting
	for i := range countedStops(m) {
		var of []domain.Sighting
		for _, s := range all {
			if s.Stop == indexes[i] && (i >= len(times) || !s.At.After(times[i])) {
				of = append(of, s)
			}
		}
		rest = append(rest, thinned(of)...)
	}
	return rest
}

// thinned sorts the sightings of one stop and bounds their number. If there are too many,
// it keeps the first of each second, or of each two, four and so on, and the last one, so
// the result does not depend on their order of arrival. Of the claims it keeps the earliest.
func thinned(of []domain.Sighting) []domain.Sighting {
	slices.SortFunc(of, func(a, b domain.Sighting) int {
		if c := a.At.Compare(b.At); c != 0 || a.Claimed == b.Claimed {
			return c
		}
		if a.Claimed {
			return -1
		}
		return 1
	})
	claimed := false
	of = slices.DeleteFunc(of, func(s domain.Sighting) bool {
		again := claimed && s.Claimed
		claimed = claimed || s.Claimed
		return again
	})
	for step := time.Second; len(of) > maxSightings && step < 1<<20*time.Second; step *= 2 {
		last := of[len(of)-1]
		of = slices.CompactFunc(of[:len(of)-1], func(a, b domain.Sighting) bool {
			return a.Claimed == b.Claimed && a.At.Truncate(step).Equal(b.At.Truncate(step))
		})
		of = append(of, last)
	}
	return of
}

// prove applies what a report proves about the bound mission: its reached stops, their
// effect on the orders, and its completion after the last order stop.
func (r *recorder) prove(p DronePolicy, b *Binding, t domain.Telemetry, named bool) {
	m := b.Mission
	if m == nil || m.Status == domain.MissionFailed || !p.addEvidence(m, t, named) {
		return
	}
	times := ReachTimes(*m)
	for m.Status == domain.MissionActive && m.ReachedStops < len(times) {
		i := m.ReachedStops
		before := *m
		m.ReachedStops++
		r.mission(before, m, "")
		r.serveStop(b, m.Route[i], times[i])
	}
	r.correctTimes(*m, b.Orders, times)
	before := *m
	if r.settle(b); m.Status != before.Status {
		r.mission(before, m, "")
	}
	r.keepMission(*m)
}

// keepMission writes a mission whose evidence grew, even if its state did not change.
func (r *recorder) keepMission(m domain.Mission) {
	r.change.Missions = upsert(r.change.Missions, m, func(x domain.Mission) bool { return x.ID == m.ID })
}

// correctTimes moves deliveries back to the earlier times that new evidence proves.
func (r *recorder) correctTimes(m domain.Mission, orders map[domain.OrderID]domain.Order, times []time.Time) {
	for i, at := range times {
		stop := m.Route[i]
		o := orders[stop.OrderID]
		if stop.Type != domain.WaypointHospitalDelivery || o.Status != domain.OrderDelivered || o.AssignedMissionID != m.ID || !at.Before(o.DeliveredAt) {
			continue
		}
		before := o
		deliver(&o, at, r.now)
		r.order(before, &o, "delivered earlier, by a late report")
		orders[o.ID] = o
	}
}

// deliver marks an order as delivered at a time of the drone's clock.
func deliver(o *domain.Order, measured, now time.Time) {
	o.Status, o.DeliveredAt = domain.OrderDelivered, earlier(measured, now)
	o.Late = !o.Deadline.IsZero() && o.DeliveredAt.After(o.Deadline)
}

// applyLate applies a report that is not newer than the drone's last one. It can prove that
// the drone knows its mission, and reached stops. Position and status never go back.
func (p DronePolicy) applyLate(b Binding, t domain.Telemetry, now time.Time) (Binding, Change, bool) {
	if !b.Drone.Bound() || t.MissionID != b.Drone.CurrentMissionID {
		return b, Change{}, false
	}
	late := b.clone()
	r := &recorder{now: now, cause: domain.CauseTelemetry}
	d, before := &late.Drone, late.Drone
	d.MissionAcked, d.FreeAfter = true, time.Time{}
	d.MissionMoved = d.MissionMoved || isFlying(p.claim(t))
	d.NamedRevision = max(d.NamedRevision, t.MissionRevision)
	r.heedRevision(p, &late, t)
	r.prove(p, &late, t, true)
	if r.change.Empty() && d.NamedRevision == before.NamedRevision && d.MissionAcked == before.MissionAcked && d.MissionMoved == before.MissionMoved {
		return b, Change{}, false
	}
	r.drone(before, d, d.CurrentMissionID, "")
	return late, r.change, true
}

// Ended is a mission that is over, with its orders as they are now.
type Ended struct {
	Mission domain.Mission
	Orders  map[domain.OrderID]domain.Order
	// Other is the binding of the drone that TakenOver names; nil for none.
	Other *Binding
}

// TakenOver returns the drone that now has an order of an ended mission but has not picked
// it up. The order is the first such one along the stops that the mission has not reached,
// on the route that the report names.
func (e Ended) TakenOver(t domain.Telemetry) (domain.DroneID, bool) {
	m, _ := e.heeding(t)
	for _, stop := range m.Route[min(m.ReachedStops, len(m.Route)):] {
		if o := e.Orders[stop.OrderID]; o.Status == domain.OrderAssigned && o.AssignedMissionID != m.ID {
			return o.AssignedDroneID, true
		}
	}
	return "", false
}

// heeding is the mission with the amendment in force if the report shows that its drone
// flew it.
func (e Ended) heeding(t domain.Telemetry) (m domain.Mission, adopted bool) {
	m = e.Mission
	if m.Amendment == nil || m.ID != t.MissionID || t.MissionRevision != m.Amendment.Revision {
		return m, false
	}
	adopt(&m)
	return m, true
}

// ReasonPickedUpAgain notes that another mission had already picked up a parcel again when
// the evidence of its delivery arrived. A person must find out what the drone carries.
const ReasonPickedUpAgain Reason = "PICKED_UP_AGAIN"

// ProveLate applies what a report proves about an ended mission of its drone. A parcel that
// was put down counts as delivered, whichever mission has the order now, unless another
// drone has picked it up again, which is noted. A parcel that is aboard waits for an
// operator. One call takes at most one order from another mission: repeat it until the
// error is a Rejection, which says that the report is stale.
func (p DronePolicy) ProveLate(e Ended, t domain.Telemetry, now time.Time) (Change, error) {
	stale := reject(ReasonStaleTelemetry, string(t.DroneID), "it proves nothing new about mission %s, which is over", t.MissionID)
	m := e.Mission
	if m.ID != t.MissionID || m.DroneID != t.DroneID || p.checkRevision(m, t) != nil {
		return Change{}, stale
	}
	if n, known := routeStops(m, t.MissionRevision); known && t.CompletedStops != nil && *t.CompletedStops > n {
		return Change{}, stale
	}
	r := &recorder{now: now, cause: domain.CauseTelemetry}
	m, adopted := e.heeding(t)
	if adopted {
		r.mission(e.Mission, &m, "")
	}
	orders := Binding{Orders: e.Orders}.clone().Orders
	changed := p.addEvidence(&m, t, true)
	times := ReachTimes(m)
	for m.ReachedStops < len(times) {
		i := m.ReachedStops
		taken, ok := r.serveLate(p, e.Other, orders, m, m.Route[i], times[i])
		if !ok {
			break
		}
		before := m
		m.ReachedStops++
		r.mission(before, &m, "")
		if taken {
			break
		}
	}
	r.correctTimes(m, orders, times[:min(m.ReachedStops, len(times))])
	if changed {
		r.keepMission(m)
	}
	if r.change.Empty() {
		return Change{}, stale
	}
	return r.change, nil
}

// serveLate applies to a stop's order that an ended mission reached the stop. taken says
// that the order was taken from the other binding; ok is false if it would have to be taken
// from a binding that was not given.
func (r *recorder) serveLate(p DronePolicy, other *Binding, orders map[domain.OrderID]domain.Order, m domain.Mission, stop domain.Waypoint, at time.Time) (taken, ok bool) {
	o, known := orders[stop.OrderID]
	if !known || !stop.ForOrder() {
		return false, true
	}
	before := o
	switch o.Status {
	case domain.OrderCancelled, domain.OrderSolving:
		return false, true
	case domain.OrderInDelivery, domain.OrderDelivered:
		if o.AssignedMissionID != m.ID && stop.Type == domain.WaypointHospitalDelivery {
			r.note(o, ReasonPickedUpAgain, nil)
		}
		return false, true
	case domain.OrderAssigned:
		if other == nil || other.Mission == nil || other.Mission.ID != o.AssignedMissionID {
			return false, false
		}
		taken = true
		o.Attempts++
	case domain.OrderPending:
		if o.Held && stop.Type == domain.WaypointWarehousePickup {
			return false, true
		}
	}
	if stop.Type == domain.WaypointHospitalDelivery {
		o.AssignedDroneID, o.AssignedMissionID, o.Releasing = m.DroneID, m.ID, false
		o.Held, o.HeldReason = false, ""
		deliver(&o, at, r.now)
	} else {
		o.Status, o.PendingSince = domain.OrderPending, r.now
		o.AssignedDroneID, o.AssignedMissionID, o.Releasing = "", "", false
		o.Held, o.HeldReason = true, "the parcel is aboard drone "+string(m.DroneID)+", as a late report shows"
	}
	r.order(before, &o, "by a late report of mission "+string(m.ID))
	orders[o.ID] = o
	if taken {
		b := other.clone()
		delete(b.Orders, o.ID)
		drone, mission := b.Drone, b.Drone.CurrentMissionID
		r.withdrawOrder(&b, o.ID, p.CommandLifetime, p.ClockError)
		r.drone(drone, &b.Drone, mission, string(domain.FailureWithdrawn))
	}
	return taken, true
}
