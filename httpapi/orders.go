package httpapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/internal/input"
)

func (a *API) orderEndpoints() []endpoint {
	return []endpoint{
		{
			method: get, path: "/api/v1/orders", role: viewer, requesters: true, summary: "List orders, and why those that wait do.",
			parameters: listed("orders", choice("status", domain.OrderStatuses), onlyHeld, ofRequester), answer: pages("orders", a.listOrders),
		},
		{method: post, path: "/api/v1/orders", role: oper, requesters: true, summary: "Order a delivery.", headers: []parameter{keyHeader}, parameters: []parameter{acceptAnyway}, answer: a.placing()},
		{method: get, path: "/api/v1/orders/{id}", role: viewer, requesters: true, summary: "Read one order: where it stands, when it is expected, and why it waits.", answer: writes(a.order)},
		{method: patch, path: "/api/v1/orders/{id}", role: oper, requesters: true, summary: "Give an open order another priority or deadline or, while it is PENDING, another address.", answer: operates(a, a.changeOrder)},
		{
			method: get, path: "/api/v1/orders/{id}/explanation", role: viewer, summary: "Say why an order waited or was late, which drones were nearest, what each lacked, and what would have helped.",
			parameters: []parameter{maybePast, addDrones, addSlots, dropReserve}, answer: writes(a.explanation),
		},
		{
			method: get, path: "/api/v1/orders/{id}/candidates", role: viewer, summary: "List the drones that could take an order that waits: distance, charge, arrival, what each lacks, and who would pay.",
			parameters: []parameter{pinTo}, answer: writes(a.candidates),
		},
		{method: get, path: "/api/v1/orders/{id}/story", role: viewer, summary: "Tell everything recorded about one order.", answer: a.story(operator.SubjectOrder)},
		{method: post, path: "/api/v1/orders/{id}/hold", role: oper, summary: "Keep a pending order from every solve cycle.", answer: changes(a, operator.Commands.HoldOrder, entity.OfOrder)},
		{method: post, path: "/api/v1/orders/{id}/release", role: oper, summary: "Offer a held order to the solve cycles again.", answer: changes(a, operator.Commands.ReleaseOrder, entity.OfOrder)},
		{method: post, path: "/api/v1/orders/{id}/cancel", role: oper, requesters: true, summary: "Cancel an order that no drone carries yet.", answer: operates(a, a.cancelOrder)},
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

// ofRequester narrows a list to the orders of one requester.
var ofRequester = parameter{
	name: "requesterId", says: "Only orders of this requester; requesters see no others.", example: "HOSPITAL-1", schema: schema{"type": "string"},
	wrong: checked(domain.CheckID),
}

// listOrders answers GET /api/v1/orders with one page, and why its waiting orders wait.
//
// Cost: 1 RPC, one read per order listed and one more; if one waits, at most every
// waitsFor, 1 + D RPCs and 2 D reads for D depots.
func (a *API) listOrders(ctx context.Context, r *request) (items []entity.WaitingOrder, next string, malformed []error, err error) {
	filter := firestoretx.OrderFilter{Status: domain.OrderStatus(r.value("status")), Held: r.has("held")}
	if filter.RequesterID, err = requesterOf(ctx, r, "requesterId"); err != nil {
		return nil, "", nil, err
	}
	l, err := a.store.ListOrders(ctx, filter, r.page())
	if err != nil {
		return nil, "", nil, err
	}
	found, malformed, err := a.waits.of(ctx, l.Items...)
	form := func(o domain.Order) entity.WaitingOrder { return entity.OfWaitingOrder(o, found.Of(o)) }
	malformed = append(l.Malformed, malformed...)
	if filter.RequesterID != "" && !callerOf(ctx).May(viewer) {
		malformed = nil // cycles are not the requester's
	}
	return entity.Each(l.Items, form), l.Next, malformed, err
}

// dronesShown is how long before the expected delivery the drone's position is shown.
const dronesShown = 10 * time.Minute

// order answers GET /api/v1/orders/{id} with where the order stands. If it was refused on its way,
// the answer is 410 with the reason.
//
// Cost: 1 RPC, 1 read; if it waits, the same as listOrders; if it has a mission, 1 RPC and 1 read for
// that and, shortly before the delivery, for the drone; if there is no such order, that of
// firestoretx.Store.RefusalOf. An order that was just sent is waited for; see ordering.Desk.Await.
func (a *API) order(ctx context.Context, r *request) (now entity.OrderNow, err error) {
	o, err := a.ownOrder(ctx, domain.OrderID(r.id()), viewer)
	if err != nil {
		return now, err
	}
	found, _, err := a.waits.of(ctx, o) // a malformed cycle is named where orders are listed
	if err != nil {
		return now, err
	}
	var expected time.Time
	var drone *domain.Drone
	if o.AssignedMissionID != "" && !o.Status.Final() {
		m, err := a.store.Mission(ctx, o.AssignedMissionID)
		if err != nil && !errors.Is(err, firestoretx.ErrNotFound) {
			return now, err
		}
		expected = m.ExpectedAt(o.ID)
		if !expected.IsZero() && expected.Sub(a.store.Now()) <= dronesShown {
			d, err := a.store.Drone(ctx, o.AssignedDroneID)
			if err != nil && !errors.Is(err, firestoretx.ErrNotFound) {
				return now, err
			}
			drone = &d
		}
	}
	return entity.OfOrderNow(o, found.Of(o), expected, drone, a.store.Now()), nil
}

// ownOrder reads an order. Callers without the role that sees all orders find their own only.
func (a *API) ownOrder(ctx context.Context, id domain.OrderID, all identity.Role) (domain.Order, error) {
	own, only := ownOrders(callerOf(ctx), all)
	o, err := a.store.Order(ctx, id)
	if errors.Is(err, firestoretx.ErrNotFound) && a.orders.Await(ctx, id) {
		o, err = a.store.Order(ctx, id)
	}
	switch {
	case err == nil && only && o.RequesterID != own:
		return domain.Order{}, problem(http.StatusNotFound, "orders %s: not found", id) // as if it did not exist
	case errors.Is(err, firestoretx.ErrNotFound):
		refused, unknown := a.store.RefusalOf(ctx, id)
		if unknown == nil && (!only || refused.RequesterID == own) {
			return o, problem(http.StatusGone, "order %s was refused at %s as %s: %s; send a correct order, which may have the same id",
				id, refused.RefusedAt.UTC().Format(time.RFC3339), refused.Reason, refused.Error)
		}
		if unknown != nil && !errors.Is(unknown, firestoretx.ErrNotFound) {
			return o, unknown
		}
	}
	return o, err
}

// requesterOf is the requester that a parameter names, or the only one that the caller may see.
func requesterOf(ctx context.Context, r *request, name string) (string, error) {
	own, only := ownOrders(callerOf(ctx), viewer)
	if only && r.has(name) && r.value(name) != own {
		return "", problem(http.StatusForbidden, "%s is %.128q and the caller sees orders of %q only; leave %s out", name, r.value(name), own, name)
	}
	if only {
		return own, nil
	}
	return r.value(name), nil
}

// cancelOrder answers POST /api/v1/orders/{id}/cancel.
//
// Cost: that of operator.Commands.CancelOrder, and of reading the order.
func (a *API) cancelOrder(ctx context.Context, c *command, req *changeRequest) (now entity.Order, err error) {
	if _, err := a.ownOrder(ctx, domain.OrderID(c.id), oper); err != nil {
		return now, err
	}
	changed, err := c.CancelOrder(ctx, domain.OrderID(c.id), req.Reason)
	return after(c, req.Reason, changed, err, entity.OfOrder)
}

// orderChangeRequest is the body of a change of an order. What is left out stays.
type orderChangeRequest struct {
	changeRequest
	Priority         string       `json:"priority,omitempty" doc:"STANDARD, HIGH or CRITICAL; the deadline stays." example:"CRITICAL"`
	Deadline         string       `json:"deadline,omitempty" doc:"Latest useful delivery, in the future (RFC 3339)." example:"2099-11-21T12:00:00Z"`
	DeliveryLocation *coordinates `json:"deliveryLocation,omitempty" doc:"Where the parcel goes instead, while the order is PENDING." example:"{\"lat\": 48.861, \"lon\": 2.361}"`
}

func (q *orderChangeRequest) check(bad *problems) {
	q.changeRequest.check(bad)
	if q.Priority == "" && q.Deadline == "" && q.DeliveryLocation == nil {
		bad.add("priority", "is left out, and so are deadline and deliveryLocation; give what is to change")
	}
	if q.Priority != "" {
		checkPriority(bad, q.Priority)
	}
	if q.Deadline != "" {
		checkDeadline(bad, q.Deadline)
	}
	if at := q.DeliveryLocation; at != nil {
		checkDegrees(bad, "deliveryLocation.lat", at.Lat, 90)
		checkDegrees(bad, "deliveryLocation.lon", at.Lon, 180)
	}
}

func checkDegrees(bad *problems, name string, degrees *float64, most float64) {
	switch {
	case degrees == nil:
		bad.add(name, "is missing; give degrees")
	case math.Abs(*degrees) > most:
		bad.add(name, "is %v; give %v to %v", *degrees, -most, most)
	}
}

// changeOrder answers PATCH /api/v1/orders/{id}.
//
// Cost: that of operator.Commands.ChangeOrder, and of reading the order.
func (a *API) changeOrder(ctx context.Context, c *command, req *orderChangeRequest) (now entity.Order, err error) {
	if _, err := a.ownOrder(ctx, domain.OrderID(c.id), oper); err != nil {
		return now, err
	}
	var to domain.OrderChange
	if p, given := domain.ParsePriority(req.Priority); given {
		to.Priority = &p
	}
	if at, err := input.Time(req.Deadline); err == nil { // checked; empty otherwise
		to.Deadline = &at
	}
	if at := req.DeliveryLocation; at != nil {
		to.Delivery = &domain.Position{Lat: *at.Lat, Lon: *at.Lon}
	}
	changed, err := c.ChangeOrder(ctx, domain.OrderID(c.id), to, req.Reason)
	return after(c, req.Reason, changed, err, entity.OfOrder)
}

// priorityRequest is the body of a command that changes an order's priority.
type priorityRequest struct {
	changeRequest
	Priority string `json:"priority" doc:"STANDARD, HIGH or CRITICAL." example:"CRITICAL"`
}

func (p *priorityRequest) check(bad *problems) {
	p.changeRequest.check(bad)
	checkPriority(bad, p.Priority)
}

func checkPriority(bad *problems, name string) {
	if _, ok := domain.ParsePriority(name); !ok {
		bad.add("priority", "is %.64q; give one of %v", name, domain.Priorities)
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
	checkDeadline(bad, d.Deadline)
}

func checkDeadline(bad *problems, at string) {
	if _, err := input.Time(at); err != nil {
		bad.add("deadline", "is %.64q; give a time such as 2026-11-21T12:00:00Z", at)
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
