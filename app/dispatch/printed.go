package dispatch

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/internal/terminal"
	"github.com/dronefleet/dronefleet/solver"
)

// PrintPlan writes a plan for people: every route with times, distance and
// charge at each stop, then the orders left, each with its reason.
func PrintPlan(w io.Writer, p solver.Problem, plan solver.Plan) error {
	o := plan.Objective
	routes := "routes"
	if len(plan.Routes) == 1 {
		routes = "route"
	}
	fmt.Fprintf(w, "%d %s for %d of %d orders, %.1f km; unserved: %d CRITICAL, %d HIGH, %d STANDARD; late: %d\n",
		len(plan.Routes), routes, served(plan), len(p.Orders), o.DistanceKm,
		o.Unserved[solver.Critical], o.Unserved[solver.High], o.Unserved[solver.Standard],
		o.Late[solver.Critical]+o.Late[solver.High]+o.Late[solver.Standard])
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
		t := section("left out")
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

// The types of GeoJSON (RFC 7946) that a plan needs.
type (
	featureCollection struct {
		Type     string    `json:"type"`
		Features []feature `json:"features"`
	}
	feature struct {
		Type       string         `json:"type"`
		Geometry   geometry       `json:"geometry"`
		Properties map[string]any `json:"properties"`
	}
	geometry struct {
		Type        string `json:"type"`
		Coordinates any    `json:"coordinates"`
	}
)

// position is a point as GeoJSON has it: longitude first.
func position(at solver.Location) [2]float64 { return [2]float64{at.Lon, at.Lat} }

// cut is the geometry of a line, in two where it crosses the antimeridian, as
// RFC 7946, section 3.1.9, wants it: maps would draw it around the world.
func cut(line [][2]float64) (kind string, coordinates any) {
	parts := [][][2]float64{nil}
	add := func(at [2]float64) { parts[len(parts)-1] = append(parts[len(parts)-1], at) }
	for i, to := range line {
		if i > 0 && math.Abs(to[0]-line[i-1][0]) > 180 {
			from := line[i-1]
			edge := math.Copysign(180, from[0])
			before, after := math.Abs(edge-from[0]), math.Abs(to[0]+edge) // degrees of either side
			lat := from[1]
			if before > 0 {
				lat += (to[1] - from[1]) * before / (before + after)
			}
			add([2]float64{edge, lat})
			parts = append(parts, nil)
			add([2]float64{-edge, lat})
		}
		add(to)
	}
	// A line that ends at the antimeridian has no other side.
	parts = slices.DeleteFunc(parts, func(part [][2]float64) bool {
		return !slices.ContainsFunc(part, func(at [2]float64) bool { return at != part[0] })
	})
	switch len(parts) {
	case 0:
		return "LineString", line
	case 1:
		return "LineString", parts[0]
	}
	return "MultiLineString", parts
}

// WriteGeoJSON writes a plan's routes as lines and its stops as points, so that
// people can look at them on any map. Unserved orders are points of their own.
func WriteGeoJSON(w io.Writer, p solver.Problem, plan solver.Plan) error {
	all := featureCollection{Type: "FeatureCollection", Features: []feature{}}
	add := func(kind string, coordinates any, properties map[string]any) {
		all.Features = append(all.Features, feature{"Feature", geometry{kind, coordinates}, properties})
	}
	for _, r := range plan.Routes {
		var line [][2]float64
		for i, s := range r.Stops {
			line = append(line, position(s.At))
			add("Point", position(s.At), map[string]any{
				"drone": r.DroneID, "stop": i, "kind": s.Kind.String(), "order": s.OrderID, "warehouse": s.WarehouseID,
				"eta": s.ETA, "batteryPercent": s.BatteryPercent, "distanceKm": s.DistanceKm,
			})
		}
		kind, coordinates := cut(line)
		add(kind, coordinates, map[string]any{"drone": r.DroneID, "orders": r.OrderIDs(), "distanceKm": r.DistanceKm, "batteryUsePercent": r.BatteryUsePercent})
	}
	for _, u := range plan.Unserved {
		if u.Index < 0 || u.Index >= len(p.Orders) || u.Reason == solver.InvalidInput {
			continue // no place to show
		}
		add("Point", position(p.Orders[u.Index].Delivery), map[string]any{"order": u.OrderID, "unserved": u.Reason})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(all)
}
