package invariant

import (
	"reflect"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/domain"
)

// transition is a change of status.
type transition struct{ from, to string }

// orderTransitions lists the legal transitions of an order and their causes. A
// transition from a status to itself changes something else: late, held, attempts or
// content.
var orderTransitions = map[transition][]domain.Cause{
	{"", string(domain.OrderPending)}:                                {domain.CauseOrder},
	{"", string(domain.OrderCancelled)}:                              {domain.CauseOrder}, // the cancellation came first
	{string(domain.OrderCancelled), string(domain.OrderPending)}:     {domain.CauseOrder}, // a cancellation by another requester came first
	{string(domain.OrderCancelled), string(domain.OrderCancelled)}:   {domain.CauseOrder}, // or cancellations by both
	{string(domain.OrderPending), string(domain.OrderPending)}:       {domain.CauseOrder, domain.CauseOperator, domain.CauseSweeper, domain.CauseTelemetry, domain.CauseCycle},
	{string(domain.OrderPending), string(domain.OrderDelivered)}:     {domain.CauseTelemetry}, // by late evidence, as the next two
	{string(domain.OrderAssigned), string(domain.OrderDelivered)}:    {domain.CauseTelemetry},
	{string(domain.OrderDelivered), string(domain.OrderDelivered)}:   {domain.CauseTelemetry},
	{string(domain.OrderPending), string(domain.OrderAssigned)}:      {domain.CauseDecision},
	{string(domain.OrderPending), string(domain.OrderCancelled)}:     {domain.CauseOrder, domain.CauseOperator},
	{string(domain.OrderAssigned), string(domain.OrderAssigned)}:     {domain.CauseSweeper, domain.CauseOperator, domain.CauseDecision, domain.CauseTelemetry}, // amended, or not after all
	{string(domain.OrderAssigned), string(domain.OrderInDelivery)}:   {domain.CauseTelemetry},
	{string(domain.OrderAssigned), string(domain.OrderPending)}:      {domain.CauseTelemetry, domain.CauseSweeper},
	{string(domain.OrderAssigned), string(domain.OrderCancelled)}:    {domain.CauseOrder, domain.CauseOperator},
	{string(domain.OrderInDelivery), string(domain.OrderInDelivery)}: {domain.CauseSweeper, domain.CauseOperator},
	{string(domain.OrderInDelivery), string(domain.OrderDelivered)}:  {domain.CauseTelemetry},
	{string(domain.OrderInDelivery), string(domain.OrderPending)}:    {domain.CauseTelemetry, domain.CauseSweeper},
}

var missionTransitions = []transition{
	{"", string(domain.MissionActive)},
	{string(domain.MissionActive), string(domain.MissionActive)}, // stop reached, order dropped
	{string(domain.MissionActive), string(domain.MissionCompleted)},
	{string(domain.MissionActive), string(domain.MissionFailed)},
	{string(domain.MissionFailed), string(domain.MissionFailed)},       // a stop reached, by late evidence
	{string(domain.MissionCompleted), string(domain.MissionCompleted)}, // as above, of an amendment
}

// failures lists the reasons for which a mission may fail, and their causes. Only the
// drone's report proves that a command expired unseen; no timer does.
var failures = map[domain.FailureReason][]domain.Cause{
	domain.FailureNotAcked:       {domain.CauseTelemetry},
	domain.FailureAbortedByDrone: {domain.CauseTelemetry, domain.CauseSweeper},
	domain.FailureDroneFault:     {domain.CauseTelemetry, domain.CauseSweeper},
	domain.FailureContactLost:    {domain.CauseSweeper},
	domain.FailureStalled:        {domain.CauseSweeper},
	domain.FailureRecalled:       {domain.CauseTelemetry, domain.CauseSweeper},
	domain.FailureWithdrawn:      {domain.CauseOrder, domain.CauseOperator, domain.CauseTelemetry},
}

// maxAttempts is the number of failed missions after which an order waits for
// an operator.
const maxAttempts = 3

