package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/app/ordering"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/internal/input"
)

// orderRequest is the body of an order. Its fields are those of the message Order that a requester
// decides, and have the names of docs/messages.md.
type orderRequest struct {
	ID                string       `json:"id,omitempty" doc:"The requester's own, unique; or left out, if the header Idempotency-Key is sent." example:"O-17"`
	DeliveryLocation  *coordinates `json:"deliveryLocation" wire:"delivery_location" doc:"Where the parcel goes." example:"{\"lat\": 48.86, \"lon\": 2.36}"`
	PickupLocation    *coordinates `json:"pickupLocation,omitempty" wire:"pickup_location" doc:"Where the parcel waits, if not at a warehouse that stocks the product."`
	ProductType       string       `json:"productType,omitempty" wire:"product_type" doc:"What a warehouse stocks; needed without pickupLocation." example:"BLOOD"`
	Priority          string       `json:"priority,omitempty" doc:"STANDARD, HIGH or CRITICAL; STANDARD if left out." example:"CRITICAL"`
	PackageWeightKg   float64      `json:"packageWeightKg,omitempty" wire:"package_weight_kg" min:"0" max:"1000000" example:"1.5"`
	RequiresColdChain bool         `json:"requiresColdChain,omitempty" wire:"requires_cold_chain"`
	RequesterID       string       `json:"requesterId,omitempty" wire:"requester_id" doc:"Who orders; a requester's own id if left out." example:"HOSPITAL-1"`
	CreatedAt         string       `json:"createdAt,omitempty" wire:"created_at" doc:"When it was ordered (RFC 3339); when it is received if left out or later than that."`
	Deadline          string       `json:"deadline,omitempty" doc:"Latest useful delivery (RFC 3339); if left out, 15, 30 or 60 minutes after createdAt for CRITICAL, HIGH and STANDARD."`

	key     string // of the header
	request domain.OrderRequest
}

// coordinates are those of a place.
type coordinates struct {
	Lat *float64 `json:"lat" doc:"Degrees." min:"-90" max:"90"`
	Lon *float64 `json:"lon" doc:"Degrees." min:"-180" max:"180"`
}

// idempotencyKey is the header that stands for an order's id.
const idempotencyKey = "Idempotency-Key"

// keyHeader describes the header.
var keyHeader = parameter{
	name: idempotencyKey, says: "Stands for the id of an order that has none: the same caller and key make the same order.", example: "ward-3-4711", schema: schema{"type": "string", "maxLength": maxKeyBytes},
}

// maxKeyBytes bounds an idempotency key.
const maxKeyBytes = 255

// head implements headed.
func (o *orderRequest) head(h http.Header) { o.key = h.Get(idempotencyKey) }

// check has the wire check the order, so that it is judged as over Pub/Sub.
func (o *orderRequest) check(bad *problems) {
	checked := *o
	switch {
	case o.ID == "" && o.key == "":
		bad.add("id", "is missing; give one that is unique, or the header "+idempotencyKey)
		fallthrough
	case o.ID == "":
		checked.ID = "checked later"
	}
	if len(o.key) > maxKeyBytes {
		bad.add(idempotencyKey, "has %d bytes; give at most %d", len(o.key), maxKeyBytes)
	}
	for name, at := range map[string]*string{"createdAt": &checked.CreatedAt, "deadline": &checked.Deadline} {
		if _, err := input.Time(*at); *at != "" && err != nil {
			bad.add(name, "is %.64q; give a time such as 2026-11-21T12:00:00Z", *at)
			*at = ""
		}
	}
	data, err := json.Marshal(checked)
	if err != nil { // numbers and texts were decoded from JSON
		bad.add("id", "cannot be checked: %s", err)
		return
	}
	o.request, err = wire.DecodeOrder(data, map[string]string{wire.AttrContentType: "application/json"})
	if wrong, is := errors.AsType[*wire.ValidationError](err); is {
		for _, p := range wrong.Problems {
			bad.add(nameOf(p.Field), "%s", strings.Replace(p.Complaint, "is null", "is missing", 1))
		}
	} else if err != nil {
		bad.add("deliveryLocation", "cannot be read: %s", err)
	}
	o.request.ID = domain.OrderID(o.ID)
}

