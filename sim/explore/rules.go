package explore

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// Rules are the functions of package policy that the model calls. A test replaces one function to
// remove a rule.
type Rules struct {
	Telemetry          func(policy.Binding, domain.Telemetry, time.Time) (policy.Binding, policy.Change, error)
	ProveLate          func(policy.Ended, domain.Telemetry, time.Time) (policy.Change, error)
	SweepBinding       func(policy.Binding, time.Time) policy.Change
	SweepIdle          func(domain.Drone, time.Time) policy.Change
	SweepOrder         func(domain.Order, time.Time) policy.Change
	DroneDue           func(domain.Drone, *domain.Mission) time.Time
	OrderDue           func(domain.Order) time.Time
	Assign             func(policy.DecisionState, domain.Decision, policy.Delivery, time.Time) (policy.Verdict, error)
	Ingest             func([]domain.Depot, *domain.Order, *policy.Binding, domain.OrderRequest, time.Time, time.Time) (policy.Change, error)
	Hold, Release      func(*domain.Order, domain.OrderID, string, time.Time) (policy.Change, error)
	SweepPlanningDepot func(domain.Order, []domain.Depot, time.Time) policy.Change
	HandOver           func(*domain.Order, []domain.Area, domain.HandOvers, domain.HandOver, time.Time) (policy.Change, error)
	AdmitHandOvers     func(policy.DecisionState, domain.HandOvers) (policy.Verdict, error)
	Ground             func(*domain.Drone, domain.DroneID, string, time.Time) (policy.Change, error)
	Unground           func(*domain.Drone, domain.DroneID, string, time.Time) (policy.Change, error)
	Register           func(*domain.Drone, domain.DroneRegistration, *domain.DroneType, string, string, time.Time) (policy.Change, error)
	Retire             func(*domain.Drone, domain.DroneID, []string, string, time.Time) (policy.Change, error)
	Pin, Forbid        func(*domain.Order, bool, policy.Pin, time.Time) (policy.Change, error)
	Recall             func(policy.Binding, *domain.Mission, domain.MissionID, string, time.Time) (policy.Change, error)
	Clear              func(*domain.Drone, domain.DroneID, string, time.Time) (policy.Change, error)

	// Reads reports whether the snapshot of an area shows an order that waits, as the store
	// queries it; see readByArea.
	Reads func(areas []domain.Area, area domain.DepotID, o domain.Order) bool
	Areas func(depots []domain.Depot, radiusKm float64) []domain.Area

	// Visitors are what keeps a warehouse where it is, as the store queries them, and Mark dates
	// the mark that its move leaves for decisions; see visitors and markedAtCommit.
	Visitors func(active []domain.Mission, w domain.WarehouseID) []string
	Mark     func(began, commits moment) moment
}

// tick is the step of the model's clock.
const tick = time.Second

// Limits is the contract's limits, scaled down to a few ticks and in the same order,
// so that a short exploration outlasts each of them.
type Limits struct {
	Drone      policy.DronePolicy
	Order      policy.OrderPolicy
	Assignment policy.MissionAssignmentPolicy
}

// DefaultLimits has what is 5 s in the contract as one tick, 15 to 30 s as one or two,
// and two minutes as five.
func DefaultLimits() Limits {
	l := policy.DefaultLimits()
	l.MaxFuture, l.ClockError = tick, tick
	l.IdleSilence, l.CommandLifetime = 2*tick, tick
	l.FaultGrace, l.LateGrace, l.GhostGrace = 2*tick, 2*tick, 2*tick
	l.GhostRevokeEvery = tick
	l.BoundSilence, l.StallFloor, l.MaxSilence = 5*tick, 10*tick, 2*tick
	l.MaxAge, l.CommitDelay = 5*tick, 3*tick
	l.TopSpeedKmh = 1e9 // a drone may be at any stop a tick later
	return Limits{
		Drone: policy.DronePolicy{Limits: l}, Order: policy.OrderPolicy{Limits: l}, Assignment: policy.MissionAssignmentPolicy{Limits: l},
	}
}

// Contract returns the unchanged rules with the given limits.
func Contract(l Limits) Rules {
	return Rules{
		Telemetry: l.Drone.ApplyTelemetry, ProveLate: l.Drone.ProveLate,
		SweepBinding: l.Drone.SweepBinding, SweepIdle: l.Drone.SweepIdle, SweepOrder: policy.SweepOrder,
		DroneDue: l.Drone.DroneDue, OrderDue: policy.OrderDue,
		Assign: l.Assignment.AssignMission, Ingest: l.ingest, SweepPlanningDepot: policy.SweepPlanningDepot,
		HandOver: policy.HandOverOrder, AdmitHandOvers: l.Assignment.AdmitHandOvers, Reads: readByArea, Areas: policy.AreasOf, Hold: policy.HoldOrder,
		Release: policy.ReleaseOrder, Clear: policy.ClearDrone,
		Recall: policy.RecallMission, Pin: policy.PinOrder, Forbid: policy.ForbidDrone, Ground: policy.GroundDrone, Unground: policy.ReleaseDrone,
		Register: policy.Register, Retire: policy.Retire, Visitors: visitors, Mark: markedAtCommit,
	}
}

// ingest applies a request in a State Manager that knows these depots.
func (l Limits) ingest(depots []domain.Depot, o *domain.Order, b *policy.Binding, req domain.OrderRequest, published, now time.Time) (policy.Change, error) {
	l.Order.Depots = depots
	return l.Order.IngestOrder(o, b, req, published, now)
}
