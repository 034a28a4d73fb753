package ordering

import (
	"fmt"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// ConflictError says that an order's id belongs to an order with other content.
type ConflictError struct {
	ID     domain.OrderID
	Why    string       // if no fields are named
	Fields []Difference // of the known order, each with its value there
}

// Difference is a field, as in JSON, whose value in the known order is another.
type Difference struct{ Field, Known string }

// Error implements error.
func (e *ConflictError) Error() string {
	why := e.Why
	if why == "" {
		texts := make([]string, len(e.Fields))
		for i, f := range e.Fields {
			texts[i] = fmt.Sprintf("its %s is %s", f.Field, f.Known)
		}
		why = "there is an order with this id and other content: " + strings.Join(texts, ", ")
	}
	return fmt.Sprintf("order %s: %s; change that order, or give another id", e.ID, why)
}

// conflict compares a request with the order that has its id; nil if it asks for the same. What
// was changed since is compared as it is now, unless the request is word for word the first one.
func conflict(known domain.Order, req domain.OrderRequest) error {
	switch {
	case known.RequesterID != "" && known.RequesterID != req.RequesterID:
		return &ConflictError{ID: req.ID, Why: "the id is taken"} // the other requester's content is not shown
	case known.ContentHash == req.Hash():
		return nil
	case known.Status == domain.OrderCancelled && known.ContentHash == "":
		return &ConflictError{ID: req.ID, Why: "it was cancelled before it arrived"}
	}
	if fields := differences(known, req); len(fields) > 0 {
		return &ConflictError{ID: req.ID, Fields: fields}
	}
	return nil
}

// differences are the fields of a request whose values differ from the order's.
func differences(o domain.Order, req domain.OrderRequest) (fields []Difference) {
	add := func(differs bool, field, known string) {
		if differs {
			fields = append(fields, Difference{field, known})
		}
	}
	add(o.RequesterID != req.RequesterID, "requesterId", quoted(o.RequesterID))
	add(o.Priority != req.Priority, "priority", o.Priority.String())
	add(o.ProductType != req.ProductType, "productType", quoted(o.ProductType))
	add(point(o.Pickup) != point(req.Pickup), "pickupLocation", point(o.Pickup))
	add(o.Delivery != req.Delivery, "deliveryLocation", point(&o.Delivery))
	add(o.WeightKg != req.WeightKg, "packageWeightKg", fmt.Sprint(o.WeightKg))
	add(o.ColdChain != req.ColdChain, "requiresColdChain", fmt.Sprint(o.ColdChain))
	// A time that the request leaves out is not compared: the order has one that follows from
	// its arrival.
	add(!req.CreatedAt.IsZero() && !req.CreatedAt.Equal(o.CreatedAt), "createdAt", clock(o.CreatedAt))
	add(!req.Deadline.IsZero() && !req.Deadline.Equal(o.Deadline), "deadline", clock(o.Deadline))
	return fields
}

func quoted(text string) string {
	if text == "" {
		return "empty"
	}
	return fmt.Sprintf("%q", text)
}

func point(p *domain.Position) string {
	if p == nil {
		return "left out"
	}
	return fmt.Sprintf("%v,%v", p.Lat, p.Lon)
}

func clock(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
