package invariant

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// registered checks I12: no decision binds a drone that is unregistered, retired, due for
// maintenance at a date, or of another identity, and no report registers or revives one.
func (c *checker) registered() {
	for _, e := range c.entities {
		if e.kind != domain.EntityDrone {
			continue
		}
		var before domain.Event
		for _, after := range c.events[e] {
			binds := text(after, "currentMissionId") != "" && text(after, "currentMissionId") != text(before, "currentMissionId")
			for _, key := range []string{"unregistered", "retired", "otherIdentity"} {
				was, is := flag(before, key), flag(after, key)
				c.expect(!binds || !was || key == "unregistered" && c.PlansUnregistered, "I12", e, "is bound by a decision at revision %d though it is %s", after.Revision, key)
				byPerson := after.Cause == domain.CauseOperator || after.Cause == domain.CauseSetup
				c.expect(!was || is || byPerson || key == "otherIdentity", "I12", e, "is no longer %s by %s at revision %d; only an operator does that", key, after.Cause, after.Revision)
			}
			due, recorded := before.State["dueAt"].(time.Time)
			c.expect(!binds || !recorded || after.Time.Before(due), "I12", e, "is bound by a decision at revision %d though an item was due at %s", after.Revision, due)
			before = after
		}
	}
	for _, d := range c.Drones {
		begins := c.events[drone(d.ID)]
		unknown := len(begins) > 0 && begins[0].Revision == 1 && begins[0].Cause == domain.CauseTelemetry
		c.expect(!unknown || begins[0].State["unregistered"] != false, "I12", drone(d.ID), "is registered by its first report")
	}
}
