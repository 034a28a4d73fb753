package query

import (
	"slices"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// Order is one sort key.
type Order struct {
	Field      value.FieldPath
	Descending bool
}

// compareValues compares two values of the field in the direction of the order.
func (o Order) compareValues(a, b *pb.Value) int {
	return o.directed(value.Compare(a, b))
}

func (o Order) directed(c int) int {
	if o.Descending {
		return -c
	}
	return c
}

func (o Order) compare(a, b *pb.Document) int {
	if o.Field.IsName() {
		return o.directed(value.CompareNameStrings(a.GetName(), b.GetName()))
	}
	return o.compareValues(value.Get(a.GetFields(), o.Field), value.Get(b.GetFields(), o.Field))
}

func (o Order) isDescendingName() bool { return o.Field.IsName() && o.Descending }

func compileOrders(orderBy []*pb.StructuredQuery_Order) ([]Order, error) {
	orders := make([]Order, 0, len(orderBy)+2)
	for _, o := range orderBy {
		field, err := value.ParseFieldPath(o.GetField().GetFieldPath())
		if err != nil {
			return nil, err
		}
		if len(orders) > 0 && orders[len(orders)-1].Field.IsName() {
			return nil, errOrderAfterName()
		}
		if slices.ContainsFunc(orders, func(earlier Order) bool { return earlier.Field.Compare(field) == 0 }) {
			return nil, invalidf("order by clause cannot contain duplicate fields %s", field)
		}
		switch o.GetDirection() {
		case pb.StructuredQuery_DIRECTION_UNSPECIFIED, pb.StructuredQuery_ASCENDING, pb.StructuredQuery_DESCENDING:
		default:
			return nil, invalidf("Unknown Order direction.")
		}
		orders = append(orders, Order{Field: field, Descending: o.GetDirection() == pb.StructuredQuery_DESCENDING})
	}
	return orders, nil
}

func errOrderAfterName() error {
	return invalidf("order by clause cannot contain more fields after the key")
}

// completeOrder appends to the explicit orders the inequality fields that they miss,
// which must be sorted by name, and the document's name. Their direction is that of
// the last explicit order.
func completeOrder(explicit []Order, inequalities []value.FieldPath) []Order {
	descending := len(explicit) > 0 && explicit[len(explicit)-1].Descending
	full := slices.Clone(explicit)
	appendMissing := func(field value.FieldPath) {
		if slices.ContainsFunc(full, func(o Order) bool { return o.Field.Compare(field) == 0 }) {
			return
		}
		full = append(full, Order{Field: field, Descending: descending})
	}
	for _, field := range inequalities {
		if !field.IsName() {
			appendMissing(field)
		}
	}
	appendMissing(value.FieldPath{value.NameField})
	return full
}
