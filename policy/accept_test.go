package policy

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dronefleet/dronefleet/domain"
)

// F-DEC-02, F-TEL-05, F-TEL-09
func TestDronePolicy_CanAcceptMission(t *testing.T) {
	for _, row := range []struct {
		name        string
		change      func(*domain.Drone)
		consumption float64
		seen        time.Time
		want        Reason
	}{
		{"idle, fresh and charged", nil, 30, start, ""},
		{"lands with exactly 20 %", nil, 70, start, ""},
		{"lands with less than 20 %", nil, 70.1, start, ReasonLowBattery},
		{"has exactly 20 %", func(d *domain.Drone) { d.Battery = 20 }, 0, start, ReasonLowBattery},
		{"an estimate that is not a number", nil, math.NaN(), start, ReasonLowBattery},
		{"bound to a mission", func(d *domain.Drone) { d.CurrentMissionID = "M1" }, 30, start, ReasonDroneNotIdle},
		{"charging", func(d *domain.Drone) { d.Status = domain.DroneCharging }, 30, start, ReasonDroneNotIdle},
		{"heard of 15 s ago", func(d *domain.Drone) { d.SeenAt = at(-15) }, 30, start, ""},
		{"silent for more than 15 s", func(d *domain.Drone) { d.SeenAt = at(-15.001) }, 30, start, ReasonDroneSilent},
		{"idle since the snapshot", nil, 30, at(-60), ""},
		{"flown since the snapshot", nil, 30, at(-60.001), ReasonDroneChanged},
		{"on its way home", homeboundAt(-30), 30, start, ""},
		{"on its way home since the snapshot", homeboundAt(-30), 30, at(-31), ReasonDroneChanged},
		{"on its way home, and does not obey under way", func(d *domain.Drone) { homeboundAt(-30)(d); d.SupportsAmendments = false }, 30, start, ReasonDroneNotIdle},
		{"on its way home, with a fault", func(d *domain.Drone) { homeboundAt(-30)(d); d.FaultSince = at(-1) }, 30, start, ReasonDroneNotIdle},
		{"has landed, and names its mission", func(d *domain.Drone) { homeboundAt(-30)(d); d.Status = domain.DroneCharging }, 30, start, ReasonDroneNotIdle},
		{"the first reason counts", func(d *domain.Drone) { d.SeenAt, d.Battery = at(-60), 1 }, 30, at(-61), ReasonDroneSilent},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := readyDrone("D1")
			if row.change != nil {
				row.change(&d)
			}
			err := DefaultDronePolicy().CanAcceptMission(d, row.consumption, row.seen, start)
			if reason, rejected := ReasonOf(err); reason != row.want || rejected != (row.want != "") || rejected != (err != nil) {
				t.Errorf("%v, want reason %q", err, row.want)
			}
		})
	}
}

// homeboundAt makes a drone one that has completed its mission and flies home.
func homeboundAt(seconds float64) func(*domain.Drone) {
	return func(d *domain.Drone) {
		d.Status, d.CurrentMissionID, d.MissionAcked, d.SupportsAmendments = domain.DroneMoving, "M1", true, true
		d.Homebound, d.HomeboundSince = true, at(seconds)
	}
}

// F-DEC-02: with nothing else against a decision, it is applied exactly when its
// drone can accept the mission, and rejected for that reason with that detail.
func TestMissionAssignmentPolicy_AsksTheDronePolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := soundDecision()
		d := j.state.Drone
		d.Status = rapid.SampledFrom([]domain.DroneStatus{domain.DroneIdle, domain.DroneIdle, domain.DroneCharging}).Draw(t, "status")
		d.CurrentMissionID = rapid.SampledFrom([]domain.MissionID{"", "", "M1"}).Draw(t, "mission")
		if rapid.Bool().Draw(t, "homebound") {
			homeboundAt(rapid.Float64Range(-20, 0).Draw(t, "homebound since"))(d)
		}
		d.SeenAt = at(rapid.Float64Range(-17, 0).Draw(t, "seen"))
		d.IdleSince = at(rapid.Float64Range(-20, 0).Draw(t, "idle since"))
		d.Battery = rapid.Float64Range(15, 60).Draw(t, "battery")
		j.decision.EstimatedBatteryConsumption = rapid.Float64Range(0, 30).Draw(t, "consumption")
		j.decision.SnapshotTime = at(-10)

		p := DefaultMissionAssignmentPolicy()
		v, err := p.AssignMission(j.state, j.decision, Delivery{PublishedAt: start, ReceivedAt: start}, start)
		if err != nil {
			t.Fatal(err)
		}
		refused, _ := p.drones().CanAcceptMission(*d, j.decision.EstimatedBatteryConsumption, at(-10), start).(*Rejection)
		if refused == nil {
			refused = &Rejection{}
		}
		if v.Entry.Reason != string(refused.Reason) || v.Entry.Detail != refused.Detail {
			t.Fatalf("the ledger says %q %q, the drone policy %q %q", v.Entry.Reason, v.Entry.Detail, refused.Reason, refused.Detail)
		}
	})
}
