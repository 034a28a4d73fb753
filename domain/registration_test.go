package domain_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/domain"
)

// validRegistration has every field.
func validRegistration() domain.DroneRegistration {
	return domain.DroneRegistration{
		ID: "D-1", HomeDepotID: "DEPOT", TypeID: "M30", ShortName: "Alpha", RegistrationMark: "F-AAAA",
		SerialNumber: "1596A1234567890", RemoteID: "FRA-OP-1 x", Own: domain.DroneProperties{
			PayloadCapacityKg: 5, ConsumptionPerKm: 1.5, MaxFlightTimeMinutes: 45, ConsumptionPerKmKg: 0.2, ChargeRate: 2, BatteryCapacityMah: 12_000,
			ColdBox: &domain.ColdBox{MinCelsius: 2, MaxCelsius: 8}, MinBatteryHealth: 80,
			Due: []domain.DueItem{{Item: "propellers", EveryFlightHours: 100}},
		},
	}
}

// F-REG-01, F-REG-04: each field that is wrong is named with its fix.
func TestDroneRegistration_NamesEachBadField(t *testing.T) {
	type reg = domain.DroneRegistration
	for _, tt := range []struct {
		name   string
		change func(*reg)
		want   []string // the beginning of each problem
	}{
		{"all is right", func(*reg) {}, nil},
		{"only what is needed", func(r *reg) { *r = reg{ID: "D", HomeDepotID: "H"} }, nil},
		{"no ids", func(r *reg) { r.ID, r.HomeDepotID = "", "" }, []string{"id is missing; give", "homeDepotId is missing; give"}},
		{"slashes", func(r *reg) { r.ID, r.HomeDepotID, r.TypeID = "a/b", "h/x", "t/x" }, []string{`id "a/b" contains "/"`, `homeDepotId "h/x" contains`, `typeId "t/x" contains`}},
		{"names on two lines", func(r *reg) { r.ShortName, r.RegistrationMark = "a\nb", "c\td" }, []string{`shortName "a\nb" contains the control`, `registrationMark "c\td" contains`}},
		{"a name of 129 bytes", func(r *reg) { r.ShortName = strings.Repeat("x", 129) }, []string{`shortName "xxx`}},
		{"serial number", func(r *reg) { r.SerialNumber = "1596B1234567890" }, []string{`serialNumber is "1596B1234567890"; its fifth character announces 11 more, but 10 follow; give`}},
		{"remote id of 64 bytes", func(r *reg) { r.RemoteID = strings.Repeat("x", 64) }, nil},
		{"remote id of 65 bytes", func(r *reg) { r.RemoteID = strings.Repeat("x", 65) }, []string{"remoteId has 65 bytes; give at most 64"}},
		{"remote id with an umlaut", func(r *reg) { r.RemoteID = "ü" }, []string{`remoteId is "ü"; give printable`}},
		{"below 0", func(r *reg) {
			r.Own.PayloadCapacityKg, r.Own.ConsumptionPerKm, r.Own.MaxFlightTimeMinutes = -1, -1, -1
			r.Own.ConsumptionPerKmKg, r.Own.ChargeRate, r.Own.BatteryCapacityMah, r.Own.MinBatteryHealth = -1, -1, -1, -1
		}, []string{
			"payloadCapacityKg is -1; give a number above 0 and at most 1000", "consumptionPerKm is -1; give a number above 0", "maxFlightTimeMinutes is -1; give a whole",
			"consumptionPerKmKg is -1;", "chargeRate is -1;", "batteryCapacityMah is -1;", "minBatteryHealth is -1; give a number above 0 and at most 100",
		}},
		{"no numbers", func(r *reg) {
			r.Own.PayloadCapacityKg, r.Own.ConsumptionPerKm, r.Own.ChargeRate = math.NaN(), math.NaN(), math.Inf(1)
		}, []string{
			"payloadCapacityKg is NaN", "consumptionPerKm is NaN", "chargeRate is +Inf",
		}},
		{"a payload of 1,000 kg", func(r *reg) { r.Own.PayloadCapacityKg = 1000 }, nil},
		{"a payload above", func(r *reg) { r.Own.PayloadCapacityKg = 1000.1 }, []string{"payloadCapacityKg is 1000.1"}},
		{"too long in the air", func(r *reg) { r.Own.MaxFlightTimeMinutes = 1_000_001 }, []string{"maxFlightTimeMinutes is 1000001"}},
		{"the coldest and the warmest box", func(r *reg) { r.Own.ColdBox = &domain.ColdBox{MinCelsius: -100, MaxCelsius: 60} }, nil},
		{"a box that is too cold", func(r *reg) { r.Own.ColdBox.MinCelsius = -100.5 }, []string{"coldBox is -100.5 to 8 °C; give"}},
		{"a box without a range", func(r *reg) { r.Own.ColdBox.MinCelsius = 8 }, []string{"coldBox has minCelsius 8 and maxCelsius 8; give a minimum below"}},
		{"a box of no number", func(r *reg) { r.Own.ColdBox.MaxCelsius = math.NaN() }, []string{"coldBox is 2 to NaN"}},
		{"16 items", func(r *reg) { r.Own.Due = items(16) }, nil},
		{"17 items", func(r *reg) { r.Own.Due = items(17) }, []string{"due has 17 items; give at most 16"}},
		{"items that are wrong", func(r *reg) {
			r.Own.Due = []domain.DueItem{{Item: "a"}, {Item: "a", EveryDays: -1}, {EveryFlightHours: math.NaN(), EveryLandings: -1, DueLimits: domain.DueLimits{FlightHours: -1, Landings: -2}}}
		}, []string{
			"due[0] has no limit; give at least one of", `due[1].item "a" is given twice`, "due[1].everyDays is -1", "due[2].item is missing",
			"due[2].flightHours is -1", "due[2].landings is -2", "due[2].everyFlightHours is NaN", "due[2].everyLandings is -1",
		}},
	} {
		r := validRegistration()
		tt.change(&r)
		checkProblems(t, tt.name, r.Check(), tt.want)
	}
	checkProblems(t, "type", domain.DroneType{DroneProperties: domain.DroneProperties{ChargeRate: -1}}.Check(), []string{"id is missing", "chargeRate is -1"})
}

