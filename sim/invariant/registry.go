package invariant

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// barring are the states of a drone in which no decision may be about it.
var barring = []string{"unregistered", "retired", "otherIdentity"}

// registered checks I12: no decision is about a drone that is unregistered, retired or of another
// identity, none gives orders to one that is due for maintenance at a date, and no report registers
// or revives a drone.
func (c *checker) registered() {
	for _, e := range c.entities {
		if e.kind == domain.EntityDrone {
			c.bindings(e)
		}
	}
	for _, row := range c.Ledger {
		if row.Outcome == domain.OutcomeApplied && row.AmendsMissionID != "" {
			c.amends(row)
		}
	}
	for _, d := range c.Drones {
		begins := c.events[drone(d.ID)]
		unknown := len(begins) > 0 && begins[0].Revision == 1 && begins[0].Cause == domain.CauseTelemetry
		c.expect(!unknown || begins[0].State["unregistered"] != false, "I12", drone(d.ID), "is registered by its first report")
	}
}

// bindings checks what a drone was when decisions bound it, and who changed that.
func (c *checker) bindings(e entity) {
	var before domain.Event
	for _, after := range c.events[e] {
		binds := text(after, "currentMissionId") != "" && text(after, "currentMissionId") != text(before, "currentMissionId")
		for _, key := range barring {
			was, is := flag(before, key), flag(after, key)
			c.expect(!binds || !was || c.allowed(key), "I12", e, "is bound by a decision at revision %d though it is %s", after.Revision, key)
			byPerson := after.Cause == domain.CauseOperator || after.Cause == domain.CauseSetup
			c.expect(!was || is || byPerson || key == "otherIdentity", "I12", e, "is no longer %s by %s at revision %d; only an operator does that", key, after.Cause, after.Revision)
		}
		retires := flag(after, "retired") && !flag(before, "retired") && before.Revision > 0
		c.expect(!retires || text(after, "currentMissionId") == "", "I12", e, "is retired at revision %d though it has mission %s", after.Revision, text(after, "currentMissionId"))
		due, recorded := before.State["dueAt"].(time.Time)
		c.expect(!binds || !recorded || after.Time.Before(due), "I12", e, "is bound by a decision at revision %d though an item was due at %s", after.Revision, due)
		before = after
	}
}

// amends checks what a drone was when its mission was amended. An amendment writes no event of the
// drone, so only what held during the whole clock tolerance counts.
func (c *checker) amends(row domain.LedgerEntry) {
	during := c.eventsDuring(drone(row.DroneID), row.AppliedAt.Add(-c.ClockTolerance), row.AppliedAt.Add(c.ClockTolerance))
	if len(during) == 0 {
		return // I8 reports missing events
	}
	always := func(is func(domain.Event) bool) bool {
		return !slices.ContainsFunc(during, func(e domain.Event) bool { return !is(e) })
	}
	for _, key := range barring {
		c.expect(!always(func(e domain.Event) bool { return flag(e, key) }) || c.allowed(key), "I12", decision(row.ID),
			"amends mission %s of drone %s, which is %s", row.AmendsMissionID, row.DroneID, key)
	}
	overdue := always(func(e domain.Event) bool {
		due, recorded := e.State["dueAt"].(time.Time)
		return recorded && due.Add(c.ClockTolerance).Before(row.AppliedAt)
	})
	c.expect(!overdue || len(row.AddedIDs) == 0, "I12", decision(row.ID), "gives the orders %v to drone %s, which is due for maintenance", row.AddedIDs, row.DroneID)
}

// allowed reports whether the fleet gives missions to drones in such a state.
func (c *checker) allowed(key string) bool { return key == "unregistered" && c.PlansUnregistered }

// eventsDuring are an entity's events from one time to another, and the one before them.
func (c *checker) eventsDuring(e entity, from, to time.Time) (during []domain.Event) {
	for _, event := range c.events[e] {
		switch {
		case !event.Time.After(from):
			during = []domain.Event{event}
		case !event.Time.After(to):
			during = append(during, event)
		}
	}
	return during
}
