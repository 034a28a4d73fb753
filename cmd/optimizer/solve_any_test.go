package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// solvable is a snapshot with idle drones, drones in flight and orders that wait.
const solvable = `{
"readTime": "2026-11-21T10:15:30Z", "fence": "7", "sessionId": "C",
"depot": {"id": "D", "position": {"lat": 48.86, "lon": 2.34}, "chargingSlots": 2},
"warehouses": [{"id": "W", "position": {"lat": 48.84, "lon": 2.38}, "authorizedProductTypes": ["BLOOD"], "isColdStorageCapable": true}],
"drones": [
 {"id": "1", "position": {"lat": 48.84, "lon": 2.38}, "batteryPercentage": 90, "homeDepotId": "D", "consumptionPerKm": 1.5, "consumptionPerKmKg": 0.1, "payloadCapacityKg": 5, "maxFlightTimeMinutes": 38, "chargeRate": 2},
 {"id": "2", "position": {"lat": 48.86, "lon": 2.34}, "batteryPercentage": 60, "status": "DRONE_STATUS_IDLE"}],
"charging": [{"id": "3", "position": {"lat": 48.86, "lon": 2.34}, "batteryPercentage": 20, "homeDepotId": "D", "status": "DRONE_STATUS_CHARGING"}],
"orders": [
 {"id": "A", "deliveryLocation": {"lat": 48.88, "lon": 2.30}, "priority": "ORDER_PRIORITY_CRITICAL", "productType": "BLOOD", "packageWeightKg": 1, "createdAt": "2026-11-21T10:10:00Z"},
 {"id": "B", "pickupLocation": {"lat": 48.87, "lon": 2.36}, "deliveryLocation": {"lat": 48.85, "lon": 2.33}, "priority": "ORDER_PRIORITY_HIGH", "deadline": "2026-11-21T10:40:00Z"},
 {"id": "C", "deliveryLocation": {"lat": 48.83, "lon": 2.39}, "productType": "BLOOD", "requiresColdChain": true, "pinnedDroneId": "1", "forbiddenDroneIds": ["2"]}],
"flights": [{"seenAt": "2026-11-21T10:15:25Z", "reachedStops": 1, "reachedAt": "2026-11-21T10:12:00Z",
 "drone": {"id": "4", "position": {"lat": 48.85, "lon": 2.36}, "batteryPercentage": 85, "status": "DRONE_STATUS_MOVING", "currentMissionId": "M", "homeDepotId": "D"},
 "mission": {"id": "M", "droneId": "4", "orderIds": ["F"], "status": "ACTIVE", "startTime": "2026-11-21T10:12:00Z", "revision": 1, "route": [
  {"type": "WAYPOINT_TYPE_DEPOT_START", "position": {"lat": 48.86, "lon": 2.34}},
  {"type": "WAYPOINT_TYPE_WAREHOUSE_PICKUP", "position": {"lat": 48.84, "lon": 2.38}, "relatedOrderId": "F", "relatedWarehouseId": "W", "eta": "2026-11-21T10:17:00Z"},
  {"type": "WAYPOINT_TYPE_HOSPITAL_DELIVERY", "position": {"lat": 48.82, "lon": 2.40}, "relatedOrderId": "F", "eta": "2026-11-21T10:20:00Z"},
  {"type": "WAYPOINT_TYPE_DEPOT_RETURN", "position": {"lat": 48.86, "lon": 2.34}}]},
 "orders": [{"id": "F", "deliveryLocation": {"lat": 48.82, "lon": 2.40}, "productType": "BLOOD", "priority": "ORDER_PRIORITY_STANDARD", "status": "ORDER_STATUS_ASSIGNED"}]}]}`

// spoil replaces some values anywhere in parsed JSON by others of their kind, drops some, and
// drops and repeats entries of lists.
func spoil(t *rapid.T, in any, one int) any {
	spoils := rapid.IntRange(1, one).Draw(t, "spoil") == one
	switch v := in.(type) {
	case []any:
		list := []any{}
		for _, x := range v {
			for range rapid.SampledFrom([]int{1, 1, 1, 1, 1, 1, 2, 0}).Draw(t, "times") {
				list = append(list, spoil(t, x, one))
			}
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if object[key] = spoil(t, v[key], one); rapid.IntRange(1, one).Draw(t, "drop") == one {
				delete(object, key)
			}
		}
		return object
	case float64:
		if spoils {
			return rapid.SampledFrom([]any{"NaN", "Infinity", "-Infinity", 0, -1, 1, 1e308, 5e-324, 1e18, 90, -180, 101, 2147483647}).Draw(t, "number")
		}
	case string:
		if spoils {
			return rapid.SampledFrom(alike(v)).Draw(t, "text")
		}
	}
	return in
}

