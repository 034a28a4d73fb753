package placefile_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/app/placefile"
	"github.com/dronefleet/dronefleet/domain"
)

const dronesYAML = `
depots: []
droneTypes:
  - id: M30
    payloadCapacityKg: 5
    consumptionPerKm: 1.5
    coldBox: {minCelsius: 2, maxCelsius: 8}
drones:
  - id: D-1
    homeDepotId: DEPOT
    typeId: M30
    shortName: Alpha
    registrationMark: F-AAAA
    serialNumber: 1596A1234567890
    remoteId: FRA-OP-1
    maxFlightTimeMinutes: 45
    consumptionPerKmKg: 0.25
    chargeRate: 2
    batteryCapacityMah: 12000
    minBatteryHealth: 80
    due:
      - {item: propellers, everyFlightHours: 100, flightHours: 50}
      - {item: yearly check, at: 2027-01-31, everyDays: 365, landings: 500, everyLandings: 600}
  - id: D-2
    homeDepotId: DEPOT
    payloadCapacityKg: 2
    consumptionPerKm: 1
    maxFlightTimeMinutes: 30
    coldBox: {minCelsius: -20, maxCelsius: 0.5}
  - {id: D-3, homeDepotId: DEPOT, typeId: M30, maxFlightTimeMinutes: 30, coldBox: none}
`

const dronesCSV = `id,homeDepotId,typeId,shortName,registrationMark,serialNumber,remoteId,maxFlightTimeMinutes,consumptionPerKmKg,chargeRate,batteryCapacityMah,minBatteryHealth,due,payloadCapacityKg,consumptionPerKm,minCelsius,maxCelsius,coldBox
D-1,DEPOT,M30,Alpha,F-AAAA,1596A1234567890,FRA-OP-1,45,0.25,2,12000,80,propellers everyFlightHours=100 flightHours=50; yearly check at=2027-01-31T00:00:00Z everyDays=365 landings=500 everyLandings=600,,,,,
D-2,DEPOT,,,,,,30,,,,,,2,1,-20,0.5,
D-3,DEPOT,M30,,,,,30,,,,,,,,,,none
`

