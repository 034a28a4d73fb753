package invariant

import (
	"maps"
	"slices"

	"github.com/dronefleet/dronefleet/domain"
)

// fold checks I8: each entity's events are numbered 1 to n without gaps or
// duplicates, each begins where the one before ended, and the last one agrees with
// the document.
func (c *checker) fold() {
	for _, e := range c.entities {
		events := c.events[e]
		for i, event := range events {
			if !c.expect(event.Revision == int64(i+1), "I8", e, "has revision %d as event %d of %d", event.Revision, i+1, len(events)) {
				break
			}
			if i > 0 {
				c.expect(event.From == events[i-1].To, "I8", e, "leaves %q at revision %d, but was %q", event.From, event.Revision, events[i-1].To)
			} else {
				c.expect(event.From == "", "I8", e, "leaves %q at its first revision", event.From)
			}
		}
	}
	documents := make(map[entity]bool)
	for _, d := range c.Drones {
		documents[drone(d.ID)] = true
		c.foldsTo(drone(d.ID), d.Revision, string(d.Status), domain.DroneState(d))
	}
	for _, o := range c.Orders {
		documents[order(o.ID)] = true
		c.foldsTo(order(o.ID), o.Revision, string(o.Status), domain.OrderState(o))
	}
	for _, m := range c.Missions {
		documents[mission(m.ID)] = true
		c.foldsTo(mission(m.ID), m.Revision, string(m.Status), domain.MissionState(m))
	}
	for _, e := range c.entities {
		c.expect(documents[e], "I8", e, "has %d events and no document", len(c.events[e]))
	}
}

// laterFields are the parts of a state that earlier versions did not record.
var laterFields = []string{
	"grounded", "recalled", "priority", "deadline", "deadlineAt", "pinnedDroneId", "forbiddenDroneIds", "releasing", "routeRevision", "proposedRevision",
	"planningDepotId", "handedOverBy", "unregistered", "retired", "otherIdentity", "dueAt", "implausible",
}

func (c *checker) foldsTo(e entity, revision int64, status string, state map[string]any) {
	events := c.events[e]
	if !c.expect(len(events) > 0, "I8", e, "has a document and no events") {
		return
	}
	last := events[len(events)-1]
	c.expect(last.Revision == revision, "I8", e, "is at revision %d, its events end at %d", revision, last.Revision)
	c.expect(last.To == status, "I8", e, "is %q, its events fold to %q", status, last.To)
	for _, key := range slices.Sorted(maps.Keys(state)) {
		want, got := plain(state[key]), plain(last.State[key])
		if got == nil && slices.Contains(laterFields, key) {
			continue // its last change was made by an earlier version
		}
		c.expect(got == want, "I8", e, "has %s %v, its events fold to %v", key, want, got)
	}
}
