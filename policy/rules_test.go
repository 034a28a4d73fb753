package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// rules are all policies as their callers use them. Every check in this package takes one: it must
// pass with the real policies and fail with broken ones.
type rules struct {
	drone      DronePolicy
	order      OrderPolicy
	assignment MissionAssignmentPolicy

	proveLate        func(Ended, domain.Telemetry, time.Time) (Change, error)
	telemetry        func(Binding, domain.Telemetry, time.Time) (Binding, Change, error)
	sweepBinding     func(Binding, time.Time) Change
	sweepIdle        func(domain.Drone, time.Time) Change
	sweepOrder       func(domain.Order, time.Time) Change
	assign           func(DecisionState, domain.Decision, Delivery, time.Time) (Verdict, error)
	ingest           func(*domain.Order, *Binding, domain.OrderRequest, time.Time, time.Time) (Change, error)
	cancelByOperator func(*domain.Order, *Binding, domain.OrderID, string, time.Time) (Change, error)
	hold             func(*domain.Order, domain.OrderID, string, time.Time) (Change, error)
	release          func(*domain.Order, domain.OrderID, string, time.Time) (Change, error)
	clear            func(*domain.Drone, domain.DroneID, string, time.Time) (Change, error)
	ground           func(*domain.Drone, domain.DroneID, string, time.Time) (Change, error)
	unground         func(*domain.Drone, domain.DroneID, string, time.Time) (Change, error)
	recall           func(Binding, *domain.Mission, domain.MissionID, string, time.Time) (Change, error)
	change           func(*domain.Order, domain.OrderID, domain.OrderChange, string, time.Time) (Change, error)
	pin, forbid      func(*domain.Order, bool, Pin, time.Time) (Change, error)
	allow            func(*domain.Order, Pin, time.Time) (Change, error)
	unpin            func(*domain.Order, domain.OrderID, string, time.Time) (Change, error)
	setup            func(*domain.Drone, domain.Drone, time.Time) Change
}

// contract returns the real rules, but for the top speed: the drones of most tests need no
// time for their flights. Tests of plausibility have the real one.
func contract() rules {
	drone := DefaultDronePolicy()
	drone.TopSpeedKmh = 1e9
	return configured(drone, DefaultOrderPolicy(), DefaultMissionAssignmentPolicy())
}

// configured returns the rules with other limits.
func configured(drone DronePolicy, order OrderPolicy, assignment MissionAssignmentPolicy) rules {
	return rules{
		drone: drone, order: order, assignment: assignment,
		telemetry: drone.ApplyTelemetry, proveLate: drone.ProveLate, sweepBinding: drone.SweepBinding, sweepIdle: drone.SweepIdle, sweepOrder: SweepOrder,
		assign: assignment.AssignMission, ingest: order.IngestOrder, cancelByOperator: order.CancelByOperator,
		hold: HoldOrder, release: ReleaseOrder, clear: ClearDrone, ground: GroundDrone, unground: ReleaseDrone, recall: RecallMission, change: order.ChangeOrder,
		pin: PinOrder, unpin: UnpinOrder, forbid: ForbidDrone, allow: AllowDrone, setup: SetupDrone,
	}
}
