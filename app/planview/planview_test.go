package planview_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/dronefleet/dronefleet/app/planview"
	"github.com/dronefleet/dronefleet/solver"
)

var (
	depot = solver.Location{Lat: 48.8566, Lon: 2.3522}
	noon  = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
)

// blood is an order from the only warehouse.
func blood(id string, lat, lon float64) solver.Order {
	return solver.Order{ID: id, CreatedAt: noon, ProductType: "BLOOD", Delivery: solver.Location{Lat: lat, Lon: lon}}
}

func solve(t *testing.T, p solver.Problem) solver.Plan {
	t.Helper()
	plan, err := solver.Solve(t.Context(), p, solver.Options{Strategy: solver.Greedy})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// F-OPT-05: an order with a mistake is unserved, whatever the mistake.
func TestPlan_CountsInvalidOrders(t *testing.T) {
	light, again := blood("LIGHT", 48.86, 2.36), blood("TWICE", 48.86, 2.36)
	light.WeightKg, light.Priority, again.Priority = -2, solver.Critical, solver.High
	p := solver.Problem{Now: noon, Orders: []solver.Order{light, blood("TWICE", 48.86, 2.36), again, {ID: "ODD", Priority: 9}}}
	var text bytes.Buffer
	if err := planview.WriteText(&text, p, solve(t, p)); err != nil {
		t.Fatal(err)
	}
	if want := "unserved: 1 CRITICAL, 1 HIGH, 1 STANDARD (3 of them invalid); late: 0\n"; !strings.Contains(text.String(), want) {
		t.Errorf("the plan lacks %q:\n%s", want, &text)
	}
}

// F-OPT-05
func TestPlan_AsTextAndGeoJSON(t *testing.T) {
	p := solver.Problem{
		Now:        noon,
		Depots:     []solver.Depot{{ID: "DEPOT-1", At: depot}},
		Warehouses: []solver.Warehouse{{ID: "WH", At: solver.Location{Lat: 48.87, Lon: 2.35}, ProductTypes: []string{"BLOOD"}}},
		Drones:     []solver.Drone{{ID: "D1", At: depot, BatteryPercent: 90}},
		Orders:     []solver.Order{blood("O1", 48.86, 2.36), blood("FAR", 52, 2.36), blood("NOWHERE", math.NaN(), 0)},
	}
	plan := solve(t, p)
	var text, geojson bytes.Buffer
	if err := planview.WriteText(&text, p, plan); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1 route for 1 of 3 orders", "drone D1", "HOSPITAL_DELIVERY", "O1 from WH", "FAR", string(solver.OutOfRange), "NOWHERE", string(solver.InvalidInput)} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the plan lacks %q:\n%s", want, &text)
		}
	}
	if err := planview.WriteGeoJSON(&geojson, p, plan); err != nil {
		t.Fatal(err)
	}
	var collection struct {
		Type     string
		Features []struct {
			Geometry struct {
				Type        string
				Coordinates json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(geojson.Bytes(), &collection); err != nil || collection.Type != "FeatureCollection" {
		t.Fatalf("%v:\n%s", err, &geojson)
	}
	kinds := map[string]int{}
	for _, f := range collection.Features {
		kinds[f.Geometry.Type]++
	}
	if fmt.Sprint(kinds) != "map[LineString:1 Point:5]" { // the order without a position is on no map
		t.Errorf("features %v", kinds)
	}
	if first := string(collection.Features[0].Geometry.Coordinates); strings.Join(strings.Fields(first), "") != "[2.3522,48.8566]" {
		t.Errorf("the first stop is at %s, want longitude first", first)
	}
}

// F-OPT-05: a route across the antimeridian is split there (RFC 7946, section
// 3.1.9), so that no part of it leads around the world.
func TestWriteGeoJSON_SplitsAtTheAntimeridian(t *testing.T) {
	type line = [][2]float64
	for name, c := range map[string]struct {
		stops line
		want  string
	}{
		"no crossing":                  {line{{170, 45}, {-10, 45}}, "LineString [[170,45],[-10,45]]"},
		"nowhere to go":                {line{{2, 48}, {2, 48}}, "LineString [[2,48],[2,48]]"},
		"eastward":                     {line{{170, 45}, {-170, 45}}, "MultiLineString [[[170,45],[180,45]],[[-180,45],[-170,45]]]"},
		"westward, and a way north":    {line{{-179, 10}, {178, 13}}, "MultiLineString [[[-179,10],[-180,11]],[[180,11],[178,13]]]"},
		"there and back":               {line{{179, 0}, {-179, 2}, {179, 4}}, "MultiLineString [[[179,0],[180,1]],[[-180,1],[-179,2],[-180,3]],[[180,3],[179,4]]]"},
		"from the antimeridian":        {line{{180, 1}, {-179, 2}}, "LineString [[-180,1],[-179,2]]"},
		"to the antimeridian":          {line{{179, 1}, {-180, 2}}, "LineString [[179,1],[180,2]]"},
		"along it, by either name":     {line{{180, 1}, {-180, 2}}, "LineString [[-180,1],[-180,2]]"},
		"nowhere, by either name":      {line{{180, 1}, {-180, 1}}, "LineString [[180,1],[-180,1]]"},
		"stops twice before and after": {line{{179, 0}, {179, 0}, {-179, 2}, {-179, 2}}, "MultiLineString [[[179,0],[179,0],[180,1]],[[-180,1],[-179,2],[-179,2]]]"},
	} {
		var stops []solver.Stop
		for _, at := range c.stops {
			stops = append(stops, solver.Stop{At: solver.Location{Lat: at[1], Lon: at[0]}})
		}
		var text bytes.Buffer
		if err := planview.WriteGeoJSON(&text, solver.Problem{}, solver.Plan{Routes: []solver.Route{{Stops: stops}}}); err != nil {
			t.Fatal(err)
		}
		var collection struct {
			Features []struct {
				Geometry struct {
					Type        string
					Coordinates any
				}
			}
		}
		if err := json.Unmarshal(text.Bytes(), &collection); err != nil || len(collection.Features) != len(stops)+1 {
			t.Fatalf("%s: %v:\n%s", name, err, &text)
		}
		route := collection.Features[len(stops)].Geometry
		coordinates, err := json.Marshal(route.Coordinates)
		if got := route.Type + " " + string(coordinates); err != nil || got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// F-OPT-05: whatever ids hold, none of it controls the terminal or adds lines and cells to the
// text. Those with control characters are not planned, but named.
func TestWriteText_EscapesIDs(t *testing.T) {
	const turned, hostile = "\u202e", "\x1b[2J\tx\ny\u202e"
	p := solver.Problem{
		Now:        noon,
		Depots:     []solver.Depot{{ID: "DEPOT-1", At: depot}},
		Warehouses: []solver.Warehouse{{ID: "W" + turned, At: depot, ProductTypes: []string{"BLOOD"}}, {ID: "SHUT" + hostile, At: depot}},
		Drones:     []solver.Drone{{ID: "D" + turned, At: depot, BatteryPercent: 90}, {ID: "LOST" + hostile}},
		Orders:     []solver.Order{blood("O"+turned, 48.86, 2.36), blood("FAR"+hostile, 48.86, 2.36)},
	}
	plan := solve(t, p)
	var text strings.Builder
	if err := planview.WriteText(&text, p, plan); err != nil {
		t.Fatal(err)
	}
	if i := strings.IndexFunc(text.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 || strings.Contains(text.String(), "\ny") {
		t.Errorf("not fit for a terminal:\n%q", &text)
	}
	const shownTurned, shownHostile = `\u202e`, `\u001b[2J\u0009x\u000ay\u202e`
	for _, shown := range []string{
		"drone D" + shownTurned, "O" + shownTurned, "from W" + shownTurned,
		"FAR" + shownHostile, "drone LOST" + shownHostile, "warehouse SHUT" + shownHostile,
	} {
		if !strings.Contains(text.String(), shown) {
			t.Errorf("the plan lacks %q:\n%s", shown, &text)
		}
	}
}

// F-OPT-05: the columns of a route are aligned, however wide a terminal shows the
// characters of an id.
func TestWriteText_AlignsColumns(t *testing.T) {
	plan := solver.Plan{
		Routes: []solver.Route{
			{DroneID: "血液ドローン-1", DistanceKm: 12.5, Duration: time.Minute, Stops: []solver.Stop{
				{Kind: solver.DepotStart, ETA: noon, BatteryPercent: 90}, {Kind: solver.Delivery, ETA: noon, OrderID: "O1", DistanceKm: 12.5, BatteryPercent: 80},
			}},
			{DroneID: "D", Stops: []solver.Stop{{Kind: solver.DepotStart, ETA: noon, BatteryPercent: 90}}},
		},
		Unserved: []solver.Unserved{{OrderID: "e\u0301te\u0301", Reason: solver.NoDroneFree, Detail: "x"}, {OrderID: "summer", Reason: solver.OutOfRange, Detail: "y"}},
	}
	var text strings.Builder
	if err := planview.WriteText(&text, solver.Problem{}, plan); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\ndrone 血液ドローン-1  12.5 km            1m0s     uses 0.0 %\n",
		"\n  12:00:00            DEPOT_START        0.0 km   90.0 %  \n",
		"\n  12:00:00            HOSPITAL_DELIVERY  12.5 km  80.0 %  O1\n",
		"\ndrone D     0.0 km       0s      uses 0.0 %\n  12:00:00  DEPOT_START  0.0 km  90.0 %  \n",
		"\nunserved\n  e\u0301te\u0301     no_drone_free  x\n  summer  out_of_range   y\n",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the plan lacks %q:\n%s", want, &text)
		}
	}
}
