package invariant

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// stopOf is a stop of a mission.
type stopOf struct {
	mission domain.MissionID
	order   domain.OrderID
	kind    domain.WaypointType
}

// putDown checks I10: once the reports of a drone prove that it put a parcel down,
// the order is DELIVERED by that drone's mission, however late the reports came. If
// another drone had picked the parcel up again by then, that is on record.
//
// The proof is what the drone knows it did, so the rule needs neither positions nor
// the order in which reports arrived. A stop counts only after those before it: a
// report that was lost on its way to the server proves nothing.
func (c *checker) putDown() {
	refused := c.refused()
	reported := make(map[stopOf]bool)
	var deliveries []Message // reports of parcels that are being put down
	for _, m := range c.Confirmed {
		if m.Stop == nil || len(m.Stop.Route) == 0 || refused[m.ID] {
			continue
		}
		stop := m.Stop.Route[len(m.Stop.Route)-1]
		of := stopOf{m.Stop.MissionID, stop.OrderID, stop.Type}
		if stop.Type == domain.WaypointHospitalDelivery && !reported[of] {
			deliveries = append(deliveries, m)
		}
		reported[of] = true
	}
	first := make(map[domain.OrderID]Message)
	for _, m := range deliveries {
		id := m.Stop.Route[len(m.Stop.Route)-1].OrderID
		if known, ok := first[id]; c.proves(*m.Stop, reported) && (!ok || m.Timestamp.Before(known.Timestamp)) {
			first[id] = m
		}
	}
	again := make(map[domain.OrderID]bool)
	for _, note := range c.notes {
		if note.Reason == "PICKED_UP_AGAIN" {
			again[note.OrderID] = true
		}
	}
	for id, m := range first {
		o, exists := c.orderByID[id]
		ok := exists && (o.Status == domain.OrderCancelled || again[id] ||
			o.Status == domain.OrderDelivered && o.AssignedMissionID == m.Stop.MissionID)
		c.expect(ok, "I10", order(id), "was put down at %s by mission %s, message %s; it is %q with mission %q, held %t, and nothing on record says that it was picked up again",
			m.Timestamp.Format(time.RFC3339Nano), m.Stop.MissionID, m.ID, o.Status, o.AssignedMissionID, o.Held)
	}
}

// proves reports whether a delivery counts: its mission still has the stop, and the
// stops before it were reported too.
func (c *checker) proves(s StopReport, reported map[stopOf]bool) bool {
	for _, stop := range s.Route {
		if stop.ForOrder() && !reported[stopOf{s.MissionID, stop.OrderID, stop.Type}] {
			return false
		}
	}
	last := s.Route[len(s.Route)-1]
	for _, stop := range c.missionByID[s.MissionID].Route {
		if stop.OrderID == last.OrderID && stop.Type == last.Type {
			return true
		}
	}
	return false // another mission's proof or a cancellation withdrew it
}
