package planview_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/app/planview"
	"github.com/dronefleet/dronefleet/solver"
)

// amended is a plan that adds URGENT to the mission of a drone in flight with ABOARD.
func amended() (solver.Problem, solver.Plan) {
	ward, clinic := solver.Location{Lat: 48.9, Lon: 2.36}, solver.Location{Lat: 48.91, Lon: 2.36}
	home := solver.Stop{Kind: solver.DepotReturn, At: depot}
	p := solver.Problem{Now: noon, Orders: []solver.Order{blood("URGENT", 48.91, 2.36)}, Flights: []solver.Flight{{
		Drone: solver.Drone{ID: "D1", At: solver.Location{Lat: 48.88, Lon: 2.355}}, MissionID: "M1", Revision: 1,
		Stops: []solver.Stop{{Kind: solver.Delivery, At: ward, OrderID: "ABOARD"}, home},
	}}}
	a := solver.Amendment{MissionID: "M1", Revision: 1, AddedIDs: []string{"URGENT"}, Detour: 90 * time.Second, DetourKm: 1.25}
	a.DroneID = "D1"
	a.Stops = []solver.Stop{
		{Kind: solver.WarehousePickup, At: ward, OrderID: "URGENT", WarehouseID: "WH", ETA: noon.Add(time.Minute)},
		{Kind: solver.Delivery, At: ward, OrderID: "ABOARD"},
		{Kind: solver.Delivery, At: clinic, OrderID: "URGENT"}, home,
	}
	return p, solver.Plan{Amendments: []solver.Amendment{a}}
}

// F-OPT-05: the plan shows which missions change, what is added and what that costs.
func TestWriteText_ShowsAmendedMissions(t *testing.T) {
	p, plan := amended()
	var out bytes.Buffer
	if err := planview.WriteText(&out, p, plan); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"for 1 of 1 orders", "1 of 1 missions under way are changed", "drone D1 in flight", "mission M1", "1.2 km more", "1m30s longer", "adds URGENT", "12:01:00",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), " added"); n != 2 {
		t.Errorf("%d stops are marked as added:\n%s", n, out.String())
	}
}

// F-AMD-04 F-OPT-05: the plan shows what is taken from a mission, and what becomes shorter.
func TestWriteText_ShowsWhatIsTakenAway(t *testing.T) {
	p, plan := amended()
	a := &plan.Amendments[0]
	a.AddedIDs, a.ReleasedIDs, a.Detour, a.DetourKm = nil, []string{"LATER"}, -90*time.Second, -1.25
	var out, geo bytes.Buffer
	if err := errors.Join(planview.WriteText(&out, p, plan), planview.WriteGeoJSON(&geo, p, plan)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"1.2 km less", "1m30s shorter", "takes away LATER"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	if !strings.Contains(strings.Join(strings.Fields(geo.String()), ""), `"released":["LATER"]`) {
		t.Errorf("not released in %s", geo.String())
	}
	a.ReleasedIDs = nil
	if err := planview.WriteText(&out, p, plan); err != nil || !strings.Contains(out.String(), "changes the order of stops") {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

func TestWriteGeoJSON_ShowsAMissionBeforeAndAfter(t *testing.T) {
	p, plan := amended()
	var out bytes.Buffer
	if err := planview.WriteGeoJSON(&out, p, plan); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Features []struct {
			Geometry   struct{ Type string }
			Properties map[string]any
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	added, before, after := 0, 0, 0
	for _, f := range got.Features {
		if f.Properties["added"] == true {
			added++
		}
		if f.Geometry.Type == "LineString" && f.Properties["before"] == true {
			before++
		}
		if f.Geometry.Type == "LineString" && f.Properties["detourKm"] == 1.25 {
			after++
		}
	}
	if added != 2 || before != 1 || after != 1 {
		t.Errorf("%d added stops, %d lines before, %d after", added, before, after)
	}
}
