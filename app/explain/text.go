package explain

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/terminal"
	"github.com/dronefleet/dronefleet/solver"
)

// WriteText writes an explanation for people.
func WriteText(w io.Writer, x OrderExplanation) error {
	var b strings.Builder
	say := func(format string, args ...any) {
		b.WriteString(terminal.Escape(fmt.Sprintf(format, args...)) + "\n")
	}
	clockTime := clockOf(x.ReadTime)
	outcome := func(f planner.Outcome) string { return outcomeText(f, clockTime) }
	say("Order %s: %s, %.1f kg, due %s UTC; %s.", x.OrderID, x.Priority, x.WeightKg, clockTime(x.Deadline), x.Outcome)
	say("At %s UTC it was %s, nearest to depot %s.", x.ReadTime.Format(time.DateTime), x.Status, x.DepotID)
	if x.Recorded != "" {
		say("Cycle %s recorded: %s.", x.RecordedByCycle, x.Recorded)
	}
	if x.Why == nil {
		say("It was aboard: no other drone could take it. Give --at with an earlier time.")
		_, err := io.WriteString(w, b.String())
		return err
	}
	assigned := x.Status == string(domain.OrderAssigned)
	switch {
	case assigned:
		say("Its mission: %s. The others, if that drone did not have it:", outcome(x.Why.Plan))
	case x.Held:
		say("It was held. If it were released, a new plan of that moment: %s.", outcome(x.Why.Plan))
		say("%s", soonest(x, clockTime))
	default:
		say("A new plan of that moment: %s.", outcome(x.Why.Plan))
		say("%s", soonest(x, clockTime))
	}
	if x.LearnedUntil != nil {
		say("Plans of that moment use speeds, stays and delays learned until %s UTC; the cycles of that time knew less.", x.LearnedUntil.Format(time.DateTime))
	}
	say("")
	if len(x.Why.Nearest) == 0 {
		say("%s", noDrone(x.Why.Plan))
	} else if err := writeNearest(&b, x.Why.Nearest, clockTime); err != nil {
		return err
	}
	if x.Why.Instead != nil {
		say("")
		say("With the first that lacks nothing: %s.", outcome(x.Why.Instead.Plan))
		sayChanges(say, *x.Why.Instead, outcome)
	}
	if x.Why.WhatIf != nil {
		say("")
		say("What if: %s.", outcome(x.Why.WhatIf.Plan))
		sayChanges(say, *x.Why.WhatIf, outcome)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// soonest says when any drone could deliver the order.
func soonest(x OrderExplanation, clockTime func(time.Time) string) string {
	if x.EarliestArrival == nil {
		return "No drone of the fleet could deliver it, however long it waits."
	}
	late := "in time"
	if by := x.EarliestArrival.Sub(x.Deadline); by > 0 {
		late = fmt.Sprintf("%.1f min late", by.Minutes())
	}
	return fmt.Sprintf("The earliest that any drone could deliver it: drone %s at %s UTC, %s.", x.EarliestDroneID, clockTime(*x.EarliestArrival), late)
}

// noDrone says why no drone is listed.
func noDrone(plan planner.Outcome) string {
	if plan.Reason == string(solver.NoCompatibleWarehouse) {
		return "No drone can fly it: no warehouse supplies the product, with cold storage if the order needs that."
	}
	return "No drone of the area could fly it alone."
}

// writeNearest writes what each of the nearest drones lacks.
func writeNearest(w io.Writer, nearest []planner.Candidate, clockTime func(time.Time) string) error {
	if _, err := io.WriteString(w, "The nearest drones, each with a flight for this order alone:\n"); err != nil {
		return err
	}
	var table terminal.Table
	table.Row("DRONE", "DOING", "KM", "ARRIVES", "LACKS")
	for _, c := range nearest {
		lacks := strings.Join(c.Lacks, "; ")
		if lacks == "" {
			lacks = "nothing"
		}
		if c.JoinArrival != nil {
			lacks += fmt.Sprintf("; on its mission it could deliver at %s, and fly %.1f min longer", clockTime(*c.JoinArrival), c.JoinMinutes)
		}
		table.Row(string(c.DroneID), c.Doing, fmt.Sprintf("%.1f", c.Km), clockTime(c.Arrival), lacks)
	}
	_, err := table.WriteTo(w)
	return err
}

func sayChanges(say func(format string, args ...any), in planner.Alternative, outcome func(planner.Outcome) string) {
	if in.WorseCount+in.BetterCount == 0 {
		say("  no other order would change")
	}
	for _, part := range []struct {
		what  string
		count int
		list  []planner.Change
	}{{"worse", in.WorseCount, in.Worse}, {"better", in.BetterCount, in.Better}} {
		for _, c := range part.list {
			say("  %s for %s order %s: %s; before: %s", part.what, c.Priority, c.OrderID, outcome(c.After), outcome(c.Before))
		}
		if more := part.count - len(part.list); more > 0 {
			say("  %s for %d more orders", part.what, more)
		}
	}
}

// outcomeText says what a plan does with an order.
func outcomeText(f planner.Outcome, clockTime func(time.Time) string) string {
	drone := "drone " + string(f.DroneID)
	if f.MissionID != "" {
		drone += ", on mission " + string(f.MissionID) + ","
	}
	switch {
	case f.Arrival == nil && f.DroneID != "": // a mission without times
		return drone + " delivers it"
	case f.Arrival == nil && f.Drones != "":
		return "it waits, " + f.Reason + "; " + f.Drones
	case f.Arrival == nil:
		return "it waits, " + f.Reason
	case f.LateMinutes > 0:
		return fmt.Sprintf("%s delivers at %s UTC, %.1f min late", drone, clockTime(*f.Arrival), f.LateMinutes)
	}
	return fmt.Sprintf("%s delivers at %s UTC, in time", drone, clockTime(*f.Arrival))
}

// clockOf returns how times near another one are shown: those of the same day without it.
func clockOf(near time.Time) func(time.Time) string {
	day := near.UTC().Format(time.DateOnly)
	return func(t time.Time) string {
		if t = t.UTC(); t.Format(time.DateOnly) == day {
			return t.Format(time.TimeOnly)
		}
		return t.Format(time.DateTime)
	}
}
