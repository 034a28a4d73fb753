package planview

import (
	"fmt"
	"io"
	"time"

	"github.com/dronefleet/dronefleet/internal/terminal"
	"github.com/dronefleet/dronefleet/solver"
)

// WriteText writes a plan as text for people: every route with time, distance and
// charge at each stop, then the unserved orders with their reasons, then what the
// solver ignored.
func WriteText(w io.Writer, p solver.Problem, plan solver.Plan) error {
	o := plan.Objective
	routes := "routes"
	if len(plan.Routes) == 1 {
		routes = "route"
	}
	fmt.Fprintf(w, "%d %s for %d of %d orders, %.1f km; unserved: %s; late: %d\n",
		len(plan.Routes), routes, served(plan), len(p.Orders), o.DistanceKm,
		o.UnservedByPriority(), o.LateTotal())
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
			what := s.OrderID
			if s.WarehouseID != "" {
				what += " from " + s.WarehouseID
			}
			t.Row("  "+s.ETA.UTC().Format(time.TimeOnly), s.Kind.String(), fmt.Sprintf("%.1f km", s.DistanceKm), fmt.Sprintf("%.1f %%", s.BatteryPercent), what)
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

func served(plan solver.Plan) (n int) {
	for _, r := range plan.Routes {
		n += len(r.OrderIDs())
	}
	return n
}
