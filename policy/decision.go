package policy

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// ReasonDecisionConflict refuses a decision whose id the ledger already holds for another decision.
// The ledger keeps the first.
const ReasonDecisionConflict Reason = "DECISION_CONFLICT"

// Reasons for decisions that the ledger records as rejected. decisionChecks says what each means.
const (
	ReasonFenceMissing      Reason = "FENCE_MISSING"
	ReasonFenceUnknown      Reason = "FENCE_UNKNOWN"
	ReasonStaleFence        Reason = "STALE_FENCE"
	ReasonDecisionExpired   Reason = "DECISION_EXPIRED"
	ReasonDroneUnknown      Reason = "DRONE_UNKNOWN"
	ReasonNotAmendable      Reason = "NOT_AMENDABLE"
	ReasonRevisionChanged   Reason = "REVISION_CHANGED"
	ReasonDroneUnregistered Reason = "DRONE_UNREGISTERED"
	ReasonDroneGrounded     Reason = "DRONE_GROUNDED"
	ReasonDroneDue          Reason = "DRONE_DUE"
	ReasonDroneIdentity     Reason = "DRONE_IDENTITY"
	ReasonDroneNotIdle      Reason = "DRONE_NOT_IDLE"
	ReasonDroneSilent       Reason = "DRONE_SILENT"
	ReasonLowBattery        Reason = "LOW_BATTERY"
	ReasonDroneChanged      Reason = "DRONE_CHANGED"
	ReasonOrderUnknown      Reason = "ORDER_UNKNOWN"
	ReasonOrderNotPending   Reason = "ORDER_NOT_PENDING"
	ReasonOrderHeld         Reason = "ORDER_HELD"
	ReasonDroneNotAllowed   Reason = "DRONE_NOT_ALLOWED"
	ReasonOrderChanged      Reason = "ORDER_CHANGED"
	ReasonOrderAboard       Reason = "ORDER_ABOARD"
	ReasonStopCommitted     Reason = "STOP_COMMITTED"
	ReasonBadRoute          Reason = "BAD_ROUTE"
	ReasonNoColdBox         Reason = "NO_COLD_BOX"
	ReasonOverCapacity      Reason = "OVER_CAPACITY"

	// For missions without orders.
	ReasonStandbyUnsupported Reason = "STANDBY_UNSUPPORTED"
	ReasonBadCharge          Reason = "BAD_CHARGE"
	ReasonBadWait            Reason = "BAD_WAIT"
)

// decisionCase is a decision with everything it is judged by.
type decisionCase struct {
	MissionAssignmentPolicy
	DecisionState
	decision domain.Decision
	seen     time.Time // when its snapshot was taken
	now      time.Time
}

