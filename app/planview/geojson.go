package planview

import (
	"encoding/json"
	"io"
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/solver"
)

// The GeoJSON types (RFC 7946) that a plan needs.
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

// position is a GeoJSON position: longitude first.
func position(at solver.Location) [2]float64 { return [2]float64{at.Lon, at.Lat} }

// cutAtAntimeridian returns the geometry of a line, split where it crosses the
// antimeridian (RFC 7946, section 3.1.9): maps would draw it around the world.
func cutAtAntimeridian(line [][2]float64) (kind string, coordinates any) {
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
	// A line that ends at the antimeridian has no part on the other side.
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

// WriteGeoJSON writes a plan as a GeoJSON feature collection that any map can
// show: routes as lines, stops and unserved orders as points.
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
		kind, coordinates := cutAtAntimeridian(line)
		add(kind, coordinates, map[string]any{"drone": r.DroneID, "orders": r.OrderIDs(), "distanceKm": r.DistanceKm, "batteryUsePercent": r.BatteryUsePercent})
	}
	for _, a := range plan.Amendments {
		line := [][2]float64{position(startOf(p, a))}
		for i, s := range a.Stops {
			line = append(line, position(s.At))
			add("Point", position(s.At), map[string]any{
				"drone": a.DroneID, "mission": a.MissionID, "stop": i, "kind": s.Kind.String(), "order": s.OrderID, "warehouse": s.WarehouseID,
				"eta": s.ETA, "batteryPercent": s.BatteryPercent, "distanceKm": s.DistanceKm, "added": slices.Contains(a.AddedIDs, s.OrderID),
			})
		}
		kind, coordinates := cutAtAntimeridian(line)
		add(kind, coordinates, map[string]any{
			"drone": a.DroneID, "mission": a.MissionID, "amendsRevision": a.Revision, "orders": a.OrderIDs(), "added": a.AddedIDs, "released": a.ReleasedIDs,
			"distanceKm": a.DistanceKm, "detourKm": a.DetourKm, "batteryUsePercent": a.BatteryUsePercent,
		})
		kind, coordinates = cutAtAntimeridian(lineBefore(p, a))
		add(kind, coordinates, map[string]any{"drone": a.DroneID, "mission": a.MissionID, "before": true})
	}
	for _, s := range plan.Standby {
		line := [][2]float64{}
		if s.Stops[0].Kind != solver.DepotStart {
			line = append(line, position(standbyStart(p, s)))
		}
		for i, stop := range s.Stops {
			line = append(line, position(stop.At))
			properties := map[string]any{
				"drone": s.DroneID, "stop": i, "kind": stop.Kind.String(), "eta": stop.ETA, "batteryPercent": stop.BatteryPercent, "distanceKm": stop.DistanceKm,
			}
			switch stop.Kind {
			case solver.Charge:
				properties["chargeToPercent"] = stop.ChargeToPercent
			case solver.Wait:
				properties["until"] = stop.Until
			case solver.DepotStart, solver.WarehousePickup, solver.Delivery, solver.DepotReturn:
			}
			add("Point", position(stop.At), properties)
		}
		kind, coordinates := cutAtAntimeridian(line)
		add(kind, coordinates, map[string]any{"drone": s.DroneID, "standby": true, "distanceKm": s.DistanceKm, "batteryUsePercent": s.BatteryUsePercent})
	}
	for _, u := range plan.Unserved {
		if u.Index < 0 || u.Index >= len(p.Orders) || u.Reason == solver.InvalidInput {
			continue // no position to show
		}
		add("Point", position(p.Orders[u.Index].Delivery), map[string]any{"order": u.OrderID, "unserved": u.Reason})
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(all)
}

// standbyStart is where a drone is that begins a mission without orders in flight.
func standbyStart(p solver.Problem, s solver.Standby) solver.Location {
	for _, d := range p.Drones {
		if d.ID == s.DroneID {
			return d.At
		}
	}
	return flightOf(p, s.DroneID).Drone.At
}

// flightOf is the flight of a drone; zero if the problem lacks it.
func flightOf(p solver.Problem, drone string) solver.Flight {
	for _, f := range p.Flights {
		if f.Drone.ID == drone {
			return f
		}
	}
	return solver.Flight{}
}

// startOf is where the drone turns.
func startOf(p solver.Problem, a solver.Amendment) solver.Location {
	return flightOf(p, a.DroneID).Drone.At
}

// lineBefore is the rest of the mission as it was.
func lineBefore(p solver.Problem, a solver.Amendment) [][2]float64 {
	f := flightOf(p, a.DroneID)
	line := [][2]float64{position(f.Drone.At)}
	for _, s := range f.Stops {
		line = append(line, position(s.At))
	}
	return line
}