// F-REG-01: YAML, CSV and JSON say the same of a drone and of a type.
func TestDrones_AreTheSameInEveryFormat(t *testing.T) {
	want := []domain.DroneRegistration{
		{
			ID: "D-1", HomeDepotID: "DEPOT", TypeID: "M30", ShortName: "Alpha", RegistrationMark: "F-AAAA", SerialNumber: "1596A1234567890", RemoteID: "FRA-OP-1",
			Own: domain.DroneProperties{
				MaxFlightTimeMinutes: 45, ConsumptionPerKmKg: 0.25, ChargeRate: 2, BatteryCapacityMah: 12_000, MinBatteryHealth: 80,
				Due: []domain.DueItem{
					{Item: "propellers", DueLimits: domain.DueLimits{FlightHours: 50}, EveryFlightHours: 100},
					{Item: "yearly check", DueLimits: domain.DueLimits{At: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC), Landings: 500}, EveryDays: 365, EveryLandings: 600},
				},
			},
		},
		{ID: "D-2", HomeDepotID: "DEPOT", Own: domain.DroneProperties{
			PayloadCapacityKg: 2, ConsumptionPerKm: 1, MaxFlightTimeMinutes: 30, ColdBox: &domain.ColdBox{MinCelsius: -20, MaxCelsius: 0.5},
		}},
		{ID: "D-3", HomeDepotID: "DEPOT", TypeID: "M30", Own: domain.DroneProperties{MaxFlightTimeMinutes: 30, NoColdBox: true}},
	}
	for name, text := range map[string]string{"d.yaml": dronesYAML, "d.csv": dronesCSV, "-": dronesYAML, "drones": dronesCSV} {
		got, err := placefile.Drones(name, []byte(text))
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	got, err := placefile.DronesOf([]map[string]any{
		{
			"id": "D-1", "homeDepotId": "DEPOT", "typeId": "M30", "shortName": "Alpha", "registrationMark": "F-AAAA", "serialNumber": "1596A1234567890", "remoteId": "FRA-OP-1",
			"maxFlightTimeMinutes": 45.0, "consumptionPerKmKg": 0.25, "chargeRate": 2.0, "batteryCapacityMah": 12000.0, "minBatteryHealth": 80.0, "due": []any{
				map[string]any{"item": "propellers", "flightHours": 50.0, "everyFlightHours": 100.0},
				map[string]any{"item": "yearly check", "at": "2027-01-31", "everyDays": 365.0, "landings": 500.0, "everyLandings": 600.0},
			},
		},
		{"id": "D-2", "homeDepotId": "DEPOT", "payloadCapacityKg": 2.0, "consumptionPerKm": 1.0, "maxFlightTimeMinutes": 30.0, "coldBox": map[string]any{"minCelsius": -20.0, "maxCelsius": 0.5}},
		{"id": "D-3", "homeDepotId": "DEPOT", "typeId": "M30", "maxFlightTimeMinutes": 30.0, "coldBox": "none"},
	})
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("JSON: %v %s", err, diff)
	}
	types := []domain.DroneType{{ID: "M30", DroneProperties: domain.DroneProperties{PayloadCapacityKg: 5, ConsumptionPerKm: 1.5, ColdBox: &domain.ColdBox{MinCelsius: 2, MaxCelsius: 8}}}}
	for name, text := range map[string]string{"d.yaml": dronesYAML, "d.csv": "id,payloadCapacityKg,consumptionPerKm,minCelsius,maxCelsius\nM30,5,1.5,2,8\n"} {
		got, err := placefile.DroneTypes(name, []byte(text))
		if diff := cmp.Diff(types, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

// F-REG-01, F-REG-04: one error names every problem, with its line, field and fix.
func TestDrones_EveryProblemIsNamed(t *testing.T) {
	const enough = ", payloadCapacityKg: 1, consumptionPerKm: 1, maxFlightTimeMinutes: 1"
	of := func(fields string) string { return "drones:\n- {id: A, homeDepotId: H" + enough + fields + "}\n" }
	for _, c := range []struct {
		file, text string
		want       []string // one for each problem, in order
	}{
		{"d.yaml", "drones:\n- shortName: 7\n  payloadCapacityKg: heavy\n  maxFlightTimeMinutes: 1.5\n- nothing\n", []string{
			"d.yaml: line 5: is not a drone; give id and homeDepotId", "d.yaml: line 2: shortName is 7; give a text, in quotes",
			"d.yaml: line 3: payloadCapacityKg is heavy; give a number above 0", "d.yaml: line 4: maxFlightTimeMinutes is 1.5; give a whole number, 1 to",
			"d.yaml: line 2: id is missing; give 1 to 128 bytes", "d.yaml: line 2: homeDepotId is missing", "d.yaml: line 2: consumptionPerKm is missing; give it",
		}},
		{"d.yaml", "droneTypes:\n- {id: T, payloadCapacityKg: 5}\ndrones:\n- {id: A, homeDepotId: H, typeId: T, consumptionPerKm: 1}\n- {id: B, homeDepotId: H, typeId: stored}\n",
			[]string{"d.yaml: line 4: maxFlightTimeMinutes is missing from the drone and from type T; give it in one of them"}},
		{"d.yaml", of(", registeredAt: 2026-01-01, registeredBy: x, unregistered: true, retiredAt: 2026-01-01, flightSeconds: 1, landings: 2, batteryHealth: 3, countsStops: true"), []string{
			"d.yaml: line 2: registeredAt is written by the State Manager only; leave it out", "registeredBy is written", "unregistered is written", "retiredAt is written",
			"flightSeconds is written", "landings is written", "batteryHealth is written", "countsStops is written",
		}},
		{"d.yaml", of(", position: {lat: 1, lon: 2}, serialnumber: x"), []string{
			`"position" is not a field; the fields are id, homeDepotId, typeId, shortName`, `"serialnumber" is not a field; the fields are id, homeDepotId, typeId, shortName, registrationMark, serialNumber, remoteId, payloadCapacityKg, consumptionPerKm, maxFlightTimeMinutes, consumptionPerKmKg, chargeRate, batteryCapacityMah, coldBox, due, minBatteryHealth; did you mean serialNumber?`,
		}},
		{"d.yaml", "drones:\n- {id: A, homeDepotId: H, payloadCapacityKg: 0, consumptionPerKm: .nan, maxFlightTimeMinutes: 0}\n", []string{
			"payloadCapacityKg is 0; give a number above 0", "consumptionPerKm is NaN; give a number above 0", "maxFlightTimeMinutes is 0; give a whole number, 1 to 1000000",
		}},
		{"d.yaml", of(", coldBox: yes"), []string{"d.yaml: line 2: coldBox is yes; give minCelsius and maxCelsius, as in {minCelsius: 2"}},
		{"d.yaml", of(", coldBox: {minCelsius: 2}"), []string{"coldBox has no maxCelsius; give both limits"}},
		{"d.yaml", of(", coldBox: {minCelsius: cool, maxCelsius: 8, mode: dry}"), []string{`coldBox has the field "mode"; give only minCelsius and maxCelsius`, "coldBox has minCelsius cool; give degrees"}},
		{"d.yaml", of(", coldBox: {minCelsius: 8, maxCelsius: 2}"), []string{"coldBox has minCelsius 8 and maxCelsius 2; give a minimum below the maximum"}},
		{"d.yaml", of(", due: often"), []string{"due is often; give a list such as"}},
		{"d.yaml", of(", due: [often, {item: a}, {everyDays: 1}, {item: 7, at: soon, every: 3, landings: -1}]"), []string{
			"d.yaml: line 2: due[0] is often; give an item such as", `due[3] has the field "every"; give only item, at, flightHours`, "due[3].item is 7; give a text", "due[3].at is soon; give a day such as 2027-01-31",
			"due[3].landings is -1; give", "due[1] has no limit", "due[2].item is missing",
		}},
		{"d.yaml", of(", serialNumber: 1596a1") + strings.TrimPrefix(of(", serialNumber: ABCD1Z"), "drones:\n") + strings.TrimPrefix(of(", serialNumber: ABCD1Z"), "drones:\n"), []string{
			`d.yaml: line 2: serialNumber is "1596a1"; give 4 letters or digits`, `d.yaml: line 3: id "A" is already used in line 2`,
			`d.yaml: line 4: serialNumber "ABCD1Z" is already used in line 3; give each drone its own`, `d.yaml: line 4: id "A" is already used in line 3; give each drone once`,
		}},
		{"d.csv", "id,homeDepotId,payloadCapacityKg,consumptionPerKm,maxFlightTimeMinutes,coldBox,due\nA,H,\"1,5\",1,1,yes,propellers\n", []string{
			"d.csv: line 2: payloadCapacityKg is 1,5; give a number above 0, with a point for decimals", "d.csv: line 2: coldBox is yes; give the columns minCelsius and maxCelsius",
			"d.csv: line 2: due[0] has no limit; give at least one",
		}},
		{"d.csv", "id,homeDepotId,lat,lon,payloadCapacityKg,consumptionPerKm,maxFlightTimeMinutes,minCelsius\nA,H,1,2,1,1,1,5\n", []string{
			`"lat" is not a field`, `"lon" is not a field`, "d.csv: line 2: coldBox has no maxCelsius",
		}},
		{"d.geojson", placesJSON, []string{"d.geojson: is GeoJSON, which holds places only; give drones as YAML or CSV"}},
		{"d.yaml", depotsYAML, []string{"d.yaml: has no drones; give at least one"}},
		{"d.yaml", "hospitals: []\n", []string{`"hospitals" is not a list of the fleet; give depots, warehouses, droneTypes, drones or webhooks`}},
	} {
		got, err := placefile.Drones(c.file, []byte(c.text))
		problems, _ := errors.AsType[placefile.Problems](err)
		if got != nil || len(problems) != len(c.want) {
			t.Errorf("%q: %v, want %d problems:\n%v", c.text, got, len(c.want), err)
			continue
		}
		for i, want := range c.want {
			if !strings.Contains(problems[i].String(), want) {
				t.Errorf("%q: problem %q, want %q", c.text, problems[i], want)
			}
		}
	}
	_, err := placefile.DroneTypes("t.yaml", []byte("droneTypes:\n- {chargeRate: -1, homeDepotId: H}\n"))
	for _, want := range []string{"t.yaml: line 2: id is missing", "chargeRate is -1", `"homeDepotId" is not a field`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// F-REG-01: whatever a file holds, its drones are valid or refused.
func FuzzDrones(f *testing.F) {
	for _, text := range []string{dronesYAML, dronesCSV, "drones:\n- &a [*a]\n", "id,due\nA,=;=x\n", "drones:\n- {id: A, homeDepotId: H, due: [{item: a, at: 0001-01-01}], coldBox: {}}\n"} {
		f.Add("f", []byte(text))
		f.Add("f.csv", []byte(text))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		drones, err := placefile.Drones(name, data)
		problems, refused := errors.AsType[placefile.Problems](err)
		if refused == (len(drones) > 0) || refused && problems[0].File != name {
			t.Errorf("%+v, %v", drones, err)
		}
		for _, d := range drones {
			if problems := d.Check(); problems != nil {
				t.Errorf("%+v: %v", d, problems)
			}
		}
	})
}