// decisionChecks are the reasons against a decision, in the order of the checks. against describes
// for the ledger why the reason applies, "" if it does not. A check may rely on those before it:
// after DRONE_UNKNOWN the drone exists, and after ORDER_UNKNOWN every order does.
var decisionChecks = []struct {
	reason  Reason
	means   string // for the documents; {Field} stands for one of the Limits
	against func(decisionCase) string
}{
	{ReasonFenceMissing, "it has no fence, and decisions without one are not allowed", decisionCase.fenceMissing},
	{ReasonFenceUnknown, "the depot's lock never handed out its fence", decisionCase.fenceUnknown},
	{ReasonStaleFence, "its fence is below the highest applied", decisionCase.staleFence},
	{ReasonDecisionExpired, "its snapshot is older than {MaxAge}, or older than the move or deletion of a warehouse on its route", decisionCase.expired},
	{ReasonDroneUnknown, "there is no such drone", decisionCase.droneUnknown},
	{ReasonDroneUnregistered, "nobody has registered the drone, or it is retired", decisionCase.droneUnregistered},
	{ReasonMissionNotActive, "the mission to amend has ended, is unknown or is another drone's", decisionCase.missionNotActive},
	{ReasonNotAmendable, "the drone does not support amendments, does not name its revision, or is not fit for one", decisionCase.notAmendable},
	{ReasonRevisionChanged, "the mission to amend has another revision than it was planned on, or one that waits for the drone", decisionCase.revisionChanged},
	{ReasonStandbyUnsupported, "the decision has no orders, and the drone does not support such missions", decisionCase.standbyUnsupported},
	{ReasonDroneGrounded, "an operator has grounded the drone", byDrone(ReasonDroneGrounded)},
	{ReasonDroneDue, "an item of the drone is due for maintenance, or its battery is too weak; an amendment may still take orders away", byDrone(ReasonDroneDue)},
	{ReasonDroneIdentity, "the drone reports a serial number that is not the registered one", byDrone(ReasonDroneIdentity)},
	{ReasonDroneNotIdle, "the drone is neither IDLE nor on its way home with its mission COMPLETED", byDrone(ReasonDroneNotIdle)},
	{ReasonDroneSilent, "the drone has not reported for {MaxSilence}", byDrone(ReasonDroneSilent)},
	{ReasonLowBattery, "the drone has {MinBattery} or less, or would land with less; one that only charges where it is may have less", byDrone(ReasonLowBattery)},
	{ReasonDroneChanged, "the drone has been away since the snapshot", byDrone(ReasonDroneChanged)},
	{ReasonOrderUnknown, "the order does not exist", decisionCase.orderUnknown},
	{ReasonOrderNotPending, "an order is not PENDING", anyOrder(decisionCase.orderNotPending)},
	{ReasonOrderHeld, "an order waits for an operator", anyOrder(decisionCase.orderHeld)},
	{ReasonDroneNotAllowed, "an order is pinned to another drone, or forbidden to this one", anyOrder(decisionCase.droneNotAllowed)},
	{ReasonOrderChanged, "an order changed since the snapshot", anyOrder(decisionCase.orderChanged)},
	{ReasonOrderAboard, "an amended route does not deliver a parcel that is aboard", decisionCase.orderAboard},
	{ReasonStopCommitted, "an amended route changes a stop that is reached, or less than {TurnTime} away, of a mission with orders", decisionCase.stopCommitted},
	{ReasonBadRoute, "a stop is missing, doubled, out of turn or for another order, or charges or waits although there are orders", decisionCase.badRoute},
	{ReasonBadCharge, "a stop to charge is not at a depot, or its level is not above 0 and at most 100 %", decisionCase.badCharge},
	{ReasonBadWait, "a stop to wait ends in the past, or more than {MaxWait} from now", decisionCase.badWait},
	{ReasonWarehouseUnknown, "a pickup of an order without a pickup position names no warehouse that exists", anyStopAhead(stopSites.warehouseUnknown)},
	{ReasonStopMisplaced, "a stop ahead is too far from its order's address, its warehouse, or any depot", anyStopAhead(stopSites.misplaced)},
	{ReasonWarehouseUnfit, "the warehouse of a pickup does not stock the product, or has no cold storage for it", anyStopAhead(stopSites.warehouseUnfit)},
	{ReasonNoColdBox, "an order requires a cold chain, and the drone is registered without a cold box", anyOrder(decisionCase.noColdBox)},
	{ReasonOverCapacity, "the drone cannot lift the parcels aboard at once", decisionCase.overCapacity},
}

// LedgerReasons lists the ledger's reasons for rejected decisions, in the order of the checks.
func LedgerReasons() []Reason {
	reasons := make([]Reason, len(decisionChecks))
	for i, check := range decisionChecks {
		reasons[i] = check.reason
	}
	return reasons
}

// objection is the first reason against the decision, with its detail; "" if there
// is none. The warning is the first reason that RecordStops lets pass.
func (c decisionCase) objection() (reason Reason, detail, warning string) {
	for _, check := range decisionChecks {
		switch detail := check.against(c); {
		case detail == "":
		case !c.RecordStops || !isStopReason(check.reason):
			return check.reason, detail, ""
		case warning == "":
			warning = string(check.reason) + ": " + detail
		}
	}
	return "", "", warning
}

func (c decisionCase) fenceMissing() string {
	if c.decision.Fence != "" || c.AllowUnfenced {
		return ""
	}
	return "it has no fence; take one from the depot's lock, or allow decisions without"
}

// fenceUnknown refuses a forged fence. If it were applied, every real one would be stale. A lock's
// first fence is 1.
func (c decisionCase) fenceUnknown() string {
	fence, depot := c.decision.Fence, c.FenceDepot(c.decision)
	_, issued := c.fences(depot)
	switch {
	case fence == "" || FenceLess("", fence) && !FenceLess(issued, fence):
		return ""
	case issued == "":
		return fmt.Sprintf("fence %s: the lock of depot %q has handed out none; give optimizers and State Managers the same lock store", fence, depot)
	}
	return fmt.Sprintf("fence %s: the lock of depot %q has handed out none above %s", fence, depot, issued)
}

