package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// applyLate applies a report that is not newer than the drone's last one. It can prove that
// the drone knows its mission, and reached stops. Position and status never go back.
func (p DronePolicy) applyLate(b Binding, t domain.Telemetry, now time.Time) (Binding, Change, bool) {
	if !b.Drone.Bound() || t.MissionID != b.Drone.CurrentMissionID {
		return b, Change{}, false
	}
	late := b.clone()
	r := &recorder{DronePolicy: p, now: now, cause: domain.CauseTelemetry}
	d, before := &late.Drone, late.Drone
	d.MissionAcked, d.FreeAfter = true, time.Time{}
	d.MissionMoved = d.MissionMoved || isFlying(p.claim(t))
	d.NamedRevision = max(d.NamedRevision, t.MissionRevision)
	r.heedRevision(&late, t)
	if late.Mission != nil && late.Mission.RouteRevision != b.Mission.RouteRevision {
		d.Track = r.recounted(d.Track, *late.Mission)
	}
	r.prove(&late, t, true, p.possibleLate(d.Track, late.Mission, t))
	if r.change.Empty() && d.NamedRevision == before.NamedRevision && d.MissionAcked == before.MissionAcked && d.MissionMoved == before.MissionMoved && d.ImplausibleAt.Equal(before.ImplausibleAt) {
		return b, Change{}, false
	}
	r.drone(&before, d, d.CurrentMissionID, "")
	return late, r.change, true
}

// Ended is a mission that has ended, with its orders as they are now.
type Ended struct {
	Mission domain.Mission
	Orders  map[domain.OrderID]domain.Order
	// Other is the binding of the drone that TakenOver names; nil for none.
	Other *Binding
}

// TakenOver returns the drone that now has an order of an ended mission but has not picked it up.
// It takes the first such order along the unreached stops of the route that the report names.
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

// ProveLate applies what a report proves about an ended mission of its drone. A parcel that was
// delivered counts as delivered, whichever mission has the order now. If another drone has picked
// it up again, that is noted. A parcel that is aboard waits for an operator. One call takes at most
// one order from another mission: repeat it until the report is rejected as stale.
func (p DronePolicy) ProveLate(e Ended, t domain.Telemetry, now time.Time) (Change, error) {
	stale := reject(ReasonStaleTelemetry, string(t.DroneID), "it proves nothing new about mission %s, which has ended", t.MissionID)
	m := e.Mission
	if m.ID != t.MissionID || m.DroneID != t.DroneID || p.checkRoute(m, t) != nil {
		return Change{}, stale
	}
	r := &recorder{DronePolicy: p, now: now, cause: domain.CauseTelemetry}
	m, adopted := e.heeding(t)
	if adopted {
		m.Track = p.recounted(m.Track, m)
		r.mission(e.Mission, &m, "")
	}
	orders := Binding{Orders: e.Orders}.clone().Orders
	changed, _ := p.addEvidence(&m, t, true, p.possibleLate(m.Track, &m, t))
	times := ReachTimes(m)
	for m.ReachedStops < len(times) {
		i := m.ReachedStops
		taken, ok := r.serveLate(e.Other, orders, m, m.Route[i], times[i])
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

// serveLate applies to a stop's order that an ended mission reached the stop. taken says that the
// order was taken from the other binding. ok is false if it must be taken from a binding that was
// not given.
func (r *recorder) serveLate(other *Binding, orders map[domain.OrderID]domain.Order, m domain.Mission, stop domain.Waypoint, at time.Time) (taken, ok bool) {
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
		r.putBack(&o)
		o.Held, o.HeldReason = true, "the parcel is aboard drone "+string(m.DroneID)+", as a late report shows"
	}
	r.order(before, &o, "by a late report of mission "+string(m.ID))
	orders[o.ID] = o
	if taken {
		r.withdrawOrder(*other, o.ID)
	}
	return taken, true
}
