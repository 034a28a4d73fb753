package httpapi

import (
	"context"
	"errors"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/input"
)

func (a *API) orderEndpoints() []endpoint {
	return []endpoint{
		{
			method: get, path: "/api/v1/orders", role: viewer, summary: "List orders, and why those that wait do.",
			parameters: listed("orders", choice("status", domain.OrderStatuses), onlyHeld), answer: pages("orders", a.listOrders),
		},
		{method: post, path: "/api/v1/orders", role: oper, requesters: true, summary: "Order a delivery.", answer: a.placing()},
		{method: get, path: "/api/v1/orders/{id}", role: viewer, summary: "Read one order, and why it waits.", answer: writes(a.order)},
		{
			method: get, path: "/api/v1/orders/{id}/explanation", role: viewer, summary: "Say why an order waited or was late, which drones were nearest, what each lacked, and what would have helped.",
			parameters: []parameter{maybePast, addDrones, addSlots, dropReserve}, answer: writes(a.explanation),
		},
		{method: get, path: "/api/v1/orders/{id}/story", role: viewer, summary: "Tell everything recorded about one order.", answer: a.story(operator.SubjectOrder)},
		{method: post, path: "/api/v1/orders/{id}/hold", role: oper, summary: "Keep a pending order from every solve cycle.", answer: changes(a, operator.Commands.HoldOrder, entity.OfOrder)},
		{method: post, path: "/api/v1/orders/{id}/release", role: oper, summary: "Offer a held order to the solve cycles again.", answer: changes(a, operator.Commands.ReleaseOrder, entity.OfOrder)},
		{method: post, path: "/api/v1/orders/{id}/cancel", role: oper, summary: "Cancel an order that no drone carries yet.", answer: changes(a, operator.Commands.CancelOrder, entity.OfOrder)},
		{method: post, path: "/api/v1/orders/{id}/priority", role: oper, summary: "Give an open order another priority.", answer: operates(a, setPriority)},
		{method: post, path: "/api/v1/orders/{id}/deadline", role: oper, summary: "Give an open order another deadline.", answer: operates(a, setDeadline)},
		{method: post, path: "/api/v1/orders/{id}/pin", role: oper, summary: "Let only one drone take an order.", answer: changesDrone(a, operator.Commands.PinOrder)},
		{method: post, path: "/api/v1/orders/{id}/unpin", role: oper, summary: "Let any drone take a pinned order again.", answer: changes(a, operator.Commands.UnpinOrder, entity.OfOrder)},
		{method: post, path: "/api/v1/orders/{id}/forbid", role: oper, summary: "Keep one drone from an order.", answer: changesDrone(a, operator.Commands.ForbidDrone)},
		{method: post, path: "/api/v1/orders/{id}/allow", role: oper, summary: "Let a forbidden drone take an order again.", answer: changesDrone(a, operator.Commands.AllowDrone)},
	}
}

// onlyHeld narrows a list to held orders. It refuses false, which would look like a list of
// the others and show all.
var onlyHeld = onlyTrue("held", "Only orders that wait for an operator.", "true, or leave it out for all")

// listOrders answers GET /api/v1/orders with one page, and why its waiting orders wait.
//
// Cost: 1 RPC, one read per order listed and one more; if one waits, at most every
// waitsFor, 1 + D RPCs and 2 D reads for D depots.
func (a *API) listOrders(ctx context.Context, r *request) (items []entity.WaitingOrder, next string, malformed []error, err error) {
	filter := firestoretx.OrderFilter{Status: domain.OrderStatus(r.value("status")), Held: r.has("held")}
	l, err := a.store.ListOrders(ctx, filter, r.page())
	if err != nil {
		return nil, "", nil, err
	}
	found, malformed, err := a.waits.of(ctx, l.Items...)
	form := func(o domain.Order) entity.WaitingOrder { return entity.OfWaitingOrder(o, found.Of(o)) }
	return entity.Each(l.Items, form), l.Next, append(l.Malformed, malformed...), err
}

// order answers GET /api/v1/orders/{id} with the order, and why it waits if it does.
//
// Cost: 1 RPC, 1 read; if it waits, the same as listOrders. An order that was just sent is waited for; see
// ordering.Desk.Await.
func (a *API) order(ctx context.Context, r *request) (now entity.WaitingOrder, err error) {
	o, err := a.store.Order(ctx, domain.OrderID(r.id()))
	if errors.Is(err, firestoretx.ErrNotFound) && a.orders.Await(ctx, domain.OrderID(r.id())) {
		o, err = a.store.Order(ctx, domain.OrderID(r.id()))
	}
	if err != nil {
		return now, err
	}
	found, _, err := a.waits.of(ctx, o) // a malformed cycle is named where orders are listed
	if err != nil {
		return now, err
	}
	return entity.OfWaitingOrder(o, found.Of(o)), nil
}

// priorityRequest is the body of a command that changes an order's priority.
type priorityRequest struct {
	changeRequest
	Priority string `json:"priority" doc:"STANDARD, HIGH or CRITICAL." example:"CRITICAL"`
}

func (p *priorityRequest) check(bad *problems) {
	p.changeRequest.check(bad)
	if _, ok := domain.ParsePriority(p.Priority); !ok {
		bad.add("priority", "is %.64q; give one of %v", p.Priority, domain.Priorities)
	}
}

// setPriority answers POST /api/v1/orders/{id}/priority.
func setPriority(ctx context.Context, c *command, req *priorityRequest) (entity.Order, error) {
	priority, _ := domain.ParsePriority(req.Priority) // checked
	changed, err := c.SetPriority(ctx, domain.OrderID(c.id), priority, req.Reason)
	return after(c, req.Reason, changed, err, entity.OfOrder)
}

// deadlineRequest is the body of a command that changes an order's deadline.
type deadlineRequest struct {
	changeRequest
	Deadline string `json:"deadline" doc:"Latest useful delivery, in the future (RFC 3339)." example:"2099-11-21T12:00:00Z"`
}

func (d *deadlineRequest) check(bad *problems) {
	d.changeRequest.check(bad)
	if _, err := input.Time(d.Deadline); err != nil {
		bad.add("deadline", "is %.64q; give a time such as 2026-11-21T12:00:00Z", d.Deadline)
	}
}

// setDeadline answers POST /api/v1/orders/{id}/deadline.
func setDeadline(ctx context.Context, c *command, req *deadlineRequest) (entity.Order, error) {
	deadline, _ := input.Time(req.Deadline) // checked
	changed, err := c.SetDeadline(ctx, domain.OrderID(c.id), deadline, req.Reason)
	return after(c, req.Reason, changed, err, entity.OfOrder)
}

// droneRequest is the body of a command about an order and a drone.
type droneRequest struct {
	changeRequest
	DroneID string `json:"droneId" example:"D1"`
}

func (d *droneRequest) check(bad *problems) {
	d.changeRequest.check(bad)
	bad.addError("droneId", domain.CheckID(d.DroneID))
}

// changesDrone is the answer of a command about an order and the drone that the body names.
func changesDrone(a *API, do func(operator.Commands, context.Context, domain.OrderID, domain.DroneID, string) (operator.Changed[domain.Order], error)) answer {
	return operates(a, func(ctx context.Context, c *command, req *droneRequest) (entity.Order, error) {
		changed, err := do(c.Commands, ctx, domain.OrderID(c.id), domain.DroneID(req.DroneID), req.Reason)
		return after(c, req.Reason, changed, err, entity.OfOrder)
	})
}
