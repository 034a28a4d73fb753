package domain

import (
	"fmt"
	"time"
)

// plainReasons say in a requester's words why an order waits, by the code of a Wait.
var plainReasons = map[string]string{
	WaitNoDepot:               "there is no depot yet",
	WaitNoCycle:               "no plan has been made since it came",
	WaitNotSeen:               "the next plan will consider it",
	WaitPlanned:               "it was planned and is about to get a drone",
	WaitNotListed:             "more orders wait than a plan lists",
	WaitLeftOut:               "it cannot be planned as it is",
	"no_compatible_warehouse": "no warehouse supplies the product, with cold storage if it needs that",
	"out_of_range":            "it is too far for every drone",
	"no_drone_free":           "no drone that can carry it is free",
	"kept_for_critical":       "the free drones are kept for CRITICAL orders",
	"waits_for_better_route":  "a drone will take it along with other orders",
	"deadline_unreachable":    "no drone can deliver it in time; it will come late",
	"over_capacity":           "it is too heavy for every drone",
	"no_drone_allowed":        "operators let no drone take it that could",
	"invalid_input":           "it cannot be planned as it is",
}

// SummaryOf says in one sentence where an order stands. expected is when its mission plans to
// deliver it; zero if unknown.
func SummaryOf(o Order, waits []Wait, expected time.Time) string {
	clock := func(t time.Time) string { return t.UTC().Format("15:04") + " UTC" }
	due := ""
	if !expected.IsZero() {
		due = "; delivery is expected at " + clock(expected)
		if expected.After(o.Deadline) {
			due += fmt.Sprintf(", %.0f min late", expected.Sub(o.Deadline).Minutes())
		}
	}
	switch o.Status {
	case OrderPending:
		switch {
		case o.Held:
			return "an operator holds it: " + o.HeldReason
		case len(waits) == 0:
			return "it waits for a drone"
		}
		plain, known := plainReasons[waits[0].code()]
		if !known { // of a later version
			plain = waits[0].Reason
		}
		if waits[0].Hopeless() {
			return "it cannot be delivered as things stand: " + plain
		}
		return "it waits: " + plain
	case OrderAssigned:
		return fmt.Sprintf("drone %s will pick it up%s", o.AssignedDroneID, due)
	case OrderInDelivery:
		return fmt.Sprintf("drone %s carries it%s", o.AssignedDroneID, due)
	case OrderDelivered:
		if o.Late {
			return fmt.Sprintf("delivered at %s, after its deadline", clock(o.DeliveredAt))
		}
		return "delivered at " + clock(o.DeliveredAt)
	case OrderCancelled:
		return "cancelled"
	case OrderSolving:
	}
	return string(o.Status)
}
