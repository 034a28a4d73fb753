package policy

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Reasons against an operator's pin or prohibition.
const (
	ReasonDroneForbidden Reason = "DRONE_FORBIDDEN" // the drone to pin to is forbidden
	ReasonDronePinned    Reason = "DRONE_PINNED"    // the drone to forbid is the pinned one
	ReasonOrderInMission Reason = "ORDER_IN_MISSION"
	ReasonTooManyDrones  Reason = "TOO_MANY_DRONES"
)

// Pin is an operator's command about an order and a drone.
type Pin struct {
	Order domain.OrderID
	Drone domain.DroneID
	Why   string
}

// PinOrder lets only one drone take an open order. It replaces an earlier pin. known says whether
// the drone exists. An order in another drone's mission is refused until that mission is recalled.
func PinOrder(order *domain.Order, known bool, p Pin, now time.Time) (Change, error) {
	return adjust(order, p.Order, p.Why, now, func(o *domain.Order) error {
		switch {
		case !known:
			return p.unknownDrone()
		case o.PinnedDroneID == p.Drone:
			return p.refuse(ReasonUnchanged, "it is pinned to drone %s", p.Drone)
		case slices.Contains(o.ForbiddenDroneIDs, p.Drone):
			return p.refuse(ReasonDroneForbidden, "drone %s is forbidden; use \"orders allow\" first", p.Drone)
		case o.AssignedDroneID != "" && o.AssignedDroneID != p.Drone:
			return p.inMission(*o)
		}
		o.PinnedDroneID = p.Drone
		return nil
	})
}

// UnpinOrder lets every drone that is not forbidden take an open order again.
func UnpinOrder(order *domain.Order, id domain.OrderID, why string, now time.Time) (Change, error) {
	return adjust(order, id, why, now, func(o *domain.Order) error {
		if o.PinnedDroneID == "" {
			return reject(ReasonUnchanged, string(id), "it is not pinned")
		}
		o.PinnedDroneID = ""
		return nil
	})
}

// ForbidDrone keeps a drone from taking an open order. known says whether the drone exists. An
// order in a mission of that drone is refused until the mission is recalled.
func ForbidDrone(order *domain.Order, known bool, p Pin, now time.Time) (Change, error) {
	return adjust(order, p.Order, p.Why, now, func(o *domain.Order) error {
		switch {
		case !known:
			return p.unknownDrone()
		case slices.Contains(o.ForbiddenDroneIDs, p.Drone):
			return p.refuse(ReasonUnchanged, "drone %s is forbidden", p.Drone)
		case o.PinnedDroneID == p.Drone:
			return p.refuse(ReasonDronePinned, "it is pinned to drone %s; use \"orders unpin\" first", p.Drone)
		case o.AssignedDroneID == p.Drone:
			return p.inMission(*o)
		case len(o.ForbiddenDroneIDs) >= domain.MaxForbiddenDrones:
			return p.refuse(ReasonTooManyDrones, "%d drones are forbidden, which is the limit; pin the order to a drone instead", len(o.ForbiddenDroneIDs))
		}
		o.ForbiddenDroneIDs = append(slices.Clone(o.ForbiddenDroneIDs), p.Drone)
		return nil
	})
}

// AllowDrone ends what ForbidDrone did.
func AllowDrone(order *domain.Order, p Pin, now time.Time) (Change, error) {
	return adjust(order, p.Order, p.Why, now, func(o *domain.Order) error {
		at := slices.Index(o.ForbiddenDroneIDs, p.Drone)
		if at < 0 {
			return p.refuse(ReasonUnchanged, "drone %s is not forbidden", p.Drone)
		}
		o.ForbiddenDroneIDs = slices.Delete(slices.Clone(o.ForbiddenDroneIDs), at, at+1)
		return nil
	})
}

func (p Pin) refuse(reason Reason, format string, args ...any) error {
	return reject(reason, string(p.Order), format, args...)
}

func (p Pin) unknownDrone() error { return p.refuse(ReasonDroneUnknown, "no drone %s", p.Drone) }

func (p Pin) inMission(o domain.Order) error {
	if o.Status == domain.OrderInDelivery {
		return p.refuse(ReasonOrderInMission, "the parcel is aboard drone %s", o.AssignedDroneID)
	}
	return p.refuse(ReasonOrderInMission, "drone %s flies for it in mission %s; recall the mission first, and repeat this when the order is PENDING",
		o.AssignedDroneID, o.AssignedMissionID)
}

// droneNotAllowed says why the decision's drone must not take an order.
func (c decisionCase) droneNotAllowed(o domain.Order) string {
	switch drone := c.decision.DroneID; {
	case o.Allows(drone):
		return ""
	case o.PinnedDroneID != "" && o.PinnedDroneID != drone:
		return "it is pinned to drone " + string(o.PinnedDroneID)
	default:
		return "drone " + string(drone) + " is forbidden"
	}
}
