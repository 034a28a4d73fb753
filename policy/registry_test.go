package policy

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

var registered = domain.DroneProperties{PayloadCapacityKg: 3, ConsumptionPerKm: 2, MaxFlightTimeMinutes: 40}

func register(t *testing.T, existing *domain.Drone, reg domain.DroneRegistration, droneType *domain.DroneType) Change {
	t.Helper()
	change, err := Register(existing, reg, droneType, "ann", "new", at(0))
	if err != nil {
		t.Fatal(err)
	}
	return change
}

// F-REG-03 F-REG-04 F-REG-08: a drone has its own properties before its type's; what is missing is named.
func TestRegister_ResolvesProperties(t *testing.T) {
	reg := domain.DroneRegistration{ID: "D1", HomeDepotID: "DEPOT", TypeID: "T", Own: domain.DroneProperties{PayloadCapacityKg: 5}}
	_, err := Register(nil, reg, &domain.DroneType{ID: "T"}, "ann", "new", at(0))
	if reason, _ := ReasonOf(err); reason != ReasonRegistrationIncomplete || !strings.Contains(err.Error(), "consumptionPerKm is missing") || !strings.Contains(err.Error(), "maxFlightTimeMinutes") {
		t.Errorf("incomplete: %v", err)
	}
	change := register(t, nil, reg, &domain.DroneType{ID: "T", DroneProperties: registered})
	d := *change.Drone
	if d.Status != domain.DroneUnknown || d.PayloadCapacityKg != 5 || d.ConsumptionPerKm != 2 || !d.RegisteredAt.Equal(at(0)) || d.RegisteredBy != "ann" {
		t.Errorf("%+v", d)
	}
	if e := change.Events; len(e) != 1 || e[0].Cause != domain.CauseOperator || e[0].Reason != "new" {
		t.Errorf("events %+v", e)
	}
	if again := register(t, &d, reg, &domain.DroneType{ID: "T", DroneProperties: registered}); !reflect.DeepEqual(*again.Drone, d) || len(again.Events) != 0 {
		t.Errorf("again: %+v", again)
	}
}

// F-REG-09 F-REG-10 F-REG-12: a registration makes a drone planned that was unregistered, retired
// or of an earlier version, and leaves what it does as it is.
func TestRegister_KeepsWhatADroneDoes(t *testing.T) {
	p := DefaultDronePolicy()
	for name, d := range map[string]domain.Drone{
		"unregistered": {Unregistered: true}, "retired": {RetiredAt: at(-5), RegisteredAt: at(-9)}, "of an earlier version": {}, "registered": {RegisteredAt: at(-9)},
	} {
		before := readyDrone("D1")
		before.Unregistered, before.RetiredAt, before.RegisteredAt, before.CurrentMissionID = d.Unregistered, d.RetiredAt, d.RegisteredAt, "M1"
		planned := !d.Unregistered && !d.Retired()
		if p.Planned(before) != planned {
			t.Errorf("%s: planned %t", name, !planned)
		}
		change := register(t, &before, domain.DroneRegistration{ID: "D1", HomeDepotID: "DEPOT", Own: registered}, nil)
		after := *change.Drone
		if !p.Planned(after) || after.RegisteredAt.IsZero() || after.Status != before.Status || after.CurrentMissionID != "M1" || !after.LastUpdate.Equal(before.LastUpdate) {
			t.Errorf("%s: %+v", name, after)
		}
		if changed := len(change.Events) > 0; changed == planned {
			t.Errorf("%s: events %+v", name, change.Events)
		}
	}
	p.PlanUnregistered = true
	if !p.Planned(domain.Drone{Unregistered: true}) || p.Planned(domain.Drone{RetiredAt: at(0)}) {
		t.Error("with PlanUnregistered an unregistered drone is planned, and a retired one is not")
	}
}

