package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// PlanningDepot is the depot that plans an order to be delivered at a position: the nearest
// one, and the one with the lowest id if several are equally near. It is empty if there is no
// depot.
func PlanningDepot(depots []domain.Depot, delivery domain.Position) domain.DepotID {
	if len(depots) == 0 {
		return ""
	}
	return slices.MinFunc(depots, func(a, b domain.Depot) int {
		return cmp.Or(cmp.Compare(a.Position.DistanceMetres(delivery), b.Position.DistanceMetres(delivery)), cmp.Compare(a.ID, b.ID))
	}).ID
}

// planBy makes a depot's area plan the order from now on, as if no other had before.
func planBy(o *domain.Order, depot domain.DepotID, now time.Time) {
	o.PlanningDepotID, o.PlanningSince, o.HandedOverBy = depot, now, nil
}

// SweepPlanningDepot finds a depot for a PENDING order that none of the depots plans:
// there was none when it came, its depot is gone, or another tool wrote it.
func SweepPlanningDepot(o domain.Order, depots []domain.Depot, now time.Time) Change {
	nearest := PlanningDepot(depots, o.Delivery)
	if o.Status != domain.OrderPending || nearest == "" || hasDepot(depots, o.PlanningDepotID) {
		return Change{}
	}
	why := "it had no depot to plan it"
	if o.PlanningDepotID != "" {
		why = fmt.Sprintf("depot %s, which planned it, is gone or malformed", o.PlanningDepotID)
	}
	before := o
	planBy(&o, nearest, now)
	r := &recorder{now: now, cause: domain.CauseSweeper}
	r.order(before, &o, why)
	return r.change
}

func hasDepot(depots []domain.Depot, id domain.DepotID) bool {
	return slices.ContainsFunc(depots, func(d domain.Depot) bool { return d.ID == id })
}
