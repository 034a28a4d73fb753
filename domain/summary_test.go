package domain

import (
	"testing"
	"time"
)

// F-INT-04: a requester reads where an order stands in plain words.
func TestSummaryOf_SaysWhereAnOrderStands(t *testing.T) {
	due := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	base := Order{Status: OrderPending, Deadline: due, DeliveredAt: due.Add(-time.Minute), AssignedDroneID: "D1"}
	with := func(status OrderStatus, change func(*Order)) Order {
		o := base
		if o.Status = status; change != nil {
			change(&o)
		}
		return o
	}
	for _, c := range []struct {
		order    Order
		reason   string
		expected time.Time
		want     string
	}{
		{base, "", time.Time{}, "it waits for a drone"},
		{base, "no_drone_free: drones that can carry it are not ready at the depot", time.Time{}, "it waits: no drone that can carry it is free"},
		{base, "out_of_range", time.Time{}, "it cannot be delivered as things stand: it is too far for every drone"},
		{base, "later_reason", time.Time{}, "it waits: later_reason"},
		{with(OrderPending, func(o *Order) { o.Held, o.HeldReason = true, "address in doubt" }), "", time.Time{}, "an operator holds it: address in doubt"},
		{with(OrderAssigned, nil), "", due.Add(-5 * time.Minute), "drone D1 will pick it up; delivery is expected at 11:55 UTC"},
		{with(OrderInDelivery, nil), "", due.Add(5 * time.Minute), "drone D1 carries it; delivery is expected at 12:05 UTC, 5 min late"},
		{with(OrderInDelivery, nil), "", time.Time{}, "drone D1 carries it"},
		{with(OrderDelivered, nil), "", time.Time{}, "delivered at 11:59 UTC"},
		{with(OrderDelivered, func(o *Order) { o.Late = true }), "", time.Time{}, "delivered at 11:59 UTC, after its deadline"},
		{with(OrderCancelled, nil), "", time.Time{}, "cancelled"},
	} {
		var waits []Wait
		if c.reason != "" {
			waits = []Wait{{Reason: c.reason}}
		}
		if got := SummaryOf(c.order, waits, c.expected); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.order.Status, c.reason, got, c.want)
		}
	}
}

// F-INT-04: every reason that cannot be cured by waiting has plain words.
func TestSummaryOf_KnowsHopelessReasons(t *testing.T) {
	for _, reason := range hopeless {
		if plainReasons[reason] == "" {
			t.Errorf("%s has no plain words", reason)
		}
	}
}
