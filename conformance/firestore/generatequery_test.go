package conformance

import (
	"slices"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

// queryDrawing draws legal queries with results: most operands are values of existing
// documents.
type queryDrawing struct {
	drawing
	documents []*pb.Document

	longestList int
}

// operand draws a value to compare the field with.
func (d queryDrawing) operand(field string) *pb.Value {
	if field == "__name__" {
		return reference(d.name())
	}
	if d.chance("of a document", 75) {
		if v := fieldOf(rapid.SampledFrom(d.documents).Draw(d.T, "document"), field); v != nil {
			return v
		}
	}
	return d.drawing.value(1)
}

// fieldOf returns the value at a field path, nil if there is none. Of quoted
// segments it knows only those that are the whole path.
func fieldOf(doc *pb.Document, path string) *pb.Value {
	if name, quoted := strings.CutPrefix(path, "`"); quoted {
		return doc.GetFields()[strings.TrimSuffix(name, "`")]
	}
	var v *pb.Value
	fields := doc.GetFields()
	for name := range strings.SplitSeq(path, ".") {
		v = fields[name]
		fields = v.GetMapValue().GetFields()
	}
	return v
}

// element draws a value to search for in arrays.
func (d queryDrawing) element(field string) *pb.Value {
	if elements := d.operand(field).GetArrayValue().GetValues(); len(elements) > 0 {
		return rapid.SampledFrom(elements).Draw(d.T, "element")
	}
	return d.number()
}

// list draws so few alternatives that no filter expands to more than 30 conjunctions:
// see Deliberate, disjunctions written twice.
func (d queryDrawing) list(field string, draw func(string) *pb.Value) *pb.Value {
	var values []*pb.Value
	for range rapid.IntRange(1, d.longestList).Draw(d.T, "alternatives") {
		values = append(values, draw(field))
	}
	return array(values...)
}

func compare(field string, op pb.StructuredQuery_FieldFilter_Operator, operand *pb.Value) *pb.StructuredQuery_Filter {
	return &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_FieldFilter{FieldFilter: &pb.StructuredQuery_FieldFilter{
		Field: fieldRef(field), Op: op, Value: operand,
	}}}
}

func isOf(field string, op pb.StructuredQuery_UnaryFilter_Operator) *pb.StructuredQuery_Filter {
	return &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_UnaryFilter{UnaryFilter: &pb.StructuredQuery_UnaryFilter{
		OperandType: &pb.StructuredQuery_UnaryFilter_Field{Field: fieldRef(field)}, Op: op,
	}}}
}

func composite(op pb.StructuredQuery_CompositeFilter_Operator, filters []*pb.StructuredQuery_Filter) *pb.StructuredQuery_Filter {
	if len(filters) == 1 {
		return filters[0]
	}
	return &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_CompositeFilter{CompositeFilter: &pb.StructuredQuery_CompositeFilter{
		Op: op, Filters: filters,
	}}}
}

// conjunction draws filters that are legal together, and returns the fields of the
// inequalities.
func (d queryDrawing) conjunction(most int) (filters []*pb.StructuredQuery_Filter, inequalities []string) {
	for range rapid.IntRange(1, most).Draw(d.T, "filters") {
		field := d.field()
		switch d.pick("comparison", "range", "range", "equal", "in", "is") {
		case "range":
			op := pb.StructuredQuery_FieldFilter_Operator(rapid.IntRange(1, 4).Draw(d.T, "range operator"))
			filters = append(filters, compare(field, op, d.operand(field)))
			inequalities = append(inequalities, field)
		case "equal":
			filters = append(filters, compare(field, pb.StructuredQuery_FieldFilter_EQUAL, d.operand(field)))
		case "in":
			filters = append(filters, compare(field, pb.StructuredQuery_FieldFilter_IN, d.list(field, d.operand)))
		case "is":
			filters = append(filters, isOf(field, rapid.SampledFrom([]pb.StructuredQuery_UnaryFilter_Operator{
				pb.StructuredQuery_UnaryFilter_IS_NULL, pb.StructuredQuery_UnaryFilter_IS_NAN,
			}).Draw(d.T, "is")))
		}
	}
	if d.chance("contains", 20) {
		filters = append(filters, d.arrayContains())
	}
	return filters, inequalities
}

func (d queryDrawing) arrayContains() *pb.StructuredQuery_Filter {
	if d.chance("any", 50) {
		return compare("t", pb.StructuredQuery_FieldFilter_ARRAY_CONTAINS_ANY, d.list("t", d.element))
	}
	return compare("t", pb.StructuredQuery_FieldFilter_ARRAY_CONTAINS, d.element("t"))
}