func items(n int) (list []domain.DueItem) {
	for i := range n {
		list = append(list, domain.DueItem{Item: fmt.Sprint("item ", i), EveryDays: 1})
	}
	return list
}

func checkProblems(t *testing.T, name string, got []domain.FieldProblem, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %q, want %d problems", name, got, len(want))
		return
	}
	for i, p := range got {
		if text := p.Field + " " + p.Text; !strings.HasPrefix(text, want[i]) {
			t.Errorf("%s: %q, want %q", name, text, want[i])
		}
	}
}

// F-REG-01: what passes is a serial number by ANSI/CTA-2063-A.
func TestCheckSerialNumber_IsTheStandards(t *testing.T) {
	for text, ok := range map[string]bool{
		"1596A1234567890": true, "MFR1A1234567890": true, "ABCD1Z": true, "ABCD90ABCDEFGH": true, "1596FABCDEFGH1234567": true,
		"": false, "1596": false, "1596A": false, "15960": false, "1596A123456789": false, "1596A12345678901": false,
		"1596G1234567890123456": false, "O596A1234567890": false, "1596A12345678I0": false, "1596a1234567890": false, "1596A12345é7890": false, "1596A123456 890": false,
	} {
		if err := domain.CheckSerialNumber(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// F-REG-03, F-REG-04: the drone's own comes before its type's, and what it needs is there.
func TestDroneRegistration_ResolvesItsOwnBeforeItsTypes(t *testing.T) {
	kind := domain.DroneType{ID: "M30", DroneProperties: domain.DroneProperties{
		PayloadCapacityKg: 9, ConsumptionPerKm: 9, ColdBox: &domain.ColdBox{MaxCelsius: 4}, Due: items(2), ChargeRate: 3,
	}}
	r := domain.DroneRegistration{ID: "D", HomeDepotID: "H", TypeID: "M30", Own: domain.DroneProperties{PayloadCapacityKg: 5, Due: items(1)}}
	_, problems := r.Resolve(&kind)
	checkProblems(t, "no flight time", problems, []string{"maxFlightTimeMinutes is missing from the drone and from type M30; give it"})
	_, problems = r.Resolve(nil)
	checkProblems(t, "no type", problems, []string{"consumptionPerKm is missing; give it", "maxFlightTimeMinutes is missing; give it"})

	r.Own.MaxFlightTimeMinutes = 40
	got, problems := r.Resolve(&kind)
	want := domain.DroneProperties{PayloadCapacityKg: 5, ConsumptionPerKm: 9, MaxFlightTimeMinutes: 40, ColdBox: kind.ColdBox, Due: items(1), ChargeRate: 3}
	if diff := cmp.Diff(want, got); diff != "" || problems != nil {
		t.Error(problems, diff)
	}
	if diff := cmp.Diff(r.Own, got.Only(r.Own.Given())); diff != "" {
		t.Errorf("its own is not kept: %s", diff)
	}
	// A drone can do without the cold box of its type, and its document keeps that.
	r.Own.NoColdBox = true
	got, _ = r.Resolve(&kind)
	var d domain.Drone
	d.SetProperties(got)
	d.OwnProperties = r.Own.Given()
	if again := d.Registration().Own; got.ColdBox != nil || d.ColdBox != nil || cmp.Diff(r.Own, again) != "" {
		t.Errorf("without a cold box: %+v, in its document %+v", got, again)
	}
	all := validRegistration().Own
	if got, _ := (domain.DroneRegistration{Own: all}).Resolve(&kind); cmp.Diff(all, got) != "" || len(all.Given()) != 9 {
		t.Errorf("all of its own: %+v, %v", got, all.Given())
	}
}

// F-REG-14, F-REG-15: what is due next follows from the item and its latest maintenance.
func TestDueItem_NextCountsFromTheLatestMaintenance(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2026, 3, d, 8, 0, 0, 0, time.UTC) }
	limits := func(at time.Time, hours float64, landings int) domain.DueLimits {
		return domain.DueLimits{At: at, FlightHours: hours, Landings: landings}
	}
	never := limits(time.Time{}, 0, 0)
	all := domain.DueItem{DueLimits: limits(day(20), 50, 60), EveryDays: 3, EveryFlightHours: 10, EveryLandings: 20}
	every := domain.DueItem{EveryDays: 3, EveryFlightHours: 10, EveryLandings: 20}
	once := domain.DueItem{DueLimits: limits(day(20), 50, 60)}
	done := &domain.Maintenance{Done: limits(day(10), 40, 30), Met: limits(day(20), 50, 60)}
	for _, tt := range []struct {
		name string
		item domain.DueItem
		last *domain.Maintenance
		want domain.DueLimits
	}{
		{"intervals count from the registration", every, nil, limits(day(4), 10, 20)},
		{"a first limit comes before an interval", all, nil, limits(day(20), 50, 60)},
		{"limits alone", once, nil, limits(day(20), 50, 60)},
		{"done early, the limits are met", once, done, never},
		{"intervals count from when it was done", all, done, limits(day(13), 50, 50)},
		{"a later limit counts", domain.DueItem{DueLimits: limits(day(21), 51, 61)}, done, limits(day(21), 51, 61)},
		{"the earlier of both", domain.DueItem{DueLimits: limits(day(21), 51, 61), EveryDays: 30, EveryFlightHours: 1, EveryLandings: 50}, done, limits(day(21), 41, 61)},
		{"an earlier limit was met too", domain.DueItem{DueLimits: limits(day(12), 45, 31)}, done, never},
	} {
		if got := tt.item.Next(day(1), tt.last); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
	}
}
