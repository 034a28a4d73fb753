package planner

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// DependsOnBusyDrones reports whether an order's reason could be another one if
// all drones of the depot were considered: the problem holds only those that are
// free, perhaps none.
func DependsOnBusyDrones(p solver.Problem, u solver.Unserved) bool {
	return u.Reason == solver.OverCapacity || u.Reason == solver.OutOfRange || u.Reason == solver.NoDroneAllowed ||
		u.Reason == solver.NoDroneFree && len(p.Drones) == 0
}

// pinnedDetail says why the drone that an order is pinned to is not among the free
// ones; "" if the order is not pinned. The drones are all of the depot.
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

// waitsForBusyDrone is the detail of an order that a drone of the depot could
// carry which is not free.
const waitsForBusyDrone = "drones that can carry it are not ready at the depot"

// JudgeByAllDrones corrects the reasons of the orders for which
// DependsOnBusyDrones holds: an order that some drone of the depot can carry
// waits for it, one that none can carry will wait for ever. Each drone is judged
// as it will be once it is back at its depot and charged.
func JudgeByAllDrones(p solver.Problem, unserved []solver.Unserved, drones []domain.Drone) {
	all := p
	all.Orders = nil
	var judged []*solver.Unserved // by index in all.Orders
	for i := range unserved {
		if u := &unserved[i]; DependsOnBusyDrones(p, *u) {
			judged, all.Orders = append(judged, u), append(all.Orders, p.Orders[u.Index])
		}
	}
	f := newDirectFlights(&all)
	all.Drones = dronesOf(drones)
	for i, d := range all.Drones {
		all.Drones[i] = f.charged(d)
	}
	impossible := map[int]solver.Reason{}
	for _, u := range solver.Screen(all).Unserved {
		if u.Reason == solver.OverCapacity || u.Reason == solver.OutOfRange || u.Reason == solver.NoDroneAllowed {
			impossible[u.Index] = u.Reason
		}
	}
	for i, u := range judged {
		reason, never := impossible[i]
		switch {
		case never:
			u.Reason = reason
			if reason == solver.NoDroneAllowed {
				u.Detail = pinnedDetail(&all.Orders[i], drones)
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

// inRangeSwapped reports whether a drone could carry the order if the latitude and the
// longitude of its places were swapped.
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
