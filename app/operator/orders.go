package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// ListOrders prints one page of orders, and why the waiting ones wait.
//
// Cost: 1 RPC, a read per order; if one waits, 1 + D RPCs and 2 D reads more for D depots.
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
	withWaits := func(o domain.Order) entity.WaitingOrder { return entity.OfWaitingOrder(o, waits.Of(o)) }
	header := []string{"ORDER", "STATUS", "PRIORITY", "DUE", "WAITS", "CREATED", "PRODUCT", "ATTEMPTS", "FLAGS", "DRONE", "MISSION", "HELD BECAUSE"}
	return printPage(d, "orders", nothing("orders", string(f.Status), f.Held), l, withWaits, header, func(o domain.Order) []string {
		due := d.ago(o.Deadline)
		if o.Status.Final() {
			due = stamp(o.Deadline)
		}
		var why string
		if w := waits.Of(o); len(w) > 0 {
			why = w[0].Short()
		}
		return []string{
			string(o.ID), string(o.Status), priority(o), due, why, d.ago(o.CreatedAt), o.ProductType, fmt.Sprint(o.Attempts),
			flags("held", o.Held, "late", o.Late), string(o.AssignedDroneID), string(o.AssignedMissionID), o.HeldReason,
		}
	}, d.whenSeen(waits)...)
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

// PrintUrgency prints how urgent an order is after a command.
func (d *Desk) PrintUrgency(changed Changed[domain.Order], err error) error {
	if err != nil || d.JSON {
		return d.PrintOrder(changed, err)
	}
	o := changed.Now
	d.say("%sorder %s is %s, %s, due %s UTC", changed.already(), o.ID, o.Status, o.Priority, stamp(o.Deadline))
	return nil
}

// PrintAllowed prints which drones may take an order after a command.
func (d *Desk) PrintAllowed(changed Changed[domain.Order], err error) error {
	if err != nil || d.JSON {
		return d.PrintOrder(changed, err)
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

// PrintOrder prints an order after a command.
func (d *Desk) PrintOrder(changed Changed[domain.Order], err error) error {
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
