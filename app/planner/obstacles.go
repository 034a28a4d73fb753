package planner

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// maxDistanceSums is how many distances via a warehouse counting obstacles may compute
// in a cycle, which takes a fraction of a second. Orders beyond it have no counts.
const maxDistanceSums = 20_000_000

// droneUse is what a free drone does in a plan.
type droneUse int

const (
	unused droneUse = iota
	taken           // flies for other orders
	kept            // in reserve
)

// droneGroup is drones that differ in charge and use only, so that distances are
// computed once for all of them.
type droneGroup struct {
	drone   solver.Drone
	members []groupMember
}

type groupMember struct {
	id      string
	battery float64
	use     droneUse
}

// groupDrones groups the drones by everything but id and charge.
func groupDrones(drones []solver.Drone, use map[string]droneUse) []droneGroup {
	var groups []droneGroup
	index := map[solver.Drone]int{}
	for _, d := range drones {
		kind := d
		kind.ID, kind.BatteryPercent = "", 0
		g, known := index[kind]
		if !known {
			g = len(groups)
			index[kind] = g
			groups = append(groups, droneGroup{drone: kind})
		}
		groups[g].members = append(groups[g].members, groupMember{d.ID, d.BatteryPercent, use[d.ID]})
	}
	return groups
}

// obstacles counts why the orders of a result wait.
func (p *Planner) obstacles(r Result) []domain.Obstacles {
	usable := r.Usable()
	return newDirectFlights(&usable).countObstacles(r.Plan, r.Kept, max(0, len(p.demand.drones)-len(usable.Drones)))
}

// countObstacles counts, for every unserved order of a plan, what kept the free
// drones from it (F-ORD-05). The result is indexed as plan.Unserved; orders that
// the solver cannot read have no counts. Urgent orders come first if there are too
// many to count for all.
func (f directFlights) countObstacles(plan solver.Plan, keptDrones []solver.Drone, busy int) []domain.Obstacles {
	use := map[string]droneUse{}
	for _, d := range keptDrones {
		use[d.ID] = kept
	}
	for _, r := range plan.Routes {
		use[r.DroneID] = taken
	}
	groups := groupDrones(f.problem.Drones, use)
	order := make([]int, len(plan.Unserved))
	for i := range order {
		order[i] = i
	}
	priority := func(i int) solver.Priority { return f.problem.Orders[plan.Unserved[i].Index].Priority }
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(priority(b), priority(a)) })
	counts, sums := make([]domain.Obstacles, len(plan.Unserved)), 0
	for _, i := range order {
		u := plan.Unserved[i]
		if u.Reason == solver.InvalidInput {
			continue
		}
		r := f.request(&f.problem.Orders[u.Index])
		if sums += len(groups) * max(1, len(r.suppliers)); sums > maxDistanceSums {
			break
		}
		counts[i] = f.obstaclesOf(r, groups)
		counts[i].Busy = busy
	}
	return counts
}

// obstaclesOf counts the obstacles of one order.
func (f directFlights) obstaclesOf(r *request, groups []droneGroup) (n domain.Obstacles) {
	var warm *request // the order without its cold chain, if it has one
	if r.order.ColdChain && r.order.Pickup == nil {
		o := *r.order
		o.ColdChain = false
		warm = f.request(&o)
	}
	for i := range groups {
		d, members := &groups[i].drone, groups[i].members
		n.Free += len(members)
		if r.order.Restricted() {
			members = slices.DeleteFunc(slices.Clone(members), func(m groupMember) bool { return !r.order.Allows(m.id) })
			n.NotAllowed += len(groups[i].members) - len(members)
		}
		if d.CapacityKg > 0 && r.order.WeightKg > d.CapacityKg {
			n.Payload += len(members)
			continue
		}
		if r.order.Pickup == nil && len(r.suppliers) == 0 {
			if warm != nil && len(warm.suppliers) > 0 {
				n.ColdChain += len(members)
			} else {
				n.Warehouse += len(members)
			}
			continue
		}
		took, charge := f.need(d, r)
		warmCharge := math.Inf(1)
		if warm != nil {
			_, warmCharge = f.need(d, warm)
		}
		late := took == never || f.problem.Now.Add(took).After(r.order.Due(f.problem.Now).Add(model.LateTolerance))
		for _, m := range members {
			switch {
			case charge <= m.battery:
				countCarrier(&n, m.use, late)
			case warmCharge <= m.battery:
				n.ColdChain++
			case charge > 100:
				n.Range++
			default:
				n.Battery++
			}
		}
	}
	return n
}

// countCarrier counts a drone that can carry the order.
func countCarrier(n *domain.Obstacles, use droneUse, late bool) {
	switch use {
	case taken:
		n.Taken++
	case kept:
		n.Reserve++
	case unused:
		n.Unused++
	}
	if late {
		n.Deadline++
	}
}

// need is how long a drone takes to deliver the order, whatever its charge, and
// the charge in percent with which it must start. The charge is +Inf if the flight
// is longer than the drone's flight time or there is no source.
func (f directFlights) need(d *solver.Drone, r *request) (took time.Duration, charge float64) {
	out := f.outwardMetres(r, d.At)
	back := f.homewardMetres(r, d)
	charge = f.params.ReservePercent + (out+back)/1000*d.Consumption()
	if math.IsInf(out, 1) || math.IsNaN(charge) {
		return never, math.Inf(1)
	}
	took = flightTime(d, out) + f.params.PickupService
	if d.MaxFlight != 0 && took+f.params.DeliveryService+flightTime(d, back) > d.MaxFlight {
		return took, math.Inf(1)
	}
	return took, charge
}
