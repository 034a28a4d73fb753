package policy

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Caps of a planning area, because one cycle plans for all of it. A depot with more drones is an
// area of its own.
const (
	MaxAreaDepots = 8
	MaxAreaDrones = 1000
)

// AreasOf groups depots into planning areas, ordered by id. Depots at most radiusKm
// apart are in one area, and so are those linked by a chain of such depots, unless it exceeds a
// cap: then it is cut, see cut. Depots of different groups are never in one area. A radius of 0 or
// less leaves each depot alone. The order of the depots does not matter.
func AreasOf(depots []domain.Depot, radiusKm float64) (areas []domain.Area) {
	for _, chain := range ChainsOf(depots, radiusKm) {
		areas = append(areas, cut(chain, radiusKm)...)
	}
	slices.SortFunc(areas, func(a, b domain.Area) int { return cmp.Compare(a.ID(), b.ID()) })
	return areas
}

// ChainsOf groups depots as AreasOf does, without the caps.
func ChainsOf(depots []domain.Depot, radiusKm float64) (chains []domain.Area) {
	sorted := slices.SortedFunc(slices.Values(depots), byDepotID)
	free := newDepotGrid(sorted, radiusKm)
	for i, d := range sorted {
		if radiusKm > 0 && !free.take(i) {
			continue
		}
		chain := domain.Area{Depots: []domain.Depot{d}}
		for k := 0; k < len(chain.Depots) && radiusKm > 0; k++ {
			chain.Depots = append(chain.Depots, free.takeNear(chain.Depots[k])...)
		}
		slices.SortFunc(chain.Depots, byDepotID)
		chains = append(chains, chain)
	}
	return chains
}

func byDepotID(a, b domain.Depot) int { return cmp.Compare(a.ID, b.ID) }

func fitsOneCycle(depots ...domain.Depot) bool {
	drones := 0
	for _, d := range depots {
		drones += d.Drones
	}
	return len(depots) == 1 || len(depots) <= MaxAreaDepots && drones <= MaxAreaDrones
}

// cut parts a chain that exceeds a cap where it is thinnest: depots join nearest first, and two
// parts that would be too large together stay apart. Borders so fall into the widest gaps.
func cut(chain domain.Area, radiusKm float64) []domain.Area {
	if fitsOneCycle(chain.Depots...) {
		return []domain.Area{chain}
	}
	part := make([]*domain.Area, len(chain.Depots)) // of each depot
	number := make(map[domain.DepotID]int, len(chain.Depots))
	for i, d := range chain.Depots {
		part[i], number[d.ID] = &domain.Area{Depots: []domain.Depot{d}}, i
	}
	for _, l := range linksOf(chain.Depots, radiusKm) {
		a, b := part[l.a], part[l.b]
		if joined := slices.Concat(a.Depots, b.Depots); a != b && fitsOneCycle(joined...) {
			a.Depots = joined
			for _, d := range b.Depots {
				part[number[d.ID]] = a
			}
		}
	}
	var areas []domain.Area
	for i, p := range part {
		if slices.SortFunc(p.Depots, byDepotID); p.Depots[0].ID == chain.Depots[i].ID {
			areas = append(areas, *p)
		}
	}
	return areas
}

// link joins two near depots, by their numbers.
type link struct{ a, b, metres int }

// linksOf are the links between depots, shortest first. Lengths are whole metres, so that
// processors that round differently agree.
func linksOf(depots []domain.Depot, radiusKm float64) (links []link) {
	for a, d := range depots {
		for b, other := range depots[:a] {
			if metres := d.Position.DistanceMetres(other.Position); metres <= radiusKm*1000 {
				links = append(links, link{b, a, int(math.Round(metres))})
			}
		}
	}
	slices.SortFunc(links, func(l, m link) int {
		return cmp.Or(cmp.Compare(l.metres, m.metres), cmp.Compare(l.a, m.a), cmp.Compare(l.b, m.b))
	})
	return links
}

// CountedDrones is the number of drones to store for a depot. Small changes are not stored, so that
// borders do not follow every drone.
func CountedDrones(stored, counted int) int {
	const least = 25
	if off := counted - stored; max(off, -off) <= max(least, stored/10) {
		return stored
	}
	return counted
}

// depotGrid finds depots near each other without comparing all with all. Its cells are cubes in
// space, as wide as the radius, so poles and the antimeridian need no special case.
type depotGrid struct {
	depots []domain.Depot
	radius float64        // km
	cells  map[cell][]int // the depots that are in no area yet
}

type cell [3]int

func newDepotGrid(depots []domain.Depot, radiusKm float64) *depotGrid {
	g := &depotGrid{depots: depots, radius: radiusKm, cells: map[cell][]int{}}
	for i, d := range depots {
		at := g.cellOf(d.Position)
		g.cells[at] = append(g.cells[at], i)
	}
	return g
}

// cellOf is the cell of a position. A straight line is no longer than the way on the surface, so a
// depot within the radius is in the same cell or a neighbour.
func (g *depotGrid) cellOf(p domain.Position) cell {
	if g.radius <= 0 {
		return cell{}
	}
	const earthRadiusKm, rad = 6371, math.Pi / 180
	width := g.radius * (1 + 1e-6) // distances are rounded
	in := func(unit float64) int { return int(math.Floor(unit * earthRadiusKm / width)) }
	return cell{in(math.Cos(p.Lat*rad) * math.Cos(p.Lon*rad)), in(math.Cos(p.Lat*rad) * math.Sin(p.Lon*rad)), in(math.Sin(p.Lat * rad))}
}

// take takes a depot; false if it was taken.
func (g *depotGrid) take(i int) bool {
	at := g.cellOf(g.depots[i].Position)
	k := slices.Index(g.cells[at], i)
	if k >= 0 {
		g.cells[at] = slices.Delete(g.cells[at], k, k+1)
	}
	return k >= 0
}

// takeNear takes the depots of a depot's group within the radius.
func (g *depotGrid) takeNear(d domain.Depot) (near []domain.Depot) {
	middle := g.cellOf(d.Position)
	for n := range 27 {
		at := cell{middle[0] + n%3 - 1, middle[1] + n/3%3 - 1, middle[2] + n/9 - 1}
		if len(g.cells[at]) == 0 {
			continue
		}
		g.cells[at] = slices.DeleteFunc(g.cells[at], func(i int) bool {
			is := d.Group == g.depots[i].Group && d.Position.DistanceMetres(g.depots[i].Position) <= g.radius*1000
			if is {
				near = append(near, g.depots[i])
			}
			return is
		})
	}
	return near
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
