package plannersim

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
)

// Result is how a day went.
type Result struct {
	Scenario   Scenario `json:"-"`
	Cycles     int
	Priorities [4]Class // by domain.Priority
	FlownKm    float64
	Delivered  int
	Missions   int
	// Busy is the mean share of drones that fly or charge.
	Busy float64
	// IdleMean is the mean number of drones offered to a cycle, WaitingMean of
	// orders.
	IdleMean, WaitingMean float64
	// Slowest is the longest planning of a cycle, in machine time.
	Slowest time.Duration `json:"-"`
}

// Class is how the orders of one priority fared. Orders still open count as
// late once their deadline has passed.
type Class struct {
	Created, Delivered, OnTime, Late int
	// Lateness is the mean time past the deadline of those late; Wait the mean
	// from creation to delivery of those delivered; Oldest the age of the
	// oldest not delivered yet.
	Lateness, Wait, Oldest time.Duration
}

func (r *Result) planning(took time.Duration) { r.Slowest = max(r.Slowest, took) }

func (r *Result) observe(s domain.Snapshot, round dispatch.Round) {
	r.IdleMean += float64(len(s.Drones))
	r.WaitingMean += float64(len(s.Orders))
	r.Missions += len(round.Plan.Routes)
}

// score sums the day up.
func (r *Result) score(f *fleet, orders []domain.Order) {
	r.IdleMean /= float64(max(r.Cycles, 1))
	r.WaitingMean /= float64(max(r.Cycles, 1))
	r.FlownKm = f.flownKm
	r.Busy = f.busy.Seconds() / f.now.Sub(begin).Seconds() / float64(len(f.members))
	for i := range orders {
		o := &orders[i]
		c := &r.Priorities[o.Priority]
		c.Created++
		end := f.now
		if o.Status == domain.OrderDelivered {
			end = o.DeliveredAt
			c.Delivered++
			r.Delivered++
			c.Wait += end.Sub(o.CreatedAt)
		} else {
			c.Oldest = max(c.Oldest, f.now.Sub(o.CreatedAt))
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
