package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
)

// The phases of lifecycles. An order's and a mission's are its statuses, but
// for a held order's; a drone's are what binds it rather than what it does.
const (
	phaseHeld     = "HELD"      // PENDING, and held
	phaseNotReady = "NOT_READY" // unbound with any status but IDLE
	phaseIdle     = "IDLE"      // unbound and offered to the optimizer
	phaseAssigned = "ASSIGNED"  // bound, and it has not named its mission yet
	phaseFlying   = "FLYING"    // bound and acked, with stops to go
	phaseHomeward = "HOMEWARD"  // bound, and its mission is completed
)

// phase is where a drone stands in its lifecycle; empty for none.
func (w *world) phase(d domain.Drone) string {
	switch {
	case d.ID == "":
		return ""
	case d.Bound() && w.missions[d.CurrentMissionID].Status != domain.MissionActive:
		return phaseHomeward
	case d.Bound() && d.MissionAcked:
		return phaseFlying
	case d.Bound():
		return phaseAssigned
	case d.Status == domain.DroneIdle:
		return phaseIdle
	}
	return phaseNotReady
}

// edge is a step of a lifecycle as its diagram shows it.
type edge struct{ from, to, label string }

func (e edge) key(kind domain.EntityKind) string {
	return fmt.Sprintf("%s: %s → %s", kind, e.from, e.to)
}

// diagrams hold every step that a lifecycle can take, and no other.
var diagrams = map[domain.EntityKind][]edge{
	domain.EntityDrone: {
		{"", phaseNotReady, "first report or setup"},
		{"", phaseIdle, "first report, fresh and IDLE"},
		{phaseNotReady, phaseIdle, "fresh report of IDLE"},
		{phaseIdle, phaseNotReady, "any other status, 15 s of silence, or it names a mission it just failed"},
		{phaseIdle, phaseAssigned, "decision"},
		{phaseAssigned, phaseFlying, "names its mission"},
		{phaseAssigned, phaseHomeward, "names it where all its stops are"},
		{phaseAssigned, phaseIdle, "IDLE after freeAfter, not naming it: NOT_ACKED"},
		{phaseAssigned, phaseNotReady, "a fault, silence, stall or withdrawal"},
		{phaseFlying, phaseHomeward, "last order stop reached, or the rest withdrawn"},
		{phaseFlying, phaseIdle, "IDLE, not naming it: COMPLETED, or after 30 s ABORTED_BY_DRONE"},
		{phaseFlying, phaseNotReady, "charges, not naming it, 30 s of fault, silence, stall or withdrawal"},
		{phaseHomeward, phaseIdle, "IDLE"},
		{phaseHomeward, phaseNotReady, "charges, 30 s of fault, or silence"},
	},
	domain.EntityOrder: {
		{"", "PENDING", "order message"},
		{"", "CANCELLED", "cancellation that overtook the order"},
		{"PENDING", "PENDING", "other content, or late"},
		{"PENDING", "HELD", "operator holds it, or a late report shows that the parcel is aboard"},
		{"HELD", "HELD", "other content, or late"},
		{"HELD", "PENDING", "operator releases it"},
		{"PENDING", "ASSIGNED", "decision"},
		{"ASSIGNED", "ASSIGNED", "late"},
		{"ASSIGNED", "IN_DELIVERY", "pickup reached"},
		{"ASSIGNED", "PENDING", "mission failed or recalled"},
		{"ASSIGNED", "HELD", "mission failed, the third time"},
		{"IN_DELIVERY", "IN_DELIVERY", "late"},
		{"IN_DELIVERY", "DELIVERED", "delivery reached"},
		{"IN_DELIVERY", "HELD", "mission failed, the parcel is aboard"},
		{"PENDING", "CANCELLED", "cancelled"},
		{"HELD", "CANCELLED", "cancelled"},
		{"ASSIGNED", "CANCELLED", "cancelled"},
		{"CANCELLED", "PENDING", "the order, if another requester's cancellation overtook it"},
		{"CANCELLED", "CANCELLED", "cancelled by both"},
		{"PENDING", "DELIVERED", "late report of its delivery, after a release"},
		{"HELD", "DELIVERED", "late report of its delivery by a failed mission"},
		{"ASSIGNED", "DELIVERED", "late report of its delivery by an earlier mission"},
		{"DELIVERED", "DELIVERED", "late report of an earlier delivery"},
	},
	domain.EntityMission: {
		{"", "ACTIVE", "decision"},
		{"ACTIVE", "ACTIVE", "a stop reached, one order of several withdrawn, or recalled"},
		{"ACTIVE", "COMPLETED", "last order stop reached, or what was left of them withdrawn"},
		{"ACTIVE", "FAILED", "NOT_ACKED, ABORTED_BY_DRONE, DRONE_FAULT, CONTACT_LOST, STALLED, WITHDRAWN, RECALLED"},
		{"FAILED", "FAILED", "late report of a stop reached"},
	},
}

// TestDiagrams compares what the diagrams show with what the stories, tables
// and scenarios come to.
func TestDiagrams(t *testing.T) {
	drawn := map[string]bool{}
	for kind, edges := range diagrams {
		for _, e := range edges {
			drawn[e.key(kind)] = true
		}
	}
	taken := movesTaken()
	for _, m := range slices.Sorted(maps.Keys(taken)) {
		if !drawn[m] {
			t.Errorf("not in the diagram, but taken: %s", m)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(drawn)) {
		if !taken[m] {
			t.Errorf("in the diagram, but never taken: %s", m)
		}
	}
}

func movesTaken() map[string]bool {
	taken := map[string]bool{}
	for _, h := range hazards {
		w := newWorld(contract())
		h.story(w)
		maps.Copy(taken, w.moves)
	}
	for state, build := range orderStates {
		if state == "SOLVING" { // never ours
			continue
		}
		for _, happen := range orderEvents {
			w := newWorld(contract())
			build(w)
			happen(w)
			maps.Copy(taken, w.moves)
		}
	}
	for _, build := range missionStates {
		for _, happen := range missionEvents {
			w := newWorld(contract())
			build(w)
			happen(w)
			maps.Copy(taken, w.moves)
		}
	}
	for seed := range 200 {
		maps.Copy(taken, scenarioGenerator.Example(seed).happen(contract()).moves)
	}
	return taken
}

// mermaid draws a diagram.
func mermaid(edges []edge) string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	leads := map[string]bool{}
	for _, e := range edges {
		leads[e.from] = leads[e.from] || e.to != e.from
		from := e.from
		if from == "" {
			from = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", from, e.to, strings.ReplaceAll(e.label, ": ", " – "))
	}
	ends := map[string]bool{}
	for _, e := range edges {
		if !leads[e.to] && !ends[e.to] {
			ends[e.to] = true
			fmt.Fprintf(&b, "    %s --> [*]\n", e.to)
		}
	}
	b.WriteString("```\n")
	return b.String()
}
