package planner

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

const (
	// maxCandidates is how many orders a cycle tries to hand over, the most urgent first.
	maxCandidates = 200
	// maxDepotsAsked is how many depots of other areas a cycle looks at, the nearest to
	// an order first: as many as one query takes.
	maxDepotsAsked = 30
	// ordersForDrone is how many orders a cycle hands over for each idle drone of another area:
	// that area's cycle makes better routes when it can choose.
	ordersForDrone = 8
	// handOverTakes is how much later a drone of another area starts: that area's next cycle
	// has to plan the order first.
	handOverTakes = 10 * time.Second
)

// HandOverCandidates are the orders of a plan that another area may serve in time and this one
// cannot.
type HandOverCandidates struct {
	problem solver.Problem
	learned learning.Estimates
	list    []handOverCandidate
	beyond  []domain.Depot
}

// handOverCandidate is one order of HandOverCandidates.
type handOverCandidate struct {
	order  domain.Order
	index  int // in the problem
	reason solver.Reason
	never  bool // no drone of the area can carry it, however long it waits
	// byChoice says that the area has a drone for it, but keeps that for CRITICAL orders.
	byChoice bool
	left     time.Duration // until it is due
}

// HandOverCandidatesOf returns the candidates of a plan made from the snapshot and from what was
// learned. It leaves out orders that wait for a better route, and those that no warehouse supplies.
func HandOverCandidatesOf(p solver.Problem, unserved []solver.Unserved, obstacles []domain.Obstacles, snap domain.Snapshot, learned learning.Estimates) HandOverCandidates {
	l := HandOverCandidates{problem: p, learned: learned, beyond: snap.Beyond}
	if len(snap.Beyond) == 0 {
		return l
	}
	area := domain.Area{Depots: snap.Depots()}
	for i, u := range unserved {
		one := handOverCandidate{order: snap.Orders[u.Index], index: u.Index, reason: u.Reason, left: p.Orders[u.Index].Due(p.Now).Sub(p.Now)}
		switch u.Reason {
		case solver.InvalidInput, solver.NoCompatibleWarehouse, solver.WaitsForBetterRoute:
			continue
		case solver.KeptForCritical:
			one.byChoice = true
		case solver.OutOfRange, solver.OverCapacity, solver.NoDroneAllowed:
			one.never = true
		case solver.NoDroneFree, solver.DeadlineUnreachable:
			one.never = obstacles[i].Counted() && obstacles[i].Free+obstacles[i].Busy == 0 || !obstacles[i].Counted() && len(p.Drones) == 0
		}
		if area.Has(one.order.PlanningDepotID) && len(one.order.HandedOverBy) < domain.MaxHandOvers && (one.never || one.left > handOverTakes) {
			l.list = append(l.list, one)
		}
	}
	slices.SortStableFunc(l.list, func(a, b handOverCandidate) int {
		return cmp.Or(cmp.Compare(b.order.Priority, a.order.Priority), a.order.Deadline.Compare(b.order.Deadline))
	})
	l.list = l.list[:min(len(l.list), maxCandidates)]
	return l
}

// Depots are the depots of other areas that can be near enough, the nearest first.
func (l HandOverCandidates) Depots() []domain.Depot {
	type asked struct {
		depot  domain.Depot
		metres float64
	}
	var list []asked
	fastest := max(model.DefaultSpeedKmh, l.learned.FastestKmh())
	for _, d := range l.beyond {
		nearest, near := 0.0, false
		for _, o := range l.list {
			m := d.Position.DistanceMetres(o.order.Delivery)
			inReach := o.never || m/1000 <= fastest*o.left.Hours()
			if inReach && !slices.Contains(o.order.HandedOverBy, d.ID) && (!near || m < nearest) {
				nearest, near = m, true
			}
		}
		if near {
			list = append(list, asked{d, nearest})
		}
	}
	slices.SortStableFunc(list, func(a, b asked) int { return cmp.Compare(a.metres, b.metres) })
	depots := make([]domain.Depot, min(len(list), maxDepotsAsked))
	for i := range depots {
		depots[i] = list[i].depot
	}
	return depots
}

// NeedAllDrones reports whether HandOvers needs OtherAreas.All: busy drones elsewhere count for an
// order that no drone of the area can ever carry.
func (l HandOverCandidates) NeedAllDrones() bool {
	return slices.ContainsFunc(l.list, func(o handOverCandidate) bool { return o.never })
}

// OtherAreas is what a cycle knows of other areas.
type OtherAreas struct {
	Depots  []domain.Depot
	Idle    []domain.Drone         // drones that their cycles are offered
	All     []domain.Drone         // all of their drones, if HandOverCandidates.NeedAllDrones
	Waiting map[domain.DepotID]int // orders that each depot plans
}

// HandOvers chooses which orders to hand over, and to which depot: the home of the idle drone
// that delivers the order soonest, if that is in time. A drone counts for ordersForDrone
// orders; orders that already wait at its depot use them up, except for CRITICAL orders. An
// order for which the area keeps a drone in reserve goes only to a depot without waiting
// orders. An order that no drone of the area can ever carry goes to any depot with a drone
// that can, idle or not.
func (l HandOverCandidates) HandOvers(e OtherAreas) []domain.HandOver {
	p := l.problem
	p.Depots = nil
	for _, d := range e.Depots {
		p.Depots = append(p.Depots, solver.Depot{ID: string(d.ID), At: location(d.Position)})
	}
	f := newDirectFlights(&p)
	idle, all := dronesOf(e.Idle, l.learned), dronesOf(e.All, l.learned)
	for i, d := range all {
		all[i] = f.charged(d)
	}
	spare, homes := map[string]int{}, map[string]string{}
	for _, d := range idle {
		spare[d.HomeDepotID] += ordersForDrone
	}
	for _, d := range slices.Concat(all, idle) {
		homes[d.ID] = d.HomeDepotID
	}
	for depot, n := range e.Waiting {
		spare[string(depot)] -= n
	}
	given := map[string]int{}
	var list []domain.HandOver
	for _, o := range l.list {
		urgent := o.order.Priority == domain.PriorityCritical
		mayPlan := func(d solver.Drone) bool {
			return !slices.Contains(o.order.HandedOverBy, domain.DepotID(d.HomeDepotID))
		}
		mayFly := func(d solver.Drone) bool {
			waiting := e.Waiting[domain.DepotID(d.HomeDepotID)]
			return given[d.ID] < ordersForDrone && mayPlan(d) && (urgent || spare[d.HomeDepotID] > 0) && (!o.byChoice || waiting == 0)
		}
		order := &p.Orders[o.index]
		took, drone := f.earliest(order, only(idle, mayFly))
		if took == never || took+handOverTakes > o.left {
			drone = ""
			if o.never {
				_, drone = f.earliest(order, only(all, mayPlan))
			}
		}
		if drone == "" {
			continue
		}
		home := homes[drone]
		given[drone]++
		spare[home]--
		list = append(list, domain.HandOver{
			OrderID: o.order.ID, From: o.order.PlanningDepotID, To: domain.DepotID(home),
			Reason: fmt.Sprintf("%s; drone %s of %s can serve it", o.reason, drone, home),
		})
	}
	return list
}

func only(drones []solver.Drone, pass func(solver.Drone) bool) []solver.Drone {
	return slices.DeleteFunc(slices.Clone(drones), func(d solver.Drone) bool { return !pass(d) })
}
