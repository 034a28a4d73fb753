package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// A mission may have no orders (F-AMD-06): its drone flies to a depot or to an advance position and
// charges or waits there. Such a mission gives way. A decision with an order amends it at once,
// whatever the drone does, because nothing is aboard and no order waits for it.

// usualConsumption, in percent of a full charge per kilometre, is what plans assume for a
// drone whose own consumption is not known.
const usualConsumption = 2.5

func (c decisionCase) standbyUnsupported() string {
	if !c.decision.Standby() || c.Drone.SupportsStandby && c.Drone.SupportsAmendments {
		return ""
	}
	return fmt.Sprintf("drone %s does not support missions without orders", c.Drone.ID)
}

// standbyRoute says what is wrong with a route without orders, "" if nothing is.
func (c decisionCase) standbyRoute() string {
	route := c.decision.Route
	if c.decision.Amends() && !c.Mission.Standby() {
		return fmt.Sprintf("it lists no order, but mission %s has orders", c.Mission.ID)
	}
	for i, stop := range route {
		switch last := i == len(route)-1; {
		case stop.OrderID != "":
			return fmt.Sprintf("stop %d is for order %q, which is not in the decision", i, stop.OrderID)
		case stop.Type == domain.WaypointDepotStart && i > 0:
			return fmt.Sprintf("stop %d starts at a depot again", i)
		case stop.Type == domain.WaypointDepotReturn && !last:
			return fmt.Sprintf("stop %d returns to a depot before the end", i)
		case stop.Type == domain.WaypointDepotStart && last:
			return fmt.Sprintf("the last stop, %d, is a depot start; end the route at a depot, or charge or wait there", i)
		}
	}
	return ""
}

// dutyAhead names an unreached stop at which a mission with orders charges or waits, "" if there is
// none. Orders must not wait for either.
func (c decisionCase) dutyAhead() string {
	reached := 0
	if c.decision.Amends() {
		reached = min(c.Mission.ReachedStops, sharedStops(c.Mission.Route, c.decision.Route))
	}
	for i, stop := range c.decision.Route {
		if stop.Duty() && i >= reached {
			return fmt.Sprintf("stop %d is a %s, which a mission with orders must not have", i, stop.Type)
		}
	}
	return ""
}

func (c decisionCase) badCharge() string {
	if !c.decision.Standby() {
		return ""
	}
	for i, stop := range c.decision.Route {
		if stop.Type != domain.WaypointCharge {
			continue
		}
		if level := stop.ChargeToPercent; !(level > 0 && level <= 100) { // or NaN
			return fmt.Sprintf("stop %d charges to %v %%; the level must be above 0 and at most 100", i, level)
		}
		if metres := c.nearestDepot(stop.Position); metres > c.StopRadiusMetres {
			return fmt.Sprintf("stop %d charges more than %.0f m from any depot", i, c.StopRadiusMetres)
		}
	}
	return ""
}

func (c decisionCase) badWait() string {
	if !c.decision.Standby() {
		return ""
	}
	for i, stop := range c.decision.Route {
		if stop.Type != domain.WaypointWait {
			continue
		}
		switch until := stop.WaitUntil; {
		case !until.After(c.now):
			return fmt.Sprintf("stop %d waits until %s, which has passed", i, until.UTC().Format(time.RFC3339))
		case until.Sub(c.now) > c.MaxWait:
			return fmt.Sprintf("stop %d waits until %s, more than %s from now", i, until.UTC().Format(time.RFC3339), c.MaxWait)
		}
	}
	return ""
}

// nearestDepot is how far the nearest depot is; infinitely far if there is none.
func (c decisionCase) nearestDepot(at domain.Position) (metres float64) {
	metres = math.Inf(1)
	for _, d := range c.Depots {
		metres = min(metres, at.DistanceMetres(d.Position))
	}
	return metres
}

// standbyTooLow says that the charge does not suffice for a route without orders, "" if it does.
// From the end of the route the drone must still reach the nearest depot. A drone that only charges
// where it is may have any charge.
func (c decisionCase) standbyTooLow() string {
	d, estimate := *c.Drone, c.decision.EstimatedBatteryConsumption
	if len(c.Depots) == 0 {
		return fmt.Sprintf("drone %s has no depot to return to", d.ID)
	}
	perMetre := usualConsumption / 1000
	if d.ConsumptionPerKm > 0 {
		perMetre = d.ConsumptionPerKm / 1000
	}
	charge, lowest, at := d.Battery, math.Inf(1), d.Position
	fly := func(metres float64) {
		if metres > c.StopRadiusMetres {
			charge -= metres * perMetre
			lowest = min(lowest, charge)
		}
	}
	charges := false
	for _, stop := range c.decision.Route {
		fly(at.DistanceMetres(stop.Position))
		at = stop.Position
		if stop.Type == domain.WaypointCharge {
			charges = true
			charge = max(charge, stop.ChargeToPercent)
		}
	}
	fly(c.nearestDepot(at))
	if !charges || math.IsNaN(estimate) {
		lowest = min(lowest, d.Battery-estimate)
	}
	least := c.MinBattery
	if math.IsInf(lowest, 1) || d.Battery > least && lowest >= least-rounding {
		return ""
	}
	return fmt.Sprintf("drone %s has %.1f %% and would have %.1f %% on the way or at the nearest depot, below %.0f %%", d.ID, d.Battery, lowest, least)
}
