package query

import (
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// cursor is a position in the order of a query: just before, or just after, all
// documents whose first sort keys equal values.
type cursor struct {
	values []*pb.Value
	before bool
}

func compileCursor(database string, c *pb.Cursor, explicit []Order) (*cursor, error) {
	if c == nil {
		return nil, nil
	}
	if len(c.GetValues()) > len(explicit) {
		return nil, invalidf("Cursor has too many values.")
	}
	for i, v := range c.GetValues() {
		if err := value.ValidateOperand(v); err != nil {
			return nil, err
		}
		if !explicit[i].Field.IsName() {
			continue
		}
		reference, ok := v.GetValueType().(*pb.Value_ReferenceValue)
		if !ok {
			return nil, invalidf("Cursor %s value is not a document reference.", value.NameField)
		}
		if err := checkDatabase(database, reference.ReferenceValue); err != nil {
			return nil, err
		}
	}
	compiled := &cursor{before: c.GetBefore()}
	for _, v := range c.GetValues() {
		compiled.values = append(compiled.values, normalizeNested(v))
	}
	return compiled, nil
}

// isPast reports whether the document is behind the position of the cursor.
func (c *cursor) isPast(doc *pb.Document, orders []Order) bool {
	for i, v := range c.values {
		if cmp := c.compareKey(doc, orders[i], v); cmp != 0 {
			return cmp > 0
		}
	}
	return c.before
}

// compareKey compares a sort key of the document with the cursor's value.
func (c *cursor) compareKey(doc *pb.Document, order Order, v *pb.Value) int {
	if order.Field.IsName() {
		return order.directed(value.CompareNameStrings(doc.GetName(), v.GetReferenceValue()))
	}
	return order.compareValues(value.Get(doc.GetFields(), order.Field), v)
}