// alike lists texts of the same kind as one of the snapshot: times, names of one type, ids.
func alike(text string) []string {
	switch {
	case strings.HasSuffix(text, "Z"):
		return []string{"0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2026-11-21T10:20:00Z", "9999-12-31T23:59:59.999999999Z"}
	case strings.HasPrefix(text, "WAYPOINT"):
		return []string{"WAYPOINT_TYPE_CHARGE", "WAYPOINT_TYPE_WAIT", "WAYPOINT_TYPE_UNSPECIFIED", "WAYPOINT_TYPE_DEPOT_START", "WAYPOINT_TYPE_DEPOT_RETURN", "WAYPOINT_TYPE_HOSPITAL_DELIVERY"}
	case strings.HasPrefix(text, "DRONE_"):
		return []string{"DRONE_STATUS_IDLE", "DRONE_STATUS_PROBLEM", "DRONE_STATUS_UNSPECIFIED"}
	case strings.HasPrefix(text, "ORDER_"):
		return []string{text}
	}
	return []string{"", "A", "B", "F", "1", "4", "D", "W", "ACTIVE", "COMPLETED", "BLOOD", strings.Repeat("x", 200), "\x00"}
}

// printingTo sends standard output and standard error to a file.
func printingTo(t rapid.TB, name string) (done func()) {
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = file, file
	return func() {
		os.Stdout, os.Stderr = stdout, stderr
		file.Close()
	}
}

// solves runs the command and fails unless it writes a plan that the checker accepted at once,
// or fails with one line.
func solves(t interface {
	rapid.TB
	Context() context.Context
}, dir string, data []byte, c solveCommand,
) (planned bool) {
	c.In, c.Out, c.GeoJSON = filepath.Join(dir, "snapshot"), filepath.Join(dir, "plan.json"), filepath.Join(dir, "plan.geojson")
	c.Amend, c.SolveLimit, c.Iterations = true, time.Second, 10
	if err := os.WriteFile(c.In, data, 0o600); err != nil {
		t.Fatal(err)
	}
	printed := filepath.Join(dir, "printed")
	err := func() error {
		defer printingTo(t, printed)()
		return c.Run(t.Context())
	}()
	if text, err := os.ReadFile(printed); err != nil || strings.Contains(string(text), "refused by the checker") {
		t.Fatalf("%v: %s", err, text)
	}
	if err != nil {
		if text := err.Error(); text == "" || strings.Contains(text, "\n") {
			t.Fatalf("error %q", text)
		}
		return false
	}
	for _, name := range []string{c.Out, c.GeoJSON} {
		if text, err := os.ReadFile(name); err != nil || !json.Valid(text) {
			t.Fatalf("%v: %s", err, text)
		}
	}
	return true
}

// F-OPT-05: an order with a mistake is counted among the unserved.
func TestSolve_CountsInvalidOrders(t *testing.T) {
	dir := t.TempDir()
	data := strings.Replace(solvable, `"packageWeightKg": 1`, `"packageWeightKg": -2`, 1)
	data = strings.Replace(data, `"id": "C", "deliveryLocation"`, `"id": "B", "deliveryLocation"`, 1)
	c := solveCommand{In: filepath.Join(dir, "snapshot.json"), Iterations: 10, SolveLimit: time.Second, Strategy: "greedy"}
	if err := os.WriteFile(c.In, []byte("\ufeff"+data), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := filepath.Join(dir, "printed")
	err := func() error {
		defer printingTo(t, printed)()
		return c.Run(t.Context())
	}()
	text, _ := os.ReadFile(printed)
	for _, want := range []string{"1 route for 1 of 3 orders", "unserved: 1 CRITICAL, 0 HIGH, 1 STANDARD (2 of them invalid)", "A  invalid_input", "B  invalid_input"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%v: the plan lacks %q:\n%s", err, want, text)
		}
	}
}

// F-OPT-05: a snapshot is a file that people edit. Whatever it says, there is a plan of the
// rest.
func TestSolve_PlansAnySnapshot(t *testing.T) {
	var sound any
	if err := json.Unmarshal([]byte(solvable), &sound); err != nil {
		t.Fatal(err)
	}
	dir, all, planned := t.TempDir(), 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		data, err := json.Marshal(spoil(rt, sound, rapid.SampledFrom([]int{10, 50, 200, 1000}).Draw(rt, "spoils")))
		if err != nil {
			rt.Fatal(err)
		}
		if rapid.IntRange(0, 9).Draw(rt, "broken") == 9 {
			data[rapid.IntRange(0, len(data)-1).Draw(rt, "at")] = rapid.Byte().Draw(rt, "byte")
		}
		all++
		if solves(rt, dir, data, solveCommand{Strategy: rapid.SampledFrom([]string{"sisr", "greedy", "nearest"}).Draw(rt, "strategy")}) {
			planned++
		}
	})
	if planned < all/2 {
		t.Errorf("%d of %d snapshots are planned", planned, all)
	}
}
