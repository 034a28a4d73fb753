package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// maxDistanceSums bounds the distances that counting obstacles computes in a cycle to a fraction
// of a second. Orders beyond it have no counts.
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
		if r.order.ColdChain && d.NoColdBox { // F-REG-05
			n.ColdChain += len(members)
			continue
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

// DependsOnBusyDrones reports whether an order's reason could differ if all drones of the depot
// were considered: the problem holds only the free ones.
func DependsOnBusyDrones(p solver.Problem, u solver.Unserved) bool {
	return u.Reason == solver.OverCapacity || u.Reason == solver.OutOfRange || u.Reason == solver.NoDroneAllowed ||
		u.Reason == solver.NoDroneFree && len(p.Drones) == 0
}

// pinnedDetail says why the drone that an order is pinned to is not free; "" if the order is not
// pinned. drones are all of the depot.
func pinnedDetail(o *solver.Order, drones []domain.Drone) string {
	if o.PinnedDroneID == "" {
		return ""
	}
	at := slices.IndexFunc(drones, func(d domain.Drone) bool { return string(d.ID) == o.PinnedDroneID })
	if at < 0 {
		return "pinned drone " + o.PinnedDroneID + " is not of this depot, or was not heard of lately"
	}
	d := drones[at]
	why := fmt.Sprintf("is %s with %.0f %%", d.Status, d.Battery)
	switch {
	case d.Grounded:
		why = "is grounded"
	case d.Bound():
		why = "flies mission " + string(d.CurrentMissionID)
	}
	return fmt.Sprintf("pinned drone %s %s", d.ID, why)
}

// waitsForBusyDrone is the detail of an order that only busy drones of the depot can carry.
const waitsForBusyDrone = "drones that can carry it are not ready at the depot"

// JudgeByAllDrones corrects the reasons of the orders for which DependsOnBusyDrones holds: they
// wait for a busy drone, or for ever if no drone of the depot can carry them. Each drone is judged
// as if it were charged at its depot.
func JudgeByAllDrones(p solver.Problem, unserved []solver.Unserved, drones []domain.Drone, learned learning.Estimates) {
	all := p
	all.Orders = nil
	var judged []*solver.Unserved // by index in all.Orders
	for i := range unserved {
		if u := &unserved[i]; DependsOnBusyDrones(p, *u) {
			judged, all.Orders = append(judged, u), append(all.Orders, p.Orders[u.Index])
		}
	}
	f := newDirectFlights(&all)
	all.Drones = dronesOf(drones, learned)
	for i, d := range all.Drones {
		all.Drones[i] = f.charged(d)
	}
	impossible := map[int]solver.Unserved{}
	for _, u := range solver.Screen(all).Unserved {
		if u.Reason == solver.OverCapacity || u.Reason == solver.OutOfRange || u.Reason == solver.NoDroneAllowed {
			impossible[u.Index] = u
		}
	}
	for i, u := range judged {
		verdict, never := impossible[i]
		switch reason := verdict.Reason; {
		case never:
			u.Reason = reason
			if reason == solver.NoDroneAllowed {
				u.Detail = cmp.Or(pinnedDetail(&all.Orders[i], drones), impossible[i].Detail)
			}
			if reason == solver.OutOfRange && inRangeSwapped(all, i) {
				u.Detail = looksSwapped
			}
		case u.Reason != solver.NoDroneFree || all.Orders[i].PinnedDroneID != "":
			u.Reason, u.Detail = solver.NoDroneFree, cmp.Or(pinnedDetail(&all.Orders[i], drones), waitsForBusyDrone)
		}
	}
}

// looksSwapped is the detail of an order that is out of range only as it is written.
const looksSwapped = "its latitude and longitude look swapped; cancel it and order again"

// inRangeSwapped reports whether a drone could carry the order if the latitude and longitude of
// its positions were swapped.
func inRangeSwapped(p solver.Problem, order int) bool {
	o := p.Orders[order]
	o.Delivery = swapped(o.Delivery)
	if o.Pickup != nil {
		pickup := swapped(*o.Pickup)
		o.Pickup = &pickup
	}
	p.Orders = []solver.Order{o}
	return slices.ContainsFunc(solver.Screen(p).Unserved, func(u solver.Unserved) bool {
		return u.Reason == solver.NoDroneFree || u.Reason == solver.DeadlineUnreachable
	})
}

func swapped(l solver.Location) solver.Location { return solver.Location{Lat: l.Lon, Lon: l.Lat} }
