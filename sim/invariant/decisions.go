package invariant

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// oneOutcome checks I6: each decision has one ledger row; an applied decision has
// one mission, a rejected one has none; and every mission comes from a decision.
func (c *checker) oneOutcome() {
	rows := make(map[domain.DecisionID]domain.LedgerEntry, len(c.Ledger))
	for _, row := range c.Ledger {
		first, again := rows[row.ID]
		c.expect(!again, "I6", decision(row.ID), "has two outcomes, %s and %s", first.Outcome, row.Outcome)
		rows[row.ID] = row
		switch row.Outcome {
		case domain.OutcomeApplied:
			_, exists := c.missionByID[row.MissionID]
			c.expect(exists && row.Reason == "", "I6", decision(row.ID),
				"is APPLIED as mission %q, which exists: %v, with reason %q", row.MissionID, exists, row.Reason)
		case domain.OutcomeRejected:
			c.expect(row.Reason != "", "I6", decision(row.ID), "is REJECTED without a reason")
		default:
			c.expect(false, "I6", decision(row.ID), "has the outcome %q", row.Outcome)
		}
	}
	for _, m := range c.Missions {
		row, decided := rows[m.DecisionID]
		c.expect(decided && row.Outcome == domain.OutcomeApplied && row.MissionID == m.ID, "I6", mission(m.ID),
			"comes from decision %q, whose outcome is %q with mission %q", m.DecisionID, row.Outcome, row.MissionID)
	}
}

// allOrNothing checks I7: an applied decision created its mission, bound its drone
// and assigned each of its orders, once each and at one time; any other decision
// had no effect.
func (c *checker) allOrNothing() {
	effects := make(map[domain.DecisionID][]domain.Event)
	for _, e := range c.entities {
		for _, event := range c.events[e] {
			if event.Cause == domain.CauseDecision {
				effects[event.DecisionID] = append(effects[event.DecisionID], event)
			}
		}
	}
	for _, row := range c.Ledger {
		got := effects[row.ID]
		delete(effects, row.ID)
		if row.Outcome != domain.OutcomeApplied {
			c.expect(len(got) == 0, "I7", decision(row.ID), "is %s and yet has %d effects", row.Outcome, len(got))
			continue
		}
		c.wholeEffect(row, got)
	}
	for id, got := range effects {
		c.expect(false, "I7", decision(id), "has %d effects and no row in the ledger", len(got))
	}
}

func (c *checker) wholeEffect(row domain.LedgerEntry, got []domain.Event) {
	if row.AmendsMissionID != "" {
		c.wholeAmendment(row, got)
		return
	}
	want := []entity{mission(row.MissionID), drone(row.DroneID)}
	for _, o := range row.OrderIDs {
		want = append(want, order(o))
	}
	for _, e := range want {
		n := 0
		for _, event := range got {
			if event.Entity == e.kind && event.ID == e.id && isEffect(event, row) {
				n++
			}
		}
		c.expect(n == 1, "I7", decision(row.ID), "is APPLIED and gave %s to %s %d times, want once", row.MissionID, e, n)
	}
	c.expect(len(got) == len(want), "I7", decision(row.ID), "has %d effects, want %d: mission, drone and %d orders",
		len(got), len(want), len(row.OrderIDs))
	for _, event := range got[min(1, len(got)):] {
		c.expect(event.Time.Equal(got[0].Time), "I7", decision(row.ID), "took effect at %s and at %s",
			got[0].Time.Format(time.RFC3339Nano), event.Time.Format(time.RFC3339Nano))
	}
	amended := c.amended(row.MissionID)
	for _, o := range c.missionByID[row.MissionID].OrderIDs {
		c.expect(slices.Contains(row.OrderIDs, o) || amended[o], "I7", decision(row.ID), "made a mission that also lists order %s", o)
	}
}

// wholeAmendment checks that an applied amendment proposed its revision, bound the orders
// that it adds and marked those that it takes away, once each. Nothing else changed.
func (c *checker) wholeAmendment(row domain.LedgerEntry, got []domain.Event) {
	counts := map[entity]int{}
	for _, event := range got {
		ok := false
		switch id := domain.OrderID(event.ID); event.Entity {
		case domain.EntityMission:
			ok = event.ID == string(row.AmendsMissionID) && number(event, "proposedRevision") == int64(row.Revision)
		case domain.EntityOrder:
			ok = event.To == string(domain.OrderAssigned) && text(event, "assignedMissionId") == string(row.AmendsMissionID) &&
				(slices.Contains(row.AddedIDs, id) && !flag(event, "releasing") || slices.Contains(row.ReleasedIDs, id) && flag(event, "releasing"))
		case domain.EntityDrone:
		}
		c.expect(ok, "I7", decision(row.ID), "amends %s, and changed %s %s", row.AmendsMissionID, event.Entity, event.ID)
		counts[entity{event.Entity, event.ID}]++
	}
	want := []entity{mission(row.AmendsMissionID)}
	for _, o := range slices.Concat(row.AddedIDs, row.ReleasedIDs) {
		want = append(want, order(o))
	}
	for _, e := range want {
		c.expect(counts[e] == 1, "I7", decision(row.ID), "amends %s and changed %s %d times, want once", row.AmendsMissionID, e, counts[e])
	}
}

// amended is the orders that amendments gave to a mission or took away from it.
func (c *checker) amended(id domain.MissionID) map[domain.OrderID]bool {
	changed := map[domain.OrderID]bool{}
	for _, row := range c.Ledger {
		if row.AmendsMissionID == id && row.Outcome == domain.OutcomeApplied {
			for _, o := range slices.Concat(row.AddedIDs, row.ReleasedIDs) {
				changed[o] = true
			}
		}
	}
	return changed
}

// isEffect reports whether an event is the effect that the decision has on an entity
// of its kind.
func isEffect(event domain.Event, row domain.LedgerEntry) bool {
	switch event.Entity {
	case domain.EntityMission:
		return event.To == string(domain.MissionActive) && event.Revision == 1
	case domain.EntityDrone:
		return event.To == string(domain.DroneMoving) && text(event, "currentMissionId") == string(row.MissionID)
	case domain.EntityOrder:
		return event.To == string(domain.OrderAssigned) && text(event, "assignedMissionId") == string(row.MissionID) &&
			text(event, "assignedDroneId") == string(row.DroneID)
	}
	return false
}
