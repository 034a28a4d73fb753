package invariant

import (
	"github.com/dronefleet/dronefleet/domain"
)

// released checks the part of I1 that concerns amendments: an order that is being taken
// away from a mission leaves it only when the drone has named the new revision, when the
// mission has ended, or by its own end. Its drone may fly to it until then.
func (c *checker) released() {
	for _, e := range c.entities {
		if e.kind != domain.EntityOrder {
			continue
		}
		events := c.events[e]
		for i := 1; i < len(events); i++ {
			was, is := events[i-1], events[i]
			id := domain.MissionID(text(was, "assignedMissionId"))
			if !flag(was, "releasing") || is.To != string(domain.OrderPending) {
				continue
			}
			c.expect(c.letGo(id, is), "I1", e, "left mission %s at revision %d, before the drone named the revision without it", id, is.Revision)
		}
	}
}

// letGo reports whether a mission ended, or put an amendment in force, with an event.
func (c *checker) letGo(id domain.MissionID, with domain.Event) bool {
	events := c.events[mission(id)]
	for i := 1; i < len(events); i++ {
		was, is := events[i-1], events[i]
		ended := is.To != string(domain.MissionActive) && was.To == string(domain.MissionActive)
		named := number(was, "proposedRevision") != 0 && number(is, "routeRevision") == number(was, "proposedRevision")
		if (ended || named) && is.Time.Equal(with.Time) {
			return true
		}
	}
	return false
}