// F-REG-15: an item is due again at the next limit after its maintenance. The warning comes a
// day or a tenth of the interval before.
func TestMaintain_MovesTheLimits(t *testing.T) {
	d := readyDrone("D1")
	d.RegisteredAt = at(0)
	d.Due = []domain.DueItem{{Item: "props", EveryLandings: 100}, {Item: "paint", EveryDays: 10}}
	for _, c := range []struct {
		landings  int
		days      int
		due, soon string
	}{{89, 1, "", ""}, {90, 1, "", "props"}, {100, 1, "props", ""}, {0, 8, "", ""}, {0, 9, "", "paint"}, {0, 10, "paint", ""}} {
		d.Landings = c.landings
		now := at(0).AddDate(0, 0, c.days)
		due, soon := Due(d, now), DueSoon(d, now)
		if (c.due == "") != (due == "") || !strings.Contains(due, c.due) || (c.soon == "") != (soon == "") || !strings.Contains(soon, c.soon) {
			t.Errorf("%d landings, day %d: due %q, soon %q; want %q, %q", c.landings, c.days, due, soon, c.due, c.soon)
		}
	}
	d.Landings = 103
	change, err := Maintain(&d, "D1", "props", "done", at(60))
	if err != nil {
		t.Fatal(err)
	}
	after := *change.Drone
	if next := after.Limits(after.Due[0]); next.Landings != 203 || Due(after, at(60)) != "" {
		t.Errorf("next %+v", next)
	}
	change, err = ReleaseDrone(ptr(domain.Drone{ID: "D1", Grounded: true, Due: d.Due, Landings: 103}), "D1", "why", at(0))
	if err != nil || Due(*change.Drone, at(0)) == "" {
		t.Errorf("a release clears a due item: %v", err)
	}
}

// F-REG-13: only what two applied reports prove counts: at most 120 s of flight, and a landing
// from flying to parked. Late and repeated reports add nothing.
func TestDronePolicy_CountsFlightAndLandings(t *testing.T) {
	p := DefaultDronePolicy()
	b := Binding{Drone: readyDrone("D1")}
	tell := func(seconds float64, status domain.DroneStatus, flown int64, landings int) {
		t.Helper()
		after, _, err := p.ApplyTelemetry(b, report("D1", status, "", at(seconds)), at(seconds))
		if _, rejected := ReasonOf(err); err != nil && !rejected {
			t.Fatal(err)
		}
		if b = after; b.Drone.FlightSeconds != flown || b.Drone.Landings != landings {
			t.Errorf("at %v s: %d s, %d landings; want %d, %d", seconds, b.Drone.FlightSeconds, b.Drone.Landings, flown, landings)
		}
	}
	tell(1, domain.DroneMoving, 0, 0)
	for i := range 20 { // less than a second between two reports
		tell(1+float64(i+1)*0.5, domain.DroneDelivering, int64(i+1)/2, 0)
	}
	tell(11, domain.DroneMoving, 10, 0) // again
	tell(5, domain.DroneMoving, 10, 0)  // late
	tell(21, "", 20, 0)                 // it says nothing new
	tell(621, domain.DroneMoving, 140, 0)
	tell(631, domain.DroneIdle, 140, 1)
	tell(641, domain.DroneCharging, 140, 1)
	tell(651, domain.DroneMoving, 140, 1)
}

// F-REG-17: what a drone counts itself is believed unless it falls, and its serial number and
// battery health are kept.
func TestDronePolicy_BelievesTheDronesOwnCounters(t *testing.T) {
	p := DefaultDronePolicy()
	b := Binding{Drone: readyDrone("D1")}
	b.Drone.FlightSeconds, b.Drone.SerialNumber = 100, "1596A1234567890"
	for i, c := range []struct{ says, want int64 }{{90, 100}, {250, 250}, {250, 250}, {7, 250 + 10}} {
		r := report("D1", domain.DroneMoving, "", at(float64(10*(i+1))))
		r.FlightSeconds, r.BatteryHealth, r.SerialNumber = &c.says, ptr(91.5), "1596A1234567891"
		after, change, err := p.ApplyTelemetry(b, r, r.Timestamp)
		if err != nil {
			t.Fatal(err)
		}
		if b = after; b.Drone.FlightSeconds != c.want || *b.Drone.BatteryHealth != 91.5 {
			t.Errorf("report %d: %d s, want %d", i, b.Drone.FlightSeconds, c.want)
		}
		if told := len(change.Events) > 0 && change.Events[0].State["otherIdentity"] == true; told != (i == 0) {
			t.Errorf("report %d: events %+v", i, change.Events)
		}
	}
}