// legal checks I2.
func (c *checker) legal() {
	for _, e := range c.notes {
		c.expect(e.From == e.To && e.Reason != "", "I2", entity{e.Entity, e.ID}, "a note goes %q -> %q for reason %q; a note changes nothing and gives one", e.From, e.To, e.Reason)
	}
	for _, e := range c.entities {
		events := c.events[e]
		for i, after := range events {
			var before domain.Event // zero: there was nothing
			switch {
			case i > 0 && events[i-1].Revision == after.Revision-1:
				before = events[i-1]
			case after.Revision != 1:
				continue // I8 reports the gap; the state before is unknown
			}
			switch e.kind {
			case domain.EntityDrone:
				c.legalDrone(e, before, after)
			case domain.EntityOrder:
				c.legalOrder(e, before, after)
			case domain.EntityMission:
				c.legalMission(e, before, after)
			default:
				c.expect(false, "I2", e, "is of a kind that has no events")
			}
		}
	}
}

func (c *checker) legalDrone(e entity, before, after domain.Event) {
	is, was := domain.DroneStatus(after.To), domain.DroneStatus(after.From)
	c.expect(slices.Contains(domain.DroneStatuses, is) && is != domain.DroneReserved, "I2", e, "has the status %q at revision %d", after.To, after.Revision)
	if after.Revision == 1 {
		c.expect(was == "" && is == domain.DroneUnknown, "I2", e, "begins as %q -> %q; only \"\" -> UNKNOWN is legal", was, is)
	}
	bound, wasBound := text(after, "currentMissionId"), text(before, "currentMissionId")
	c.expect(bound == "" || is != domain.DroneIdle, "I2", e, "is IDLE while bound to %s at revision %d", bound, after.Revision)
	c.expect(is != domain.DroneIdle || was == is || after.Cause == domain.CauseTelemetry, "I2", e,
		"becomes IDLE by %s at revision %d; only a report makes it so", after.Cause, after.Revision)
	latched, wasLatched := flag(after, "emergencyLatched"), flag(before, "emergencyLatched")
	c.expect(!latched || is == domain.DroneEmergency, "I2", e, "is %s with an emergency that no operator cleared, at revision %d", is, after.Revision)
	c.expect(latched || !wasLatched || after.Cause == domain.CauseOperator, "I2", e,
		"has its emergency cleared by %s at revision %d; only an OPERATOR does", after.Cause, after.Revision)
	grounded, wasGrounded := flag(after, "grounded"), flag(before, "grounded")
	c.expect(grounded == wasGrounded || after.Cause == domain.CauseOperator, "I2", e,
		"is grounded or released by %s at revision %d; only an OPERATOR does", after.Cause, after.Revision)
	if bound != "" && bound != wasBound {
		c.expect(!wasGrounded, "I2", e, "is bound to %s at revision %d though it is grounded", bound, after.Revision)
		ready := was == domain.DroneIdle
		if wasBound != "" { // on its way home
			ready = was == domain.DroneMoving || was == domain.DroneDelivering
		}
		c.expect(after.Cause == domain.CauseDecision && ready && is == domain.DroneMoving, "I2", e,
			"is bound to %s by %s, %s -> %s after %q; only a DECISION binds, an IDLE drone or one on its way home", bound, after.Cause, was, is, wasBound)
		c.expect(!flag(after, "missionAcked") && !flag(after, "missionMoved"), "I2", e,
			"knows mission %s before it could have heard of it", bound)
	} else {
		c.expect(after.Cause != domain.CauseDecision, "I2", e, "is changed by a DECISION that does not bind it, at revision %d", after.Revision)
	}
}