func (c decisionCase) staleFence() string {
	applied, _ := c.fences(c.FenceDepot(c.decision))
	if c.decision.Fence == "" || !FenceLess(c.decision.Fence, applied) {
		return ""
	}
	return fmt.Sprintf("fence %s is below %s, already applied", c.decision.Fence, applied)
}

func (c decisionCase) expired() string {
	if age := c.now.Sub(c.seen); age > c.MaxAge {
		return fmt.Sprintf("its snapshot is %s old, more than %s", age.Round(time.Second), c.MaxAge)
	}
	for _, stop := range c.decision.Route {
		if changed := c.WarehousesChanged[stop.WarehouseID]; c.seen.Before(changed) {
			return fmt.Sprintf("warehouse %s was moved or deleted after its snapshot", stop.WarehouseID)
		}
	}
	return ""
}

func (c decisionCase) droneUnknown() string {
	if c.Drone != nil {
		return ""
	}
	return fmt.Sprintf("no drone %s", c.decision.DroneID)
}

func (c decisionCase) droneUnregistered() string { return c.drones().unplanned(*c.Drone) }

// byDrone is the drone policy's check for one of its reasons. The order here is that of the drone
// policy.
func byDrone(reason Reason) func(decisionCase) string {
	return func(c decisionCase) string {
		var err error
		switch {
		case c.decision.Amends():
			err = c.canAmend()
		case c.decision.Standby():
			err = c.drones().canAccept(*c.Drone, c.standbyTooLow(), c.seen, c.now)
		default:
			err = c.drones().CanAcceptMission(*c.Drone, c.decision.EstimatedBatteryConsumption, c.seen, c.now)
		}
		if refused, ok := errors.AsType[*Rejection](err); ok && refused.Reason == reason {
			return refused.Detail
		}
		return ""
	}
}

// rounding is the rounding error of a sum of estimates, in percent or kilograms. It lets plans
// reach a limit exactly.
const rounding = 1e-9

func (c decisionCase) orderUnknown() string {
	for _, id := range c.decision.OrderIDs {
		if _, known := c.Orders[id]; !known {
			return fmt.Sprintf("order %s: no such order", id)
		}
	}
	return ""
}

// anyOrder applies a check to each order that the drone is given.
func anyOrder(against func(decisionCase, domain.Order) string) func(decisionCase) string {
	return func(c decisionCase) string {
		for _, id := range c.added() {
			if detail := against(c, c.Orders[id]); detail != "" {
				return fmt.Sprintf("order %s: %s", id, detail)
			}
		}
		return ""
	}
}

func (c decisionCase) orderNotPending(o domain.Order) string {
	if o.Status == domain.OrderPending {
		return ""
	}
	return fmt.Sprintf("it is %s", o.Status)
}

func (c decisionCase) orderHeld(o domain.Order) string {
	if !o.Held {
		return ""
	}
	return "it waits for an operator: " + o.HeldReason
}

// orderChanged compares two times. A change is dated when it is decided and visible when it
// commits, so a snapshot between the two saw the old content. Only a write after the snapshot can
// be such a commit. An order that has long been PENDING was written for another reason, such as a
// mark that it is late.
func (c decisionCase) orderChanged(o domain.Order) string {
	switch {
	case o.PendingSince.After(c.seen):
		return "it changed since the snapshot"
	case c.OrdersWritten[o.ID].After(c.seen) && o.PendingSince.After(c.seen.Add(-c.CommitDelay)):
		return "it may have changed since the snapshot"
	}
	return ""
}

func (c decisionCase) badRoute() string {
	if c.decision.Standby() {
		return c.standbyRoute()
	}
	return cmp.Or(routeProblem(c.decision), c.dutyAhead())
}

func (c decisionCase) noColdBox(o domain.Order) string {
	if !o.ColdChain || c.Drone.CarriesCold() {
		return ""
	}
	return fmt.Sprintf("it requires a cold chain, and drone %s has no cold box", c.Drone.ID)
}

func (c decisionCase) overCapacity() string {
	load := peakLoad(c.decision, c.Orders)
	if c.Drone.PayloadCapacityKg <= 0 || load <= c.Drone.PayloadCapacityKg+rounding {
		return ""
	}
	return fmt.Sprintf("the route loads %.2f kg, drone %s carries %.2f kg", load, c.Drone.ID, c.Drone.PayloadCapacityKg)
}
