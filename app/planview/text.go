package planview

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/internal/terminal"
	"github.com/dronefleet/dronefleet/solver"
)

// WriteText writes a plan as text for people: every route with time, distance and
// charge at each stop, then the unserved orders with their reasons, then what the
// solver ignored.
func WriteText(w io.Writer, p solver.Problem, plan solver.Plan) error {
	o, invalid := plan.Objective, ""
	if n := countInvalid(p, plan, &o); n > 0 {
		invalid = fmt.Sprintf(" (%d of them invalid)", n)
	}
	routes := "routes"
	if len(plan.Routes) == 1 {
		routes = "route"
	}
	fmt.Fprintf(w, "%d %s for %d of %d orders, %.1f km; unserved: %s%s; late: %d\n",
		len(plan.Routes), routes, served(plan), len(p.Orders), o.DistanceKm,
		o.UnservedByPriority(), invalid, o.LateTotal())
	if n := len(p.Flights); n > 0 {
		fmt.Fprintf(w, "%d of %d missions under way are changed\n", len(plan.Amendments), n)
	}
	var sections []*terminal.Table
	section := func(header ...string) *terminal.Table {
		t := new(terminal.Table)
		t.Row(header...)
		sections = append(sections, t)
		return t
	}
	for _, r := range plan.Routes {
		t := section("drone "+r.DroneID, fmt.Sprintf("%.1f km", r.DistanceKm), r.Duration.Round(time.Second).String(), fmt.Sprintf("uses %.1f %%", r.BatteryUsePercent))
		for _, s := range r.Stops {
			t.Row(stopRow(s)...)
		}
	}
	for _, a := range plan.Amendments {
		t := section("drone "+a.DroneID+" in flight", "mission "+a.MissionID, moreOrLess(fmt.Sprintf("%.1f km", math.Abs(a.DetourKm)), a.DetourKm >= 0, "more", "less"),
			moreOrLess(a.Detour.Abs().Round(time.Second).String(), a.Detour >= 0, "longer", "shorter"), changes(a))
		for _, s := range a.Stops {
			row := stopRow(s)
			if slices.Contains(a.AddedIDs, s.OrderID) {
				row = append(row, "added")
			}
			t.Row(row...)
		}
	}
	for _, s := range plan.Standby {
		t := section("drone "+s.DroneID+" without orders", fmt.Sprintf("%.1f km", s.DistanceKm), s.Duration.Round(time.Second).String(), fmt.Sprintf("uses %.1f %%", s.BatteryUsePercent))
		for _, stop := range s.Stops {
			t.Row(append(stopRow(stop), duty(stop))...)
		}
	}
	if len(plan.Unserved) > 0 {
		t := section("unserved")
		for _, u := range plan.Unserved {
			t.Row("  "+u.OrderID, string(u.Reason), u.Detail)
		}
	}
	if len(plan.Ignored) > 0 {
		t := section("ignored")
		for _, i := range plan.Ignored {
			t.Row(fmt.Sprintf("  %s %s", i.Kind, i.ID), i.Detail)
		}
	}
	for _, t := range sections {
		fmt.Fprintln(w)
		if _, err := t.WriteTo(w); err != nil {
			return err
		}
	}
	return nil
}

func moreOrLess(amount string, isMore bool, more, less string) string {
	if isMore {
		return amount + " " + more
	}
	return amount + " " + less
}

// changes says what an amendment changes.
func changes(a solver.Amendment) string {
	var list []string
	if len(a.AddedIDs) > 0 {
		list = append(list, "adds "+strings.Join(a.AddedIDs, ", "))
	}
	if len(a.ReleasedIDs) > 0 {
		list = append(list, "takes away "+strings.Join(a.ReleasedIDs, ", "))
	}
	if len(list) == 0 {
		return "changes the order of stops"
	}
	return strings.Join(list, ", ")
}

// stopRow is a stop with its time, distance and charge.
func stopRow(s solver.Stop) []string {
	what := s.OrderID
	if s.WarehouseID != "" {
		what += " from " + s.WarehouseID
	}
	return []string{"  " + s.ETA.UTC().Format(time.TimeOnly), s.Kind.String(), fmt.Sprintf("%.1f km", s.DistanceKm), fmt.Sprintf("%.1f %%", s.BatteryPercent), what}
}

// duty is what a drone without orders does at a stop, and for how long.
func duty(s solver.Stop) string {
	switch s.Kind {
	case solver.Charge:
		return fmt.Sprintf("to %.0f %%", s.ChargeToPercent)
	case solver.Wait:
		return "until " + s.Until.UTC().Format(time.TimeOnly)
	case solver.DepotStart, solver.WarehousePickup, solver.Delivery, solver.DepotReturn:
	}
	return ""
}

// countInvalid adds the invalid orders to the unserved ones of an objective, which leaves
// them out: a CRITICAL order with a mistake is still a patient.
func countInvalid(p solver.Problem, plan solver.Plan, o *solver.Objective) (n int) {
	for _, u := range plan.Unserved {
		if u.Reason != solver.InvalidInput {
			continue
		}
		n++
		if priority := int(p.Orders[u.Index].Priority); priority >= 0 && priority < len(o.Unserved) {
			o.Unserved[priority]++
		}
	}
	return n
}

func served(plan solver.Plan) (n int) {
	for _, a := range plan.Amendments {
		n += len(a.AddedIDs)
	}
	for _, r := range plan.Routes {
		n += len(r.OrderIDs())
	}
	return n
}