func (c *checker) legalOrder(e entity, before, after domain.Event) {
	is, was := domain.OrderStatus(after.To), domain.OrderStatus(after.From)
	causes, legal := orderTransitions[transition{after.From, after.To}]
	if !c.expect(legal, "I2", e, "goes %q -> %q at revision %d", was, is, after.Revision) {
		return
	}
	c.expect(slices.Contains(causes, after.Cause), "I2", e, "goes %q -> %q by %s at revision %d; want one of %v", was, is, after.Cause, after.Revision, causes)
	c.expect(was != domain.OrderCancelled || text(before, "contentHash") == "", "I2", e, "comes back at revision %d after it was cancelled", after.Revision)
	held, assigned := flag(after, "held"), text(after, "assignedMissionId")
	attempts, attemptsBefore := number(after, "attempts"), number(before, "attempts")
	switch is {
	case domain.OrderPending:
		c.expect(assigned == "", "I2", e, "is PENDING with mission %s at revision %d", assigned, after.Revision)
	case domain.OrderAssigned, domain.OrderInDelivery:
		c.expect(assigned != "" && text(after, "assignedDroneId") != "", "I2", e,
			"is %s without mission or drone at revision %d", is, after.Revision)
	case domain.OrderSolving, domain.OrderDelivered, domain.OrderCancelled: // bound or not
	}
	switch (transition{after.From, after.To}) {
	case transition{string(domain.OrderPending), string(domain.OrderAssigned)}:
		c.expect(!flag(before, "held"), "I2", e, "is assigned at revision %d though it is held", after.Revision)
		drone, pinned := text(after, "assignedDroneId"), text(before, "pinnedDroneId")
		c.expect(pinned == "" || pinned == drone, "I2", e, "is assigned to %s at revision %d though it is pinned to %s", drone, after.Revision, pinned)
		forbidden := strings.Split(text(before, "forbiddenDroneIds"), ", ")
		c.expect(!slices.Contains(forbidden, drone), "I2", e, "is assigned to %s at revision %d though that is forbidden", drone, after.Revision)
	case transition{string(domain.OrderPending), string(domain.OrderPending)}:
		c.expect(held || !flag(before, "held") || after.Cause == domain.CauseOperator, "I2", e,
			"is released by %s at revision %d; only an OPERATOR does", after.Cause, after.Revision)
		c.expect(after.Cause != domain.CauseTelemetry || held && !flag(before, "held"), "I2", e,
			"is changed by a report at revision %d; a report only holds it, for its parcel is aboard", after.Revision)
	case transition{string(domain.OrderAssigned), string(domain.OrderDelivered)}:
		c.expect(assigned != text(before, "assignedMissionId"), "I2", e, "is delivered by mission %s without its pickup at revision %d", assigned, after.Revision)
	case transition{string(domain.OrderDelivered), string(domain.OrderDelivered)}:
		c.expect(onlyChanged(before, after, "late"), "I2", e, "changes more than late while %s at revision %d", is, after.Revision)
	case transition{string(domain.OrderAssigned), string(domain.OrderPending)}:
		if slices.Contains([]string{string(domain.FailureRecalled), "AMENDMENT_VOID", "RELEASED"}, after.Reason) {
			c.expect(attempts == attemptsBefore && !held, "I2", e, "returns from a recalled or amended mission with attempts %d after %d, held %v; want the same, not held", attempts, attemptsBefore, held)
			break
		}
		c.expect(attempts == attemptsBefore+1 && (held || attempts < maxAttempts), "I2", e,
			"returns with attempts %d after %d, held %v; want one more, held from the %drd", attempts, attemptsBefore, held, maxAttempts)
	case transition{string(domain.OrderInDelivery), string(domain.OrderPending)}:
		c.expect(held, "I2", e, "returns from delivery without being held; the parcel is aboard")
	case transition{string(domain.OrderAssigned), string(domain.OrderAssigned)},
		transition{string(domain.OrderInDelivery), string(domain.OrderInDelivery)}:
		mayChange := []string{"late"}
		if after.Cause == domain.CauseOperator {
			mayChange = append(mayChange, "priority", "deadline", "deadlineAt", "pinnedDroneId", "forbiddenDroneIds")
		}
		if after.Cause == domain.CauseDecision || after.Cause == domain.CauseTelemetry {
			mayChange = []string{"releasing"} // by an amendment, or because it is void
		}
		c.expect(onlyChanged(before, after, mayChange...), "I2", e, "changes more than %v while %s at revision %d", mayChange, is, after.Revision)
	}
	for _, key := range []string{"pinnedDroneId", "forbiddenDroneIds"} {
		c.expect(after.Cause == domain.CauseOperator || text(after, key) == text(before, key), "I2", e, "gets another %s by %s at revision %d", key, after.Cause, after.Revision)
	}
	c.legalPlanningDepot(e, before, after)
	for _, key := range []string{"priority", "deadline"} {
		byRequest := after.Cause == domain.CauseOrder || after.Cause == domain.CauseOperator
		c.expect(byRequest || text(before, key) == "" || text(after, key) == text(before, key), "I2", e, "gets another %s by %s at revision %d", key, after.Cause, after.Revision)
	}
}

