package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// cruiseKmh is the speed of a drone that reports none, which plans assume.
const cruiseKmh = 50

// canAmend reports whether a drone in flight can be given a changed mission. The error, if any, is
// a Rejection with the first reason against it, in the order of decisionChecks.
func (c decisionCase) canAmend() error {
	d, m := *c.Drone, c.Mission
	refuse := func(reason Reason, format string, args ...any) error {
		return reject(reason, string(d.ID), format, args...)
	}
	silent := c.now.Sub(d.SeenAt)
	standby := c.decision.Standby()
	adds := standby || len(c.added()) > 0
	due, other := Due(d, c.now), otherIdentity(d)
	switch {
	case d.Grounded && adds:
		return refuse(ReasonDroneGrounded, "drone %s is grounded: %s", d.ID, d.GroundedReason)
	case due != "" && adds:
		return refuse(ReasonDroneDue, "drone %s needs maintenance: %s", d.ID, due)
	case other != "":
		return refuse(ReasonDroneIdentity, "%s", other)
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

// Amendable reports whether a planner may change the mission that a drone flies. Otherwise a
// decision that amends it would be refused.
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

// stopCommitted keeps the stops that are reached and those that the drone is too near to turn from.
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

// committed is how many stops the drone has reached or is too near to turn from, with those at the
// same place. A mission without orders is replaced whole.
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
	w := d.WhereaboutsAt(c.now)
	off := w.ErrorMetres // at worst towards the stop
	if !d.Foretells() {
		off = speed / 3.6 * w.Age.Seconds()
	}
	if seconds := max(0, w.DistanceMetres(next)-c.StopRadiusMetres-off) / (speed / 3.6); seconds > c.TurnTime.Seconds() {
		return n
	}
	for n < len(m.Route) && m.Route[n].Position.DistanceMetres(next) <= c.StopRadiusMetres {
		n++
	}
	return n
}

// added lists the orders that the decision gives the drone. For a new mission these are all of its
// orders.
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
