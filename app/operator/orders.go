package operator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// ListOrders prints one page of orders, and why those of them wait that do.
//
// Cost: 1 RPC, a read per order; if one waits, 1 + D RPCs and 2 D reads more for D
// depots.
func (d *Desk) ListOrders(ctx context.Context, f firestoretx.OrderFilter, page firestoretx.Page) error {
	l, err := d.Store.ListOrders(ctx, f, page)
	if err != nil {
		return err
	}
	waits, malformed, err := d.waitsOf(ctx, l.Items...)
	if err != nil {
		return err
	}
	l.Malformed = append(l.Malformed, malformed...)
	if d.JSON {
		withWaits := func(o domain.Order) entity.WaitingOrder { return entity.OfWaitingOrder(o, waits.Of(o)) }
		return d.printJSON(entity.Page("orders", entity.Each(l.Items, withWaits), l.Next, l.Malformed))
	}
	if len(l.Items) == 0 {
		fmt.Fprintln(d.Out, nothing("orders", string(f.Status), f.Held))
		d.footer("orders", l.Next, l.Malformed)
		return nil
	}
	t := d.table("ORDER", "STATUS", "PRIORITY", "DUE", "WAITS", "CREATED", "PRODUCT", "ATTEMPTS", "FLAGS", "DRONE", "MISSION", "HELD BECAUSE")
	for _, o := range l.Items {
		due := d.ago(o.Deadline)
		if o.Status.Final() {
			due = stamp(o.Deadline)
		}
		var why string
		if w := waits.Of(o); len(w) > 0 {
			why = w[0].Short()
		}
		t.row(string(o.ID), string(o.Status), priority(o), due, why, d.ago(o.CreatedAt), o.ProductType, fmt.Sprint(o.Attempts),
			flags("held", o.Held, "late", o.Late), string(o.AssignedDroneID), string(o.AssignedMissionID), o.HeldReason)
	}
	if err := t.flush(); err != nil {
		return err
	}
	d.sayWhenSeen(waits)
	d.footer("orders", l.Next, l.Malformed)
	return nil
}

// nothing is the line printed for an empty listing; it repeats the filter.
func nothing(what, status string, held bool) string {
	text := "No " + what
	if status != "" {
		text += " are " + status
	}
	switch {
	case held && status != "":
		text += " and held"
	case held:
		text += " are held"
	case status == "":
		text += " yet"
	}
	return text + "."
}

func priority(o domain.Order) string {
	if o.Priority == 0 {
		return ""
	}
	return o.Priority.String()
}

// flags joins the names whose value is true; pairs alternates names and values.
func flags(pairs ...any) string {
	var set []string
	for i := 0; i+1 < len(pairs); i += 2 {
		name, _ := pairs[i].(string)
		if on, _ := pairs[i+1].(bool); on {
			set = append(set, name)
		}
	}
	return strings.Join(set, ",")
}

// HoldOrder keeps a pending order out of every cycle and prints it. The error is a
// *policy.Rejection if the order cannot be held.
func (d *Desk) HoldOrder(ctx context.Context, id domain.OrderID, reason string) error {
	return d.printOrder(d.commands().HoldOrder(ctx, id, reason))
}

// ReleaseOrder offers a held order to the cycles again and prints it. The error is a
// *policy.Rejection if it is cancelled.
func (d *Desk) ReleaseOrder(ctx context.Context, id domain.OrderID, reason string) error {
	return d.printOrder(d.commands().ReleaseOrder(ctx, id, reason))
}

// CancelOrder cancels an order that no drone carries yet and prints it. The error is a
// *policy.Rejection if it is too late.
func (d *Desk) CancelOrder(ctx context.Context, id domain.OrderID, reason string) error {
	return d.printOrder(d.commands().CancelOrder(ctx, id, reason))
}

// SetPriority gives an open order another priority and prints it.
func (d *Desk) SetPriority(ctx context.Context, id domain.OrderID, p domain.Priority, reason string) error {
	return d.printUrgency(d.commands().SetPriority(ctx, id, p, reason))
}

// SetDeadline gives an open order another deadline and prints it.
func (d *Desk) SetDeadline(ctx context.Context, id domain.OrderID, deadline time.Time, reason string) error {
	return d.printUrgency(d.commands().SetDeadline(ctx, id, deadline, reason))
}

// printUrgency prints how urgent an order is after a command.
func (d *Desk) printUrgency(changed Changed[domain.Order], err error) error {
	if err != nil || d.JSON {
		return d.printOrder(changed, err)
	}
	o := changed.Now
	d.say("%sorder %s is %s, %s, due %s UTC", changed.already(), o.ID, o.Status, o.Priority, stamp(o.Deadline))
	return nil
}

// PinOrder lets only one drone take an order and prints it.
func (d *Desk) PinOrder(ctx context.Context, id domain.OrderID, drone domain.DroneID, reason string) error {
	return d.printDrones(d.commands().PinOrder(ctx, id, drone, reason))
}

// UnpinOrder ends what PinOrder did and prints the order.
func (d *Desk) UnpinOrder(ctx context.Context, id domain.OrderID, reason string) error {
	return d.printDrones(d.commands().UnpinOrder(ctx, id, reason))
}

// ForbidDrone keeps a drone from taking an order and prints it.
func (d *Desk) ForbidDrone(ctx context.Context, id domain.OrderID, drone domain.DroneID, reason string) error {
	return d.printDrones(d.commands().ForbidDrone(ctx, id, drone, reason))
}

// AllowDrone ends what ForbidDrone did and prints the order.
func (d *Desk) AllowDrone(ctx context.Context, id domain.OrderID, drone domain.DroneID, reason string) error {
	return d.printDrones(d.commands().AllowDrone(ctx, id, drone, reason))
}

// printDrones prints which drones may take an order after a command.
func (d *Desk) printDrones(changed Changed[domain.Order], err error) error {
	if err != nil || d.JSON {
		return d.printOrder(changed, err)
	}
	o := changed.Now
	d.say("%sorder %s is %s, for %s", changed.already(), o.ID, o.Status, allowed(o))
	return nil
}

// allowed names the drones that may take an order.
func allowed(o domain.Order) string {
	if o.PinnedDroneID != "" {
		return "drone " + string(o.PinnedDroneID) + " only"
	}
	text := "every drone"
	for i, id := range o.ForbiddenDroneIDs {
		text += []string{" but ", ", "}[min(i, 1)] + string(id)
	}
	return text
}

// already is the prefix of the line about a change that was already in effect.
func (c Changed[E]) already() string {
	if c.Already {
		return "already done: "
	}
	return ""
}

// printOrder prints an order after a command.
func (d *Desk) printOrder(changed Changed[domain.Order], err error) error {
	if err != nil {
		return err
	}
	o := changed.Now
	if d.JSON {
		return d.printJSON(entity.OfOrder(o))
	}
	line := fmt.Sprintf("%sorder %s is %s", changed.already(), o.ID, o.Status)
	if o.Held {
		line += ", held: " + o.HeldReason
	}
	d.say("%s", line)
	return nil
}
