package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// AreasOf groups depots into planning areas, ordered by id. Depots at most radiusKm
// apart are in one area, and so are those linked by a chain of such depots. A radius of 0
// or less leaves each depot alone. The order of the depots does not matter.
func AreasOf(depots []domain.Depot, radiusKm float64) []domain.Area {
	rest := slices.SortedFunc(slices.Values(depots), func(a, b domain.Depot) int { return cmp.Compare(a.ID, b.ID) })
	var areas []domain.Area
	for len(rest) > 0 {
		area := domain.Area{Depots: rest[:1:1]}
		rest = rest[1:]
		for i := 0; i < len(area.Depots) && radiusKm > 0; i++ {
			from := area.Depots[i].Position
			var farther []domain.Depot
			for _, d := range rest {
				if from.DistanceMetres(d.Position) <= radiusKm*1000 {
					area.Depots = append(area.Depots, d)
				} else {
					farther = append(farther, d)
				}
			}
			rest = farther
		}
		slices.SortFunc(area.Depots, func(a, b domain.Depot) int { return cmp.Compare(a.ID, b.ID) })
		areas = append(areas, area)
	}
	return areas
}

// AreaOf is the area of a depot; false if no area has it.
func AreaOf(areas []domain.Area, depot domain.DepotID) (domain.Area, bool) {
	i := slices.IndexFunc(areas, func(a domain.Area) bool { return a.Has(depot) })
	if i < 0 {
		return domain.Area{}, false
	}
	return areas[i], true
}

// PlanningDepot is the depot nearest to an order's delivery. Of equally near ones it is the one
// with the lowest id. It is empty without depots.
func PlanningDepot(depots []domain.Depot, delivery domain.Position) domain.DepotID {
	if len(depots) == 0 {
		return ""
	}
	return slices.MinFunc(depots, func(a, b domain.Depot) int {
		return cmp.Or(cmp.Compare(a.Position.DistanceMetres(delivery), b.Position.DistanceMetres(delivery)), cmp.Compare(a.ID, b.ID))
	}).ID
}

// planBy makes a depot's area plan the order from now on and forgets earlier hand-overs.
func planBy(o *domain.Order, depot domain.DepotID, now time.Time) {
	o.PlanningDepotID, o.PlanningSince, o.HandedOverBy = depot, now, nil
}

// SweepPlanningDepot finds a depot for a PENDING order that none of the depots plans:
// there was none when it came, its depot is gone, or another tool wrote it.
func SweepPlanningDepot(o domain.Order, depots []domain.Depot, now time.Time) Change {
	nearest := PlanningDepot(depots, o.Delivery)
	if o.Status != domain.OrderPending || nearest == "" || (domain.Area{Depots: depots}).Has(o.PlanningDepotID) {
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
