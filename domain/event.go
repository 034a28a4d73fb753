package domain

import (
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"
)

// EntityKind names the kind of thing an event is about.
type EntityKind string

const (
	EntityDrone   EntityKind = "drone"
	EntityOrder   EntityKind = "order"
	EntityMission EntityKind = "mission"
)

// Cause says what made a state change.
type Cause string

const (
	CauseTelemetry Cause = "TELEMETRY"
	CauseOrder     Cause = "ORDER"
	CauseDecision  Cause = "DECISION"
	CauseSweeper   Cause = "SWEEPER"
	CauseOperator  Cause = "OPERATOR"
	CauseSetup     Cause = "SETUP"
	CauseCycle     Cause = "CYCLE" // a solve cycle that hands an order over
)

// Event is one state change of one entity. It carries the whole state after the change in the
// fields of its kind. An entity's events, in the order of their revisions, fold to its state.
type Event struct {
	Entity   EntityKind
	ID       string
	Revision int64  // of the entity after the change; 1 is its first; 0 marks a note, which records a refusal and changes nothing
	From     string // status before; empty for a new entity
	To       string // status after
	Cause    Cause
	Reason   string // failure, rejection or operator's reason, if any
	By       string // the person who caused it; empty for machines
	Time     time.Time

	// What it belongs to, as far as it applies.
	DroneID    DroneID
	OrderID    OrderID
	MissionID  MissionID
	DecisionID DecisionID
	CycleID    CycleID

	// State is the rest of the entity's state after the change: see DroneState,
	// OrderState and MissionState. In a note it is what was refused: see
	// RefusedState.
	State map[string]any
}

// The *State maps hold what events record of an entity beside its status. Their
// values are strings, booleans, numbers and times, as in documents.

// DroneState is the drone's binding and flags, and what the registry says of whether it may fly.
func DroneState(d Drone) map[string]any {
	state := map[string]any{
		"currentMissionId": string(d.CurrentMissionID),
		"missionAcked":     d.MissionAcked,
		"missionMoved":     d.MissionMoved,
		"emergencyLatched": d.EmergencyLatched,
		"ghostMissionId":   string(d.GhostMissionID),
		"grounded":         d.Grounded,
		"unregistered":     d.Unregistered,
		"retired":          d.Retired(),
		"otherIdentity":    d.OtherIdentity(),
		"implausible":      d.Implausible,
	}
	if due := d.DueDate(); !due.IsZero() {
		state["dueAt"] = stored(due)
	}
	return state
}

// SameDroneState reports whether two drones have equal states: every report asks it.
func SameDroneState(a, b *Drone) bool {
	return a.CurrentMissionID == b.CurrentMissionID && a.MissionAcked == b.MissionAcked && a.MissionMoved == b.MissionMoved &&
		a.EmergencyLatched == b.EmergencyLatched && a.GhostMissionID == b.GhostMissionID && a.Grounded == b.Grounded &&
		a.Unregistered == b.Unregistered && a.Retired() == b.Retired() && a.OtherIdentity() == b.OtherIdentity() &&
		a.Implausible == b.Implausible && stored(a.DueDate()).Equal(stored(b.DueDate()))
}

// OrderState is the order's assignment and flags.
func OrderState(o Order) map[string]any {
	state := map[string]any{
		"assignedDroneId":   string(o.AssignedDroneID),
		"assignedMissionId": string(o.AssignedMissionID),
		"attempts":          int64(o.Attempts),
		"held":              o.Held,
		"late":              o.Late,
		"contentHash":       o.ContentHash,
		"priority":          o.Priority.String(),
		"deadline":          stateTime(o.Deadline),
		"pinnedDroneId":     string(o.PinnedDroneID),
		"forbiddenDroneIds": joined(o.ForbiddenDroneIDs),
		"releasing":         o.Releasing,
		"planningDepotId":   string(o.PlanningDepotID),
		"handedOverBy":      joined(o.HandedOverBy),
	}
	if !o.Deadline.IsZero() {
		state[deadlineAt] = stored(o.Deadline)
	}
	return state
}

// deadlineAt is the deadline of an order's state as a timestamp. Earlier versions only
// recorded it as text, in the field deadline.
const deadlineAt = "deadlineAt"

// WithDeadline returns an order's state with its deadline as text too, for readers of
// events that recorded the timestamp alone.
func WithDeadline(state map[string]any) map[string]any {
	at, recorded := state[deadlineAt].(time.Time)
	if _, text := state["deadline"]; text || !recorded {
		return state
	}
	both := maps.Clone(state)
	both["deadline"] = stateTime(at)
	return both
}

// joined is a list of ids as a state records it.
func joined[ID ~string](ids []ID) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = string(id)
	}
	return strings.Join(list, ", ")
}

// stateTime is a time as a state records it, to the microsecond, as documents keep
// times; empty for the zero time.
func stateTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return stored(t).Format(time.RFC3339Nano)
}

// stored is a time as documents keep it.
func stored(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// MissionState is the mission's progress.
func MissionState(m Mission) map[string]any {
	var pending int
	if m.Amendment != nil {
		pending = m.Amendment.Revision
	}
	return map[string]any{
		"failureReason":    string(m.FailureReason),
		"reachedStops":     int64(m.ReachedStops),
		"orders":           int64(len(m.OrderIDs)),
		"recalled":         !m.RecalledAt.IsZero(),
		"routeRevision":    int64(m.RouteRevision),
		"proposedRevision": int64(pending),
	}
}

// maxRefusedText bounds each text in a note's state, so that the state has at most 2 KiB.
const maxRefusedText = 256

// RefusedRequester is the field of a note's state that names who sent what was refused.
const RefusedRequester = "refusedRequesterId"

// RefusedState is the state of a note: the content that the order refused, and its hash.
func RefusedState(r OrderRequest) map[string]any {
	if r.Cancel { // it asks for no content
		return map[string]any{"refusedContentHash": r.Hash(), "refusedCancel": true, RefusedRequester: cut(r.RequesterID)}
	}
	state := map[string]any{
		"refusedContentHash": r.Hash(),
		"refusedPriority":    r.Priority.String(),
		"refusedProductType": cut(r.ProductType),
		"refusedWeightKg":    r.WeightKg,
		"refusedColdChain":   r.ColdChain,
		RefusedRequester:     cut(r.RequesterID),
		"refusedDelivery":    positionText(r.Delivery),
	}
	if r.Pickup != nil {
		state["refusedPickup"] = positionText(*r.Pickup)
	}
	if !r.Deadline.IsZero() {
		state["refusedDeadlineAt"] = stored(r.Deadline)
	}
	return state
}

func positionText(p Position) string { return fmt.Sprintf("%g,%g", p.Lat, p.Lon) }

// cut is the beginning of a text, at most maxRefusedText bytes.
func cut(text string) string {
	if len(text) <= maxRefusedText {
		return text
	}
	n := maxRefusedText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