// legalPlanningDepot checks who plans an order from now on. Only a cycle hands it over, away
// from the depot that plans it and to none that did before.
func (c *checker) legalPlanningDepot(e entity, before, after domain.Event) {
	_, known := before.State["planningDepotId"]
	if _, recorded := after.State["planningDepotId"]; !known || !recorded {
		return // an earlier version wrote it
	}
	was, is := text(before, "planningDepotId"), text(after, "planningDepotId")
	earlier, later := list(before, "handedOverBy"), list(after, "handedOverBy")
	if after.Cause == domain.CauseCycle {
		c.expect(was != "" && is != was && !slices.Contains(earlier, is) && slices.Equal(later, append(earlier, was)) && len(later) <= domain.MaxHandOvers, "I2", e,
			"is handed over from depot %q to %q at revision %d, by %v after %v", was, is, after.Revision, later, earlier)
		return
	}
	if is == was && slices.Equal(later, earlier) {
		return
	}
	legal := after.Cause == domain.CauseOrder || after.Cause == domain.CauseSweeper
	c.expect(legal && after.To == string(domain.OrderPending) && len(later) == 0, "I2", e,
		"gets planning depot %q, handed over by %v, by %s at revision %d", is, later, after.Cause, after.Revision)
}

// list is a list of ids in an event's state.
func list(e domain.Event, key string) []string {
	if joined := text(e, key); joined != "" {
		return strings.Split(joined, ", ")
	}
	return nil
}

// onlyChanged reports whether nothing but the named parts of a state changed. What an
// earlier version did not record is not known to have changed.
func onlyChanged(before, after domain.Event, names ...string) bool {
	for key, value := range after.State {
		_, known := before.State[key]
		if !known && slices.Contains(laterFields, key) {
			continue
		}
		if !slices.Contains(names, key) && !reflect.DeepEqual(plain(value), plain(before.State[key])) { // newer versions may record lists and maps
			return false
		}
	}
	return true
}

func (c *checker) legalMission(e entity, before, after domain.Event) {
	if !c.expect(slices.Contains(missionTransitions, transition{after.From, after.To}), "I2", e,
		"goes %q -> %q at revision %d", after.From, after.To, after.Revision) {
		return
	}
	reason := text(after, "failureReason")
	switch {
	case after.From == string(domain.MissionFailed):
		c.expect(after.Cause == domain.CauseTelemetry && reason == text(before, "failureReason"), "I2", e,
			"is changed after its failure by %s, from %q to %q; only a report adds a stop", after.Cause, text(before, "failureReason"), reason)
	case after.To == string(domain.MissionFailed):
		c.expect(slices.Contains(failures[domain.FailureReason(reason)], after.Cause), "I2", e, "is FAILED by %s with failure reason %q", after.Cause, reason)
	case after.From == after.To && after.Cause == domain.CauseOperator:
		c.expect(!flag(before, "recalled") && flag(after, "recalled") || number(after, "orders") < number(before, "orders"), "I2", e,
			"is changed by an OPERATOR at revision %d, who neither recalls it nor cancels an order", after.Revision)
	default:
		c.expect(reason == "", "I2", e, "is %s with failure reason %q", after.To, reason)
	}
	c.expect(after.From != "" || after.Cause == domain.CauseDecision, "I2", e, "is begun by %s; only a DECISION begins a mission", after.Cause)
	recalled, wasRecalled := flag(after, "recalled"), flag(before, "recalled")
	c.expect(recalled == wasRecalled || recalled && after.Cause == domain.CauseOperator, "I2", e, "is recalled %t by %s at revision %d", recalled, after.Cause, after.Revision)
	c.expect(reason != string(domain.FailureRecalled) || recalled, "I2", e, "is FAILED as RECALLED, and nobody recalled it")
	amended := number(after, "routeRevision") != number(before, "routeRevision")
	c.expect(amended || number(after, "reachedStops") >= number(before, "reachedStops"), "I2", e,
		"goes back from stop %d to %d", number(before, "reachedStops"), number(after, "reachedStops"))
}
