package policy

import (
	"cmp"
	"slices"

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
