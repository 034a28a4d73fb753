package query

import (
	"slices"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

const (
	maxInValues    = 30
	maxNotInValues = 10

	// maxOperandBytes is how much of a value an index holds.
	maxOperandBytes = 1500
)

// fieldOperator is what the operator of a FieldFilter compiles to. maxValues is the
// length of the longest list it takes, or 0 if the operand is one value.
type fieldOperator struct {
	op        operator
	maxValues int
}

var fieldOperators = map[pb.StructuredQuery_FieldFilter_Operator]fieldOperator{
	pb.StructuredQuery_FieldFilter_LESS_THAN:             {op: opLess},
	pb.StructuredQuery_FieldFilter_LESS_THAN_OR_EQUAL:    {op: opLessOrEqual},
	pb.StructuredQuery_FieldFilter_GREATER_THAN:          {op: opGreater},
	pb.StructuredQuery_FieldFilter_GREATER_THAN_OR_EQUAL: {op: opGreaterOrEqual},
	pb.StructuredQuery_FieldFilter_EQUAL:                 {op: opEqual},
	pb.StructuredQuery_FieldFilter_NOT_EQUAL:             {op: opNotEqual},
	pb.StructuredQuery_FieldFilter_ARRAY_CONTAINS:        {op: opArrayContains},
	pb.StructuredQuery_FieldFilter_IN:                    {op: opIn, maxValues: maxInValues},
	pb.StructuredQuery_FieldFilter_ARRAY_CONTAINS_ANY:    {op: opArrayContainsAny, maxValues: maxInValues},
	pb.StructuredQuery_FieldFilter_NOT_IN:                {op: opNotIn, maxValues: maxNotInValues},
}

var unaryOperators = map[pb.StructuredQuery_UnaryFilter_Operator]operator{
	pb.StructuredQuery_UnaryFilter_IS_NAN:      opIsNaN,
	pb.StructuredQuery_UnaryFilter_IS_NULL:     opIsNull,
	pb.StructuredQuery_UnaryFilter_IS_NOT_NAN:  opIsNotNaN,
	pb.StructuredQuery_UnaryFilter_IS_NOT_NULL: opIsNotNull,
}

// compileFilter compiles a filter of a query in a database.
func compileFilter(database string, f *pb.StructuredQuery_Filter) (*node, error) {
	switch t := f.GetFilterType().(type) {
	case *pb.StructuredQuery_Filter_CompositeFilter:
		return compileComposite(database, t.CompositeFilter)
	case *pb.StructuredQuery_Filter_FieldFilter:
		return compileField(database, t.FieldFilter)
	case *pb.StructuredQuery_Filter_UnaryFilter:
		return compileUnary(t.UnaryFilter)
	default:
		return nil, invalidf("Unknown Filter type.")
	}
}

func compileComposite(database string, f *pb.StructuredQuery_CompositeFilter) (*node, error) {
	n := &node{}
	switch f.GetOp() {
	case pb.StructuredQuery_CompositeFilter_AND:
	case pb.StructuredQuery_CompositeFilter_OR:
		n.isOr = true
		if len(f.GetFilters()) == 0 {
			return nil, invalidf("Composite filter must have at least one sub-filter.")
		}
	default:
		return nil, invalidf("Unsupported CompositeFilter operator.")
	}
	for _, filter := range f.GetFilters() {
		child, err := compileFilter(database, filter)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	return n, nil
}

func compileUnary(f *pb.StructuredQuery_UnaryFilter) (*node, error) {
	op, ok := unaryOperators[f.GetOp()]
	if !ok {
		return nil, invalidf("Unknown UnaryFilter operator.")
	}
	field, err := value.ParseFieldPath(f.GetField().GetFieldPath())
	if err != nil {
		return nil, err
	}
	if field.IsName() {
		return nil, errNameOperand()
	}
	return &node{leaf: &leaf{field: field, op: op}}, nil
}

func compileField(database string, f *pb.StructuredQuery_FieldFilter) (*node, error) {
	op, ok := fieldOperators[f.GetOp()]
	if !ok {
		return nil, invalidf("Unknown FieldFilter operator.")
	}
	field, err := value.ParseFieldPath(f.GetField().GetFieldPath())
	if err != nil {
		return nil, err
	}
	l := &leaf{field: field, op: op.op}
	operands := []*pb.Value{f.GetValue()}
	if op.maxValues > 0 {
		if operands, err = listOperand(f, op.maxValues); err != nil {
			return nil, err
		}
		for _, operand := range operands {
			l.list = append(l.list, value.Normalize(operand))
		}
	} else {
		l.operand = normalizeNested(f.GetValue())
	}
	for _, operand := range operands {
		if err := checkOperand(database, l, operand); err != nil {
			return nil, err
		}
	}
	if field.IsName() && op.op.isArrayContains() {
		return nil, invalidf("the name %s is reserved", value.NameField)
	}
	if op.op == opIn || op.op == opArrayContainsAny {
		l.alternatives = countDistinct(operands)
	}
	l.dropNulls()
	return &node{leaf: l}, nil
}

func listOperand(f *pb.StructuredQuery_FieldFilter, maxValues int) ([]*pb.Value, error) {
	array, ok := f.GetValue().GetValueType().(*pb.Value_ArrayValue)
	if !ok {
		return nil, invalidf("'%s' requires an ArrayValue.", f.GetOp())
	}
	values := array.ArrayValue.GetValues()
	switch {
	case len(values) == 0:
		return nil, invalidf("'%s' requires an non-empty ArrayValue.", f.GetOp())
	case len(values) > maxValues:
		return nil, invalidf("'%s' supports up to %d comparison values.", f.GetOp(), maxValues)
	}
	return values, nil
}

func checkOperand(database string, l *leaf, operand *pb.Value) error {
	if err := value.ValidateOperand(operand); err != nil {
		return err
	}
	if !l.field.IsName() {
		return checkOperandSize(l, operand)
	}
	reference, ok := operand.GetValueType().(*pb.Value_ReferenceValue)
	if !ok {
		return errNameOperand()
	}
	return checkDatabase(database, reference.ReferenceValue)
}

func checkOperandSize(l *leaf, operand *pb.Value) error {
	if value.Size(operand) <= maxOperandBytes {
		return nil
	}
	indexed := l.field.String()
	if l.op.isArrayContains() {
		indexed += "[*]"
	}
	return invalidf("value for %s is too large to be used in a query", indexed)
}

// normalizeNested floors timestamps inside arrays and maps to microseconds, like
// stored ones. A bare timestamp keeps its nanoseconds: it equals no stored value but
// sorts between them. Google's emulator does the same.
func normalizeNested(v *pb.Value) *pb.Value {
	if value.KindOf(v) == value.KindTimestamp {
		return v
	}
	return value.Normalize(v)
}

func errNameOperand() error {
	return invalidf("%s filter value must be a document reference", value.NameField)
}

// checkDatabase refuses a document name outside the database of the query.
func checkDatabase(database, reference string) error {
	name, err := value.ParseReference(reference)
	if err != nil {
		return err
	}
	if other := name.DatabaseName(); other != database {
		return invalidf("The request was for database '%s' but was attempting to access database '%s'", database, other)
	}
	return nil
}

// dropNulls handles null and NaN operands. A comparison with one matches nothing
// (clients use IS_NULL and IS_NAN to find them), a list of alternatives ignores
// them, and not-in with null matches nothing.
func (l *leaf) dropNulls() {
	switch l.op {
	case opIn, opArrayContainsAny:
		l.list = slices.DeleteFunc(slices.Clone(l.list), isNullOrNaN)
		l.never = len(l.list) == 0
	case opNotIn:
		ignored := isNullOrNaN
		if l.never = slices.ContainsFunc(l.list, isNull); l.never {
			ignored = isNull // what is left makes it an inequality
		}
		l.list = slices.DeleteFunc(slices.Clone(l.list), ignored)
	case opNotEqual:
		l.never = isNull(l.operand)
		if value.KindOf(l.operand) == value.KindNaN {
			l.op = opIsNotNull // NaN differs from every value, itself included
		}
	default:
		l.never = isNullOrNaN(l.operand)
	}
}

// countDistinct counts different values. 1 and 1.0 are different, and so are 0.0 and
// -0.0, although they match the same documents.
func countDistinct(values []*pb.Value) int {
	n := 0
	for i, v := range values {
		if !slices.ContainsFunc(values[:i], func(earlier *pb.Value) bool { return value.Equal(earlier, v) }) {
			n++
		}
	}
	return n
}

func isNull(v *pb.Value) bool { return value.KindOf(v) == value.KindNull }

func isNullOrNaN(v *pb.Value) bool { return isNull(v) || value.KindOf(v) == value.KindNaN }
