package plannersim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// Result is how a day went.
type Result struct {
	Scenario   Scenario `json:"-"`
	Cycles     int
	Priorities [4]Class // by domain.Priority
	FlownKm    float64
	// PlannedKm is the length of all missions' routes, flown or still to be flown.
	PlannedKm float64
	Delivered int
	Missions  int
	// Refused is how many decisions came too late for one of their orders: another area's
	// cycle had given it to a drone. Rejected is how many others were rejected that do not
	// amend a mission with orders.
	Refused  int
	Rejected map[policy.Reason]int
	// HandedOver is how often an area gave an order to another one.
	HandedOver int
	// Held is how many orders wait for an operator at the end, because a drone failed.
	Held int
	// Standby is how many missions without orders were given or changed to another such.
	Standby int
	// Amendments of missions under way.
	Amendments Amendments
	// Charging says how slots were used.
	Charging fleetsim.SlotStats
	// LowestCharge is the least that a drone reported, in percent.
	LowestCharge float64
	// Busy is the mean share of the drones that fly or charge.
	Busy float64
	// IdleMean and WaitingMean are the mean numbers of drones and orders in a
	// cycle's snapshot.
	IdleMean, WaitingMean float64
	// Written is the share of the drones' reports that changed documents; see Scenario.Foretelling.
	Written float64
	// Slowest is the longest time that planning a cycle took, in machine time.
	Slowest time.Duration `json:"-"`
}

// Class is how the orders of one priority were served. An undelivered order
// counts as late once its deadline has passed.
type Class struct {
	Created, Delivered, OnTime, Late int
	// Lateness is the mean time past the deadline of the late orders. Wait is the
	// mean time from creation to delivery of the delivered ones. Oldest is the age
	// of the oldest undelivered one.
	Lateness, Wait, Oldest time.Duration
}

func (r *Result) observe(s domain.Snapshot) {
	r.IdleMean += float64(len(s.Drones))
	r.WaitingMean += float64(len(s.Orders))
}

// score computes the result at the end of a day.
func (r *Result) score(day *replay, orders []domain.Order) {
	r.IdleMean /= float64(max(r.Cycles, 1))
	r.WaitingMean /= float64(max(r.Cycles, 1))
	r.FlownKm, r.Amendments, r.Standby = day.flownKm, day.counts.amends, day.counts.standby
	r.Missions, r.Refused, r.Rejected, r.Charging = day.counts.missions, day.counts.refused, day.counts.rejected, day.slots.Stats()
	for _, id := range slices.Sorted(maps.Keys(day.missions)) {
		r.PlannedKm += day.missions[id].PlannedKm()
	}
	r.LowestCharge, r.Written = day.lowest, float64(day.written)/float64(day.reported)
	r.Busy = day.busy.Seconds() / day.now.Sub(Begin).Seconds() / float64(len(day.drones))
	for i := range orders {
		o := &orders[i]
		c := &r.Priorities[o.Priority]
		c.Created++
		end := day.now
		if o.Status == domain.OrderDelivered {
			end = o.DeliveredAt
			c.Delivered++
			r.Delivered++
			c.Wait += end.Sub(o.CreatedAt)
		} else {
			if o.Held {
				r.Held++
			}
			c.Oldest = max(c.Oldest, day.now.Sub(o.CreatedAt))
		}
		switch late := end.Sub(o.Deadline); {
		case late > 0:
			c.Late++
			c.Lateness += late
		case o.Status == domain.OrderDelivered:
			c.OnTime++
		}
	}
	for i := range r.Priorities {
		c := &r.Priorities[i]
		c.Lateness /= time.Duration(max(c.Late, 1))
		c.Wait /= time.Duration(max(c.Delivered, 1))
	}
}

// String is one line of a table.
func (r Result) String() string {
	class := func(p domain.Priority) string {
		c := r.Priorities[p]
		return fmt.Sprintf("%3d/%-3d late %3d by %5.1f wait %5.1f old %3.0f", c.OnTime, c.Created, c.Late, c.Lateness.Minutes(), c.Wait.Minutes(), c.Oldest.Minutes())
	}
	return fmt.Sprintf("C %s | H %s | S %s | %4.1f km/del %4.1f ord/mission idle %4.1f waiting %5.1f", class(domain.PriorityCritical), class(domain.PriorityHigh), class(domain.PriorityStandard),
		r.FlownKm/float64(max(r.Delivered, 1)), float64(r.Delivered)/float64(max(r.Missions, 1)), r.IdleMean, r.WaitingMean)
}
