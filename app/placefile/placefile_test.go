package placefile_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/app/placefile"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

const depotsYAML = `
depots:
  - id: D-1
    name: Nord
    position: {lat: 48.5, lon: -2}
    capacity: 20
    chargingSlots: 10
    group: left bank
  - id: D-2
    position: {lat: 1, lon: 2}
warehouses:
  - id: W-1
    position: {lat: 48, lon: 2.25}
    authorizedProductTypes: [BLOOD, PLASMA]
    isColdStorageCapable: true
`

const placesJSON = `{"type": "FeatureCollection", "features": [
  {"type": "Feature", "id": "D-1", "geometry": {"type": "Point", "coordinates": [-2, 48.5]}, "properties": {"kind": "depot", "name": "Nord", "capacity": 20, "chargingSlots": 10, "group": "left bank"}},
  {"type": "Feature", "geometry": {"type": "Point", "coordinates": [2, 1, 35]}, "properties": {"kind": "depot", "id": "D-2", "name": null}},
  {"type": "Feature", "geometry": {"type": "Point", "coordinates": [2.25, 48]}, "properties": {"kind": "warehouse", "id": "W-1", "authorizedProductTypes": ["BLOOD", "PLASMA"], "isColdStorageCapable": true}}
]}`

// F-API-05: the three formats say the same, whatever the file is called.
func TestDepots_AreTheSameInEveryFormat(t *testing.T) {
	depots := []domain.Depot{
		{ID: "D-1", Name: "Nord", Position: domain.Position{Lat: 48.5, Lon: -2}, Capacity: 20, ChargingSlots: 10, Group: "left bank"},
		{ID: "D-2", Position: domain.Position{Lat: 1, Lon: 2}},
	}
	warehouses := []domain.Warehouse{{ID: "W-1", Position: domain.Position{Lat: 48, Lon: 2.25}, ProductTypes: []string{"BLOOD", "PLASMA"}, ColdStorage: true}}
	for _, c := range []struct{ name, depots, warehouses string }{
		{"a.yaml", depotsYAML, depotsYAML},
		{"a.geojson", placesJSON, placesJSON},
		{"a.csv", "\ufeffid,name,lat,lon,capacity,chargingSlots,group\nD-1,Nord,48.5,-2,20,10,left bank\nD-2,,1,2,,,\n",
			"id,lat,lon,authorizedProductTypes,isColdStorageCapable\nW-1,48,2.25,BLOOD; PLASMA,true\n"},
	} {
		for _, name := range []string{c.name, "-", "places.txt"} {
			got, err := placefile.Depots(name, []byte(c.depots))
			if diff := cmp.Diff(depots, got); diff != "" || err != nil {
				t.Errorf("%s of %s: %v %s", name, c.name, err, diff)
			}
			gotW, err := placefile.Warehouses(name, []byte(c.warehouses))
			if diff := cmp.Diff(warehouses, gotW); diff != "" || err != nil {
				t.Errorf("%s of %s: %v %s", name, c.name, err, diff)
			}
		}
	}
}

// geoJSON is a file of a depot A, with more properties and members.
func geoJSON(properties, members string) string {
	return `{"type": "FeatureCollection"` + members + `, "features": [{"type": "Feature"` + members + `, "id": "A", "geometry": {"type": "Point", "coordinates": [2, 1]}, "properties": {` + properties + `}}]}`
}