// F-REG-08: no report changes what operators set.
func TestDronePolicy_ReportsNeverChangeARegistration(t *testing.T) {
	p := DefaultDronePolicy()
	change := register(t, nil, domain.DroneRegistration{
		ID: "D1", HomeDepotID: "DEPOT", TypeID: "T", ShortName: "one", RegistrationMark: "HB-1", SerialNumber: "1596A1234567890", RemoteID: "r",
		Own: domain.DroneProperties{ColdBox: &domain.ColdBox{MinCelsius: 2, MaxCelsius: 8}, Due: []domain.DueItem{{Item: "props", EveryDays: 30}}, MinBatteryHealth: 70},
	}, &domain.DroneType{ID: "T", DroneProperties: registered})
	b := Binding{Drone: *change.Drone}
	want := b.Drone.Registration()
	for i, status := range []domain.DroneStatus{domain.DroneIdle, domain.DroneMoving, domain.DroneIdle, domain.DroneEmergency} {
		r := report("D1", status, "", at(float64(10*(i+1))))
		r.SerialNumber, r.FlightSeconds = "1596A1234567891", ptr(int64(5))
		after, _, err := p.ApplyTelemetry(b, r, r.Timestamp)
		if err != nil {
			t.Fatal(err)
		}
		b = after
	}
	if !reflect.DeepEqual(b.Drone.Registration(), want) || !b.Drone.RegisteredAt.Equal(change.Drone.RegisteredAt) || b.Drone.Unregistered || b.Drone.Retired() {
		t.Errorf("%+v, want %+v", b.Drone.Registration(), want)
	}
	stranger, c, err := p.ApplyTelemetry(Binding{}, report("D9", domain.DroneIdle, "", at(1)), at(1))
	if err != nil || !stranger.Drone.Unregistered || len(c.Events) == 0 || c.Events[0].State["unregistered"] != true {
		t.Errorf("a stranger: %+v, %v", stranger.Drone, err)
	}
}

// F-REG-14: a drone that is due finishes what it flies; an amendment may take orders away.
func TestDecisionCase_AmendmentsOfADroneThatIsDue(t *testing.T) {
	first := soundDecision()
	p := DefaultMissionAssignmentPolicy()
	v, err := p.AssignMission(first.state, first.decision, Delivery{PublishedAt: at(-1), ReceivedAt: at(0)}, at(0))
	if err != nil || v.Entry.Outcome != domain.OutcomeApplied {
		t.Fatal(v.Entry, err)
	}
	m, d := v.Change.Missions[0], *v.Change.Drone
	d.MissionAcked, d.NamedRevision, d.SupportsAmendments = true, 1, true
	d.Due = []domain.DueItem{{Item: "props", DueLimits: domain.DueLimits{At: start.Add(-time.Second)}}}
	orders := map[domain.OrderID]domain.Order{"O3": openOrder("O3", 2)}
	for _, o := range v.Change.Orders {
		orders[o.ID] = o
	}
	for _, c := range []struct {
		ids  []domain.OrderID
		want Reason
	}{{[]domain.OrderID{"O1"}, ""}, {[]domain.OrderID{"O1", "O2", "O3"}, ReasonDroneDue}} {
		a := plan("Y", "D1", c.ids...)
		a.Fence, a.AmendsMissionID, a.AmendsRevision = first.decision.Fence, m.ID, 1
		s := first.state
		s.Drone, s.Mission, s.Orders = &d, &m, orders
		v, err := p.AssignMission(s, a, Delivery{PublishedAt: at(-1), ReceivedAt: at(0)}, at(0))
		if err != nil || v.Entry.Reason != string(c.want) {
			t.Errorf("%v: %s %s, %v; want %q", c.ids, v.Entry.Reason, v.Entry.Detail, err, c.want)
		}
	}
	if !strings.Contains(Due(d, start), "item props") {
		t.Error("the reason does not name the item")
	}
}
