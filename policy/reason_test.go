package policy

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-DOC-01, F-TEL-07: a failure is the reason of a drone's event only if its mission
// failed, not if the mission was already over.
func TestDronePolicy_EventsOfACompletedMissionNameNoFailure(t *testing.T) {
	p := DefaultDronePolicy()
	now := start.Add(time.Hour)
	completed := func() Binding {
		d := readyDrone("D1")
		d.Status, d.CurrentMissionID, d.MissionAcked, d.MissionMoved = domain.DroneMoving, "M", true, true
		d.LastUpdate, d.SeenAt = start, start
		return Binding{Drone: d, Mission: &domain.Mission{ID: "M", DroneID: "D1", Status: domain.MissionCompleted, StartTime: start, CommandPublishedAt: start}}
	}
	broken := completed()
	_, faulty, err := p.ApplyTelemetry(broken, domain.Telemetry{DroneID: "D1", Timestamp: now, Battery: 80, Status: domain.DroneMaintenance, MissionID: "M"}, now)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change Change
		to     domain.DroneStatus
		reason string
	}{
		{"in maintenance", faulty, domain.DroneMaintenance, ""},
		{"silent", p.SweepBinding(completed(), now), domain.DroneUnknown, "silent since " + start.UTC().Format(time.RFC3339)},
	} {
		if c.change.Drone.Bound() || len(c.change.Missions) != 0 || len(c.change.Events) != 1 {
			t.Errorf("%s: %+v, want the drone let go and nothing else", c.name, c.change)
			continue
		}
		if e := c.change.Events[0]; e.To != string(c.to) || e.MissionID != "M" || e.Reason != c.reason {
			t.Errorf("%s: event %+v, want %s of M because %q", c.name, e, c.to, c.reason)
		}
	}
}
