package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// exclusive checks I1 in three ways: in the final documents, where two ACTIVE
// missions are wrong whatever the clocks say; along the revisions of each drone and
// order, which are in commit order; and by the missions' times, which are not in
// commit order, so that only an overlap beyond the clock tolerance counts.
func (c *checker) exclusive() {
	c.exclusiveNow()
	c.exclusiveByRevision()
	c.exclusiveByTime()
}

func (c *checker) exclusiveNow() {
	holder := make(map[entity]domain.MissionID)
	for _, m := range c.Missions {
		if m.Status != domain.MissionActive {
			continue
		}
		held := []entity{drone(m.DroneID)}
		for _, o := range m.OrderIDs {
			held = append(held, order(o))
		}
		for _, e := range held {
			other, taken := holder[e]
			c.expect(!taken, "I1", e, "is in the ACTIVE missions %s and %s", other, m.ID)
			holder[e] = m.ID
		}
	}
}

func (c *checker) exclusiveByRevision() {
	for _, e := range c.entities {
		var key string
		switch e.kind {
		case domain.EntityDrone:
			key = "currentMissionId"
		case domain.EntityOrder:
			key = "assignedMissionId"
		case domain.EntityMission:
			continue
		}
		events := c.events[e]
		for i := 1; i < len(events); i++ {
			before, after := text(events[i-1], key), text(events[i], key)
			delivered := events[i].To == string(domain.OrderDelivered)                         // by an earlier mission, as late evidence shows
			homebound := e.kind == domain.EntityDrone && c.completed(domain.MissionID(before)) // takes its next mission before it lands
			c.expect(before == "" || after == "" || before == after || delivered || homebound, "I1", e,
				"goes from mission %s straight to %s at revision %d", before, after, events[i].Revision)
		}
	}
}

// completed reports whether a mission was COMPLETED; exclusiveByTime checks when.
func (c *checker) completed(id domain.MissionID) bool {
	return slices.ContainsFunc(c.events[mission(id)], func(e domain.Event) bool { return e.To == string(domain.MissionCompleted) })
}

// interval is the time one drone or order spends in one mission.
type interval struct {
	mission    domain.MissionID
	start, end time.Time
	open       bool // has not ended
}

func (i interval) endsBy(t time.Time) bool { return !i.open && !i.end.After(t) }

func (c *checker) exclusiveByTime() {
	held := make(map[entity][]interval)
	for _, m := range c.Missions {
		span, ok := c.activeSpan(m)
		if !ok {
			continue // I8 reports missing events
		}
		held[drone(m.DroneID)] = append(held[drone(m.DroneID)], span)
		for _, o := range c.everListed(m) {
			held[order(o)] = append(held[order(o)], span)
		}
	}
	for e, spans := range held {
		// It is enough to compare each with the earlier one that ends last.
		slices.SortFunc(spans, func(a, b interval) int {
			return cmp.Or(a.start.Compare(b.start), cmp.Compare(a.mission, b.mission))
		})
		before := spans[0]
		for _, next := range spans[1:] {
			apart := before.endsBy(next.start.Add(c.ClockTolerance)) ||
				next.endsBy(before.start.Add(c.ClockTolerance)) // it was first, started by a clock that is ahead
			c.expect(apart, "I1", e, "is in mission %s until %s and in %s from %s",
				before.mission, clockText(before), next.mission, next.start.Format(time.RFC3339Nano))
			if !before.open && !next.endsBy(before.end) {
				before = next
			}
		}
	}
}

// activeSpan is when a mission was ACTIVE, by its events.
func (c *checker) activeSpan(m domain.Mission) (span interval, ok bool) {
	events := c.events[mission(m.ID)]
	if len(events) == 0 {
		return interval{}, false
	}
	span = interval{mission: m.ID, start: events[0].Time, open: true}
	for _, e := range events {
		if span.open { // what comes after the end is late evidence
			span.end, span.open = e.Time, e.To == string(domain.MissionActive)
		}
	}
	return span, true
}

// everListed lists the orders that a mission had from beginning to end: only a
// cancellation or an amendment removes an order. Those of amendments are left to
// exclusiveByRevision.
func (c *checker) everListed(m domain.Mission) []domain.OrderID {
	amended := c.amended(m.ID)
	ids := slices.Clone(m.OrderIDs)
	for _, o := range c.applied[m.ID].OrderIDs {
		if !slices.Contains(ids, o) {
			ids = append(ids, o)
		}
	}
	return slices.DeleteFunc(ids, func(o domain.OrderID) bool { return amended[o] })
}

func clockText(i interval) string {
	if i.open {
		return "now"
	}
	return i.end.Format(time.RFC3339Nano)
}