// nameOf is the name in the API of a wire field, such as deliveryLocation.lat for
// delivery_location.lat.
func nameOf(field string) string {
	words := strings.Split(field, "_")
	for i, word := range words[1:] {
		words[i+1] = strings.ToUpper(word[:1]) + word[1:]
	}
	return strings.Join(words, "")
}

// placedOrder is the answer to an order that was taken.
type placedOrder struct {
	ID domain.OrderID `json:"id"`
	// Warnings are the reasons why nobody can deliver the order as things stand.
	Warnings []ParameterProblem `json:"warnings,omitempty" doc:"Why no drone can deliver the order as things stand, if it was ordered all the same."`
}

// barriersOf are what keeps every drone from an order, as problems of its fields.
func barriersOf(list []planner.Barrier) (problems []ParameterProblem) {
	for _, b := range list {
		problems = append(problems, ParameterProblem{Name: b.Field, Detail: b.Detail, Pointer: "/" + b.Field, Reason: b.Reason})
	}
	return problems
}

// acceptAnyway orders what no drone can deliver as things stand.
var acceptAnyway = parameter{
	name: "accept", says: "Order even what no drone can deliver as things stand; the answer has warnings.", example: "anyway",
	schema: schema{"type": "string", "enum": []string{"anyway"}},
	wrong: func(value string) string {
		if value != "anyway" {
			return fmt.Sprintf("is %.64q; give anyway, or leave it out", value)
		}
		return ""
	},
}

// ownOrders is the requester whose orders alone a caller may see or change, if it lacks the role with
// which it could do so with all.
func ownOrders(c identity.Caller, all identity.Role) (requester string, only bool) {
	if c.May(all) {
		return "", false
	}
	return c.Requester, true
}

// placing is the answer of POST /api/v1/orders.
func (a *API) placing() answer {
	return answer{body: func() body { return new(orderRequest) }, do: a.placeOrder, shape: jsonOf[placedOrder], status: http.StatusAccepted}
}

// placeOrder answers POST /api/v1/orders once Pub/Sub has the order. State Managers apply it a
// moment later. It may be sent again: the order's id tells that it is the same.
//
// Cost: see ordering.Desk.Take.
func (a *API) placeOrder(ctx context.Context, r *request) (any, error) {
	body, caller := r.body.(*orderRequest), callerOf(ctx)
	order, who := body.request, caller.ID
	if own, only := ownOrders(caller, oper); only {
		if order.RequesterID != "" && order.RequesterID != own {
			return nil, problem(http.StatusForbidden, "requesterId is %q and the caller orders for %q only; leave requesterId out", order.RequesterID, own)
		}
		order.RequesterID, who = own, own
	}
	if order.RequesterID == "" && a.requireSender {
		p := badParameter("requesterId", "is missing, and this fleet takes no orders without (--require-sender); say for whom")
		p.Parameters = pointed(p.Parameters)
		return nil, p
	}
	if order.ID == "" {
		order.ID = ordering.IDFor(who, body.key)
	}
	barriers, err := a.orders.Take(ctx, order, order.RequesterID, r.has("accept"))
	a.log.LogAttrs(ctx, slog.LevelInfo, "order over HTTP", slog.String("caller", caller.Name), slog.String("order_id", string(order.ID)),
		slog.String("requester_id", order.RequesterID), slog.Any("err", err))
	if conflict, is := errors.AsType[*ordering.ConflictError](err); is {
		p := problem(http.StatusConflict, "%s", conflict)
		for _, f := range conflict.Fields {
			p.Parameters = append(p.Parameters, ParameterProblem{Name: f.Field, Detail: "differs; it is " + f.Known, Pointer: "/" + f.Field})
		}
		return nil, p
	}
	if hopeless, is := errors.AsType[*ordering.HopelessError](err); is {
		p := problem(http.StatusUnprocessableEntity, "%s; correct it, or order with ?accept=anyway", hopeless)
		p.Parameters = barriersOf(hopeless.Barriers)
		return nil, p
	}
	if unanswered, is := errors.AsType[*ordering.UnansweredError](err); is {
		return nil, problem(http.StatusServiceUnavailable, "%s", unanswered)
	}
	if err != nil {
		return nil, err
	}
	at := "/api/v1/orders/" + url.PathEscape(string(order.ID))
	return reply{http.StatusAccepted, placedOrder{order.ID, barriersOf(barriers)}, map[string]string{"Location": at}}, nil
}
