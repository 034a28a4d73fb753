package operator_test

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// F-AMD-06: an audit says in words how far a drone charges and until when it waits.
func TestDesk_AuditsAMissionWithoutOrders(t *testing.T) {
	o := openOffice(t)
	now := time.Now()
	if err := o.desk.Store.Setup(t.Context(), []domain.Depot{{ID: "DEPOT-1", Position: home}}, nil, nil); err != nil {
		t.Fatal(err)
	}
	o.report(domain.Telemetry{
		DroneID: "D1", Timestamp: now, Position: home, Battery: 60, Status: domain.DroneIdle, SupportsAmendments: true, SupportsStandby: true,
	})
	d := domain.Decision{
		ID: "DEC-1", CycleID: "C1", Fence: "7", SnapshotTime: now.Add(time.Second), DroneID: "D1",
		Route: []domain.Waypoint{
			{Type: domain.WaypointCharge, Position: home, ChargeToPercent: 87.5},
			{Type: domain.WaypointWait, Position: home, WaitUntil: now.Add(time.Hour)},
		},
	}
	d.PayloadHash = wire.DecisionHash(d)
	entry, err := o.desk.Store.AssignMission(t.Context(), d, policy.Delivery{MessageID: "m1", PublishedAt: d.SnapshotTime, ReceivedAt: now})
	if err != nil || entry.Outcome != domain.OutcomeApplied {
		t.Fatalf("%+v, %v", entry, err)
	}
	o.expect(o.says(o.desk.Audit(t.Context(), operator.SubjectMission, string(entry.MissionID))),
		"orders none", "CHARGE to 87.5 %", "WAIT until "+now.Add(time.Hour).UTC().Format(time.DateOnly))
}
