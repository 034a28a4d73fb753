package invariant

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// noOrderLost checks I3: every order exists, and it has ended, is pending, or is in an
// ACTIVE mission that lists it and that its drone is bound to. Only the delivery of
// all its orders makes a mission COMPLETED.
func (c *checker) noOrderLost() {
	refused := c.refused()
	for _, m := range c.Confirmed {
		if m.OrderID == "" || refused[m.ID] {
			continue
		}
		_, exists := c.orderByID[m.OrderID]
		c.expect(exists, "I3", order(m.OrderID), "was accepted as message %s and does not exist", m.ID)
	}
	for _, o := range c.Orders {
		switch o.Status {
		case domain.OrderDelivered, domain.OrderCancelled, domain.OrderPending:
			c.result.Checked++
		case domain.OrderAssigned, domain.OrderInDelivery:
			m := c.missionByID[o.AssignedMissionID]
			c.expect(m.Status == domain.MissionActive && slices.Contains(m.OrderIDs, o.ID), "I3", order(o.ID),
				"is %s in mission %q, which is %q and lists %v", o.Status, o.AssignedMissionID, m.Status, m.OrderIDs)
		case domain.OrderSolving:
			fallthrough
		default:
			c.expect(false, "I3", order(o.ID), "is %q, a status that nothing handles", o.Status)
		}
	}
	for _, m := range c.Missions {
		if m.Status == domain.MissionActive {
			d := c.droneByID[m.DroneID]
			c.expect(d.CurrentMissionID == m.ID, "I3", mission(m.ID), "is ACTIVE with orders %v, but its drone %s is bound to %q",
				m.OrderIDs, m.DroneID, d.CurrentMissionID)
		}
		c.standbyDone(m)
		for _, id := range m.OrderIDs {
			o, exists := c.orderByID[id]
			ok := exists
			switch m.Status {
			case domain.MissionActive:
				ok = o.AssignedMissionID == m.ID
			case domain.MissionCompleted:
				ok = o.Status == domain.OrderDelivered
			case domain.MissionFailed: // its orders went on without it
			}
			c.expect(ok, "I3", order(id), "is listed by %s mission %s and is %q with mission %q, exists %v", m.Status, m.ID, o.Status, o.AssignedMissionID, exists)
		}
	}
}

// standbyDone checks that a mission without orders is COMPLETED only when its drone has
// charged and waited as it was told. F-AMD-06
func (c *checker) standbyDone(m domain.Mission) {
	if !m.Standby() || m.Status != domain.MissionCompleted {
		return
	}
	c.expect(m.LastOrderStopReached(), "I2", mission(m.ID), "is COMPLETED with %d of its %d stops reached, and its drone was to charge or wait at a later one", m.ReachedStops, len(m.Route))
	for i, stop := range m.Route {
		early := stop.Type == domain.WaypointWait && m.EndTime.Before(stop.WaitUntil.Add(-c.ClockTolerance))
		c.expect(!early, "I2", mission(m.ID), "is COMPLETED at %s, and its drone was to wait at stop %d until %s", m.EndTime.Format(time.RFC3339Nano), i, stop.WaitUntil.Format(time.RFC3339Nano))
	}
}

// refused holds the ids of dead-lettered messages.
func (c *checker) refused() map[string]bool {
	ids := make(map[string]bool, len(c.DeadLetters))
	for _, d := range c.DeadLetters {
		if d.Reason != "" {
			ids[d.MessageID] = true
		}
	}
	return ids
}