// filter draws a legal filter and returns the fields of its inequalities.
func (d queryDrawing) filter() (filter *pb.StructuredQuery_Filter, inequalities []string) {
	switch d.pick("filter", "and", "and", "or", "negation", "name", "contains") {
	case "and":
		filters, inequalities := d.conjunction(2)
		return composite(pb.StructuredQuery_CompositeFilter_AND, filters), inequalities
	case "or":
		d.longestList = 2
		var alternatives []*pb.StructuredQuery_Filter
		for range rapid.IntRange(2, 3).Draw(d.T, "alternatives") {
			filters, compared := d.conjunction(2)
			alternatives = append(alternatives, composite(pb.StructuredQuery_CompositeFilter_AND, filters))
			inequalities = append(inequalities, compared...)
		}
		return composite(pb.StructuredQuery_CompositeFilter_OR, alternatives), inequalities
	case "negation":
		field := d.field()
		switch d.pick("negation", "not equal", "not in", "is not null", "is not NaN") {
		case "not equal":
			filter = compare(field, pb.StructuredQuery_FieldFilter_NOT_EQUAL, d.operand(field))
		case "not in":
			filter = compare(field, pb.StructuredQuery_FieldFilter_NOT_IN, d.list(field, d.operand))
		case "is not null":
			filter = isOf(field, pb.StructuredQuery_UnaryFilter_IS_NOT_NULL)
		case "is not NaN":
			filter = isOf(field, pb.StructuredQuery_UnaryFilter_IS_NOT_NAN)
		}
		return filter, []string{field}
	case "name":
		op := pb.StructuredQuery_FieldFilter_Operator(rapid.IntRange(1, 6).Draw(d.T, "name operator"))
		return compare("__name__", op, d.operand("__name__")), nil
	default:
		return d.arrayContains(), nil
	}
}

func order(field string, direction pb.StructuredQuery_Direction) *pb.StructuredQuery_Order {
	return &pb.StructuredQuery_Order{Field: fieldRef(field), Direction: direction}
}

// structured draws a legal query of top-level collections or a collection group.
func (d queryDrawing) structured() *pb.StructuredQuery {
	q := &pb.StructuredQuery{From: []*pb.StructuredQuery_CollectionSelector{{CollectionId: "c"}}}
	if d.chance("group", 20) {
		q.From[0] = &pb.StructuredQuery_CollectionSelector{CollectionId: d.pick("group", "s", "c"), AllDescendants: true}
	}
	var inequalities []string
	if d.chance("filtered", 75) {
		q.Where, inequalities = d.filter()
	}
	direction := rapid.SampledFrom([]pb.StructuredQuery_Direction{pb.StructuredQuery_ASCENDING, pb.StructuredQuery_DESCENDING})
	ordered := rapid.SliceOfNDistinct(rapid.SampledFrom(fieldPaths), 0, 2, rapid.ID).Draw(d.T, "ordered")
	byName := d.chance("by name", 25)
	if byName { // after the name nothing may follow, so nothing may be implied
		ordered = append(ordered, inequalities...)
	}
	for i, field := range ordered {
		if !slices.Contains(ordered[:i], field) {
			q.OrderBy = append(q.OrderBy, order(field, direction.Draw(d.T, "direction")))
		}
	}
	if byName {
		last := pb.StructuredQuery_ASCENDING // see Deliberate: descending names
		if n := len(q.OrderBy); n > 0 {
			last = q.OrderBy[n-1].Direction
		}
		q.OrderBy = append(q.OrderBy, order("__name__", last))
	}
	if len(q.OrderBy) > 0 && d.chance("starts", 25) {
		q.StartAt = d.cursor(q)
	}
	if len(q.OrderBy) > 0 && d.chance("ends", 25) {
		q.EndAt = d.cursor(q)
	}
	if d.chance("offset", 15) {
		q.Offset = int32(rapid.IntRange(0, 3).Draw(d.T, "offset"))
	}
	if d.chance("limited", 30) {
		q.Limit = wrapperspb.Int32(int32(rapid.IntRange(0, 5).Draw(d.T, "limit")))
	}
	return q
}

func (d queryDrawing) cursor(q *pb.StructuredQuery) *pb.Cursor {
	c := &pb.Cursor{Before: rapid.Bool().Draw(d.T, "before")}
	for _, o := range q.OrderBy[:rapid.IntRange(1, len(q.OrderBy)).Draw(d.T, "cursor values")] {
		c.Values = append(c.Values, d.operand(o.GetField().GetFieldPath()))
	}
	return c
}

func (d queryDrawing) step() step {
	q := d.structured()
	if d.chance("aggregated", 25) {
		return aggregationStep(&pb.RunAggregationQueryRequest{Parent: d.root, QueryType: &pb.RunAggregationQueryRequest_StructuredAggregationQuery{
			StructuredAggregationQuery: &pb.StructuredAggregationQuery{
				QueryType:    &pb.StructuredAggregationQuery_StructuredQuery{StructuredQuery: q},
				Aggregations: d.aggregations(),
			},
		}}, readAt{})
	}
	q.Select = d.projection()
	return queryStep(&pb.RunQueryRequest{Parent: d.root, QueryType: &pb.RunQueryRequest_StructuredQuery{StructuredQuery: q}}, readAt{})
}
