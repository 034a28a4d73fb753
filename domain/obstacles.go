package domain

import (
	"fmt"
	"slices"
)

// Obstacles counts the drones that could not serve an order in a cycle, by cause.
type Obstacles struct {
	// Free drones of the depot were examined. Busy ones fly, charge, are faulty or silent; their
	// number is what the planner saw lately.
	Free, Busy int
	// Free drones that cannot carry the order, each counted under the first cause that applies: it
	// is not allowed by a pin or prohibition, or lacks a cold box; no warehouse supplies the
	// product; the order is too heavy; the flight needs a warehouse without cold storage; it is too
	// far with full charge, or takes too long; it is too far with the present charge.
	NotAllowed, Warehouse, Payload, ColdChain, Range, Battery int
	// Free drones that can carry it, each counted once: they take other orders, are a reserve for
	// CRITICAL orders, or stay without a mission.
	Taken, Reserve, Unused int
	// Deadline is how many of the drones that can carry it would be late.
	Deadline int
}

// Counted reports whether the drones were counted. They are not if the order cannot be planned, or
// if there are too many orders.
func (o Obstacles) Counted() bool { return o != Obstacles{} }

// Kinds is the number of counts that are not zero, which determines the size of an order's record.
func (o Obstacles) Kinds() (n int) {
	for _, drones := range []int{
		o.Free, o.Busy, o.NotAllowed, o.Warehouse, o.Payload, o.ColdChain, o.Range, o.Battery, o.Taken, o.Reserve, o.Unused, o.Deadline,
	} {
		if drones != 0 {
			n++
		}
	}
	return n
}

// String is one line for people, such as "12 free: 3 payload, 4 taken, 5 reserve
// (9 late); 28 busy". It is empty if the drones were not counted.
func (o Obstacles) String() string {
	if !o.Counted() {
		return ""
	}
	text := fmt.Sprintf("%d free", o.Free)
	separator := ": "
	for _, kind := range o.kinds() {
		text += separator + kind.String()
		separator = ", "
	}
	if o.Deadline > 0 {
		text += fmt.Sprintf(" (%d late)", o.Deadline)
	}
	if o.Busy > 0 {
		text += fmt.Sprintf("; %d busy", o.Busy)
	}
	return text
}

// able is how many free drones can carry the order.
func (o Obstacles) able() int { return o.Taken + o.Reserve + o.Unused }

// obstacle is how many free drones one kind of obstacle keeps from an order.
type obstacle struct {
	drones int
	kind   string
}

func (o obstacle) String() string { return fmt.Sprintf("%d %s", o.drones, o.kind) }

// kinds are the obstacles that there are.
func (o Obstacles) kinds() []obstacle {
	return slices.DeleteFunc([]obstacle{
		{o.NotAllowed, "not allowed"}, {o.Warehouse, "warehouse"}, {o.Payload, "payload"}, {o.ColdChain, "cold chain"}, {o.Range, "range"}, {o.Battery, "battery"},
		{o.Taken, "taken"}, {o.Reserve, "reserve"}, {o.Unused, "unused"},
	}, func(o obstacle) bool { return o.drones == 0 })
}