// F-API-05: what spreadsheets and map tools write is read.
func TestDepots_ReadsWhatToolsWrite(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"a.geojson", "\ufeff" + geoJSON(``, ``)},
		{"a", "\ufeff" + geoJSON(``, ``)},
		{"a.json", geoJSON(``, `, "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}`)},
		{"a.yaml", "\ufeffdepots:\n- {id: A, position: {lat: 1, lon: 2}}\n"},
		{"a", "\ufeff# our depots, all\ndepots:\n- {id: A, position: {lat: 1, lon: 2}}\n"},
		{"a", "\ufeffid,lat,lon,,\r\nA,1,2,,\r\n,,,,\r\n"},
	} {
		got, err := placefile.Depots(c.name, []byte(c.text))
		if diff := cmp.Diff([]domain.Depot{{ID: "A", Position: domain.Position{Lat: 1, Lon: 2}}}, got); diff != "" || err != nil {
			t.Errorf("%s %q: %v %s", c.name, c.text, err, diff)
		}
	}
	for text, want := range map[string]bool{"TRUE": true, "True": true, "FALSE": false, "true": true} {
		got, err := placefile.Warehouses("w.csv", []byte("id,lat,lon,isColdStorageCapable\nW,1,2,"+text+"\n"))
		if err != nil || got[0].ColdStorage != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// F-API-05: one error names every problem, with its place, field and fix.
func TestDepots_EveryProblemIsNamed(t *testing.T) {
	for _, c := range []struct {
		file, text string
		want       []string // one for each problem, in order
	}{
		{"d.yaml", `
depots:
  - name: x
    position: {lat: 91, lon: east}
  - id: 7
    capcity: 3
    position: {lat: 1}
  - id: a/b
    capacity: -1
    chargingSlots: 1.5
    position: 3
  - nothing
hospitals: []
`, []string{
			"d.yaml: line 12: is not a depot; give id and position",
			`d.yaml: line 13: "hospitals" is not a list of the fleet; give depots, warehouses, droneTypes, drones or webhooks`,
			"d.yaml: line 3: id is missing", "d.yaml: line 4: position.lat is 91; give -90 to 90 degrees", "d.yaml: line 4: position.lon is east",
			`d.yaml: line 6: "capcity" is not a field; the fields are id, name, position, capacity, chargingSlots, group; did you mean capacity?`,
			"d.yaml: line 5: id is 7; give a text", "d.yaml: line 7: position.lon is missing",
			`d.yaml: line 8: id "a/b" contains "/"`, "d.yaml: line 11: position is 3; give lat and lon", "d.yaml: line 9: capacity is -1; give a whole number",
			"d.yaml: line 10: chargingSlots is 1.5; give a whole number",
		}},
		{"d.yaml", "depots:\n- {id: A, position: {lat: 1, lon: 1}}\n- {id: A, position: {lat: 1, lon: 1}}\n", []string{`d.yaml: line 3: id "A" is already used in line 2`}},
		{"d.yaml", "depots:\n- {id: A, position: {lat: .nan, lon: 1}, name: \"a\\nb\"}\n", []string{"name is \"a\\nb\"; give printable", "position.lat is NaN"}},
		{"d.yaml", "depots:\n- {id: A, position: {lat: 1, lon: 1}, chargingSlots: 0}\n- {id: B, position: {lat: 1, lon: 1}, chargingSlots: -2}\n- {id: C, position: {lat: 1, lon: 1}, chargingSlots: .nan}\n", []string{ // F-CHG-01
			"d.yaml: line 2: chargingSlots is 0; give a whole number, 1 to 1000000, or leave it out", "d.yaml: line 3: chargingSlots is -2; give", "d.yaml: line 4: chargingSlots is NaN; give",
		}},
		{"d.yaml", "depots: {", []string{"d.yaml: is not valid YAML"}},
		{"d.yaml", "", []string{"d.yaml: has no depots; give at least one"}},
		{"d.yaml", "warehouses:\n- id: W\n", []string{"d.yaml: has no depots"}},
		{"d.yaml", "depots: []\n---\ndepots: []\n", []string{"more than one YAML document"}},
		{"d.csv", "id,lat,lon,color\nA,91,x,red\nB,1,2,\n", []string{`d.csv: line 2: "color" is not a field`, "d.csv: line 2: position.lat is 91", "d.csv: line 2: position.lon is x"}},
		{"d.csv", "id,lat,lon\nA,1\n", []string{"d.csv: line 2: has 2 cells, the header has 3; write decimals with a point"}},
		{"d.geojson", `{"type": "Feature"}`, []string{`d.geojson: type is "Feature"; give FeatureCollection`}},
		{"d.geojson", `{"type": "FeatureCollection", "features": [{"geometry": {"type": "LineString", "coordinates": []}, "properties": {"id": "A", "kind": "port"}}, {"geometry": {"type": "LineString"}, "properties": {"id": "A"}}]}`,
			[]string{`d.geojson: feature 1: kind is "port"; give depot or warehouse`, "d.geojson: feature 2: geometry is not a Point"}},
		// What people's tools write, and what would else be read wrongly without a word.
		{"d.geojson", "{\"type\": \"FeatureCollection\",\n\"features\": [{\"id\": \"caf\xe9\"}]}", []string{"d.geojson: line 2, byte offset 54: byte 0xe9 is not UTF-8; save or send the text as UTF-8"}},
		{"d.yaml", "depots:\n- {id: caf\xe9}\n", []string{"d.yaml: line 2, byte offset 18: byte 0xe9 is not UTF-8"}},
		{"d.csv", "id,lat,lon\ncaf\xe9,1,2\n", []string{"d.csv: line 2, byte offset 14: byte 0xe9 is not UTF-8"}},
		{"d.geojson", `{"type": "FeatureCollection", "features": [{"id": "D\ud800"}]}`, []string{"d.geojson: line 1, byte offset 52: half of a surrogate pair"}},
		{"d.geojson", geoJSON(`"lat": 1, "capacity": 2, "capacity": 3`, ``), []string{`"capacity" is given twice; give it once`}},
		{"d.geojson", geoJSON(`"capacity": 2, "Capacity": 3`, ``), []string{`"capacity" and "Capacity" differ only in case`}},
		{"d.geojson", geoJSON(`"id": "B"`, ``), []string{`feature 1: id is "A", and "B" in the properties; give it once`}},
		{"d.geojson", geoJSON(`"position": {"lat": 1, "lon": 2}`, ``), []string{"feature 1: position is a property; give the geometry only"}},
		{"d.geojson", geoJSON(``, `, "crs": {"type": "name", "properties": {"name": "urn:ogc:def:crs:EPSG::4326"}}`), []string{
			`d.geojson: crs is "urn:ogc:def:crs:EPSG::4326"; give coordinates as WGS 84 longitude, latitude (RFC 7946) and leave crs out`,
			"d.geojson: feature 1: crs is",
		}},
		{"d.geojson", strings.Replace(geoJSON(``, ``), `"features"`, `"Features"`, 1), []string{"features is missing; give a list of points"}},
		{"d.yaml", "depots: []\ndepots:\n- {id: A, position: {lat: 1, lon: 2, Lat: 3}}\n", []string{`line 2: "depots" is given twice`, `line 3: "lat" and "Lat" differ only in case`, `position has the field "Lat"`}},
		{"d.csv", "id,name,lat,lon,lat,lon\nA,,1,2,3,4\n", []string{`d.csv: line 1: "lat" is given twice; give it once`, `d.csv: line 1: "lon" is given twice`}},
		{"d.csv", "id;lat;lon\nA;48,5;2,3\n", []string{`d.csv: line 1: the columns are separated by ";"; save the table with commas between columns and points in decimals`}},
		{"depots", "id;lat;lon\nA;48,5;2,3\n", []string{`depots: line 1: the columns are separated by ";"`}},
		{"d.csv", "id,lat,lon,capacity\nA,\"48,5\",2,\"1,000\"\n", []string{
			"position.lat is 48,5; give -90 to 90 degrees, with a point for decimals and nothing between thousands",
			"capacity is 1,000; give a whole number, 0 to 1000000, with a point for decimals",
		}},
		{"d.yaml", "depots:\n- {id: A, position: {lat: 1, lon: 2}, x: 1, ID2: 2}\n", []string{`"ID2" is not a field; the fields are id, name, position, capacity, chargingSlots, group`, `"x" is not a field; the fields are id, name, position, capacity, chargingSlots, group`}},
		{"d.json", `{`, []string{"d.json: line 1, byte offset 1: not JSON: unexpected EOF"}},
	} {
		got, err := placefile.Depots(c.file, []byte(c.text))
		problems, _ := errors.AsType[placefile.Problems](err)
		if got != nil || len(problems) != len(c.want) {
			t.Errorf("%q: %v, want %d problems:\n%v", c.text, got, len(c.want), err)
			continue
		}
		for i, want := range c.want {
			if strings.HasSuffix(want, ", group") && !strings.HasSuffix(problems[i].String(), want) {
				t.Errorf("%q: problem %q, want no guess", c.text, problems[i])
			}
			if !strings.Contains(problems[i].String(), want) {
				t.Errorf("%q: problem %q, want %q", c.text, problems[i], want)
			}
		}
	}
	for _, text := range []string{"depots:\n- {id: \"D-e\u0301\", position: {lat: 1, lon: 2}}\n", "id,lat,lon\nD-e\u0301,1,2\n"} { // F-IN-03
		if _, err := placefile.Depots("-", []byte(text)); err == nil || !strings.Contains(err.Error(), `in Unicode normal form NFC; give "D-é"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := placefile.Warehouses("w.yaml", []byte("warehouses:\n- {id: W, position: {lat: 1, lon: 2}, authorizedProductTypes: [A, A, 3, \"e\u0301\"], isColdStorageCapable: yes please}\n- {id: V, position: {lat: 1, lon: 2}, authorizedProductTypes: A}\n"))
	for _, want := range []string{`lists "A" twice`, "has the entry 3", `give "é", that is "\u00e9"`, "isColdStorageCapable is yes please; give true or false", "line 3: authorizedProductTypes is A; give a list"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// F-API-05, F-REG-01: the starter file holds the places of the demo's city, and drones like
// those that are simulated there.
func TestStarterFile_HoldsTheDemosPlaces(t *testing.T) {
	data, err := os.ReadFile("../../examples/paris.yaml")
	if err != nil {
		t.Fatal(err)
	}
	world, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: 40})
	if err != nil {
		t.Fatal(err)
	}
	depots, err := placefile.Depots("paris.yaml", data)
	if diff := cmp.Diff(world.Depots, depots); diff != "" || err != nil {
		t.Error(err, diff)
	}
	warehouses, err := placefile.Warehouses("paris.yaml", data)
	if diff := cmp.Diff(world.Warehouses, warehouses); diff != "" || err != nil {
		t.Error(err, diff)
	}
	types, err := placefile.DroneTypes("paris.yaml", data)
	if err != nil || len(types) != 1 {
		t.Fatal(types, err)
	}
	simulated := world.Drones[0].Properties()
	simulated.Due, simulated.MinBatteryHealth = types[0].Due, types[0].MinBatteryHealth
	if diff := cmp.Diff(simulated, types[0].DroneProperties); diff != "" {
		t.Error(diff)
	}
	drones, err := placefile.Drones("paris.yaml", data)
	if err != nil || len(drones) != 3 {
		t.Error(drones, err)
	}
}

// Whatever a file holds, it is read or refused with a problem that names the file.
func FuzzDepots(f *testing.F) {
	for _, text := range []string{depotsYAML, placesJSON, "id,lat,lon\nA,1,2\n", "id;lat\n", "\ufeff{\"type\":\"FeatureCollection\",\"crs\":{}}", geoJSON(`"id":"\ud800"`, ``), "depots:\n- &a [*a]\n", "depots: [{id: !!binary x, ? {a: b} : c}]"} {
		f.Add("f", []byte(text))
		f.Add("f.yaml", []byte(text))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		depots, err := placefile.Depots(name, data)
		problems, refused := errors.AsType[placefile.Problems](err)
		if refused == (len(depots) > 0) || refused && problems[0].File != name {
			t.Errorf("%+v, %v", depots, err)
		}
		for _, d := range depots {
			if shown := string(d.ID) + d.Name; strings.ContainsRune(shown, '\ufffd') && !strings.Contains(string(data), "\ufffd") && !strings.Contains(strings.ToLower(string(data)), "fffd") {
				t.Errorf("%q was read from %q", shown, data)
			}
			if domain.CheckID(string(d.ID)) != nil || d.Capacity < 0 || !(d.Position.Lat <= 90 && d.Position.Lat >= -90) {
				t.Errorf("%+v", d)
			}
		}
	})
}
