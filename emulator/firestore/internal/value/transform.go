package value

import (
	"math"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// MaxTransforms bounds the field transforms on one document in one commit.
const MaxTransforms = 500

type fieldTransform = pb.DocumentTransform_FieldTransform

// CheckTransformCount refuses more than MaxTransforms on one document, counted over
// all writes of a commit.
func CheckTransformCount(n int) error {
	if n > MaxTransforms {
		return invalidf("A document cannot have more than %d field transforms in one commit.", MaxTransforms)
	}
	return nil
}

// ValidateTransforms checks the transforms of a write: their number, field paths and
// operands, and that no field is inside another. The same field can be transformed
// twice.
func ValidateTransforms(transforms []*fieldTransform) error {
	if err := CheckTransformCount(len(transforms)); err != nil {
		return err
	}
	paths := make([]FieldPath, len(transforms))
	for i, t := range transforms {
		path, err := ParseWritePath(t.GetFieldPath())
		if err != nil {
			return err
		}
		if err := checkTransform(t); err != nil {
			return err
		}
		paths[i] = path
	}
	for _, outer := range paths {
		for _, inner := range paths {
			if len(outer) < len(inner) && outer.isPrefixOf(inner) {
				return invalidf("Cannot transform property %s and its nested property at the same time.", outer)
			}
		}
	}
	return nil
}

// ApplyTransform applies a field transform to old, which is the value of the field
// after all earlier writes and transforms, nil if absent. next is the new value, and
// result is the entry in transform_results: next, or null for the array operations.
// requestTime is when the request arrived; it is stored with millisecond precision.
// old is not changed.
//
// Source: the comments on DocumentTransform.FieldTransform in google/firestore/v1/write.proto.
func ApplyTransform(old *pb.Value, t *fieldTransform, requestTime time.Time) (next, result *pb.Value, err error) {
	if err := checkTransform(t); err != nil {
		return nil, nil, err
	}
	switch op := t.GetTransformType().(type) {
	case *fieldTransformServerValue:
		stamp := floorTimestamp(timestamppb.New(requestTime), time.Millisecond)
		next = &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: stamp}}
	case *fieldTransformIncrement:
		next = increment(old, op.Increment)
	case *fieldTransformMaximum:
		next = extreme(old, op.Maximum, 1)
	case *fieldTransformMinimum:
		next = extreme(old, op.Minimum, -1)
	case *fieldTransformAppend:
		return union(old, op.AppendMissingElements.GetValues()), nullValue(), nil
	case *fieldTransformRemove:
		return remove(old, op.RemoveAllFromArray.GetValues()), nullValue(), nil
	}
	next = Normalize(next)
	return next, next, nil
}

type (
	fieldTransformServerValue = pb.DocumentTransform_FieldTransform_SetToServerValue
	fieldTransformIncrement   = pb.DocumentTransform_FieldTransform_Increment
	fieldTransformMaximum     = pb.DocumentTransform_FieldTransform_Maximum
	fieldTransformMinimum     = pb.DocumentTransform_FieldTransform_Minimum
	fieldTransformAppend      = pb.DocumentTransform_FieldTransform_AppendMissingElements
	fieldTransformRemove      = pb.DocumentTransform_FieldTransform_RemoveAllFromArray
)

func checkTransform(t *fieldTransform) error {
	switch op := t.GetTransformType().(type) {
	case nil:
		return invalidf("Operation type must be specified for field transformation.")
	case *fieldTransformServerValue:
		if op.SetToServerValue != pb.DocumentTransform_FieldTransform_REQUEST_TIME {
			return invalidf("ServerValue type must be specified for set_to_server_value transformation.")
		}
		return nil
	case *fieldTransformIncrement:
		return checkNumber(op.Increment)
	case *fieldTransformMaximum:
		return checkNumber(op.Maximum)
	case *fieldTransformMinimum:
		return checkNumber(op.Minimum)
	case *fieldTransformAppend:
		return valueValidator{property: t.GetFieldPath()}.array(op.AppendMissingElements, 1)
	case *fieldTransformRemove:
		return valueValidator{property: t.GetFieldPath()}.array(op.RemoveAllFromArray, 1)
	default:
		return unimplemented("field transform")
	}
}

func checkNumber(v *pb.Value) error {
	if v.GetValueType() == nil {
		return invalidf("Cannot convert firestore.v1.Value with type unset.")
	}
	if !isNumeric(v) {
		return invalidf("Input must be int64 or double.")
	}
	return nil
}

// isNumeric reports whether v is an integer or a double, NaN included.
func isNumeric(v *pb.Value) bool {
	kind := KindOf(v)
	return kind == KindNumber || kind == KindNaN
}

// increment adds two numbers. Two integers saturate at the limits of int64, otherwise
// the sum is a double. If old is not a number, the result is by.
func increment(old, by *pb.Value) *pb.Value {
	if !isNumeric(old) {
		return by
	}
	x, xIsInt := old.GetValueType().(*pb.Value_IntegerValue)
	y, yIsInt := by.GetValueType().(*pb.Value_IntegerValue)
	if xIsInt && yIsInt {
		return &pb.Value{ValueType: &pb.Value_IntegerValue{IntegerValue: addSaturating(x.IntegerValue, y.IntegerValue)}}
	}
	return &pb.Value{ValueType: &pb.Value_DoubleValue{DoubleValue: asDouble(old) + asDouble(by)}}
}

func addSaturating(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	default:
		return a + b
	}
}

func asDouble(v *pb.Value) float64 {
	if i, ok := v.GetValueType().(*pb.Value_IntegerValue); ok {
		return float64(i.IntegerValue)
	}
	return v.GetDoubleValue()
}

// extreme returns the larger (sign 1) or smaller (sign -1) of two numbers. If they are
// equal it returns old. NaN is both larger and smaller than any number. If old is not
// a number, the result is operand.
func extreme(old, operand *pb.Value, sign int) *pb.Value {
	switch {
	case !isNumeric(old):
		return operand
	case KindOf(old) == KindNaN:
		return old
	case KindOf(operand) == KindNaN, sign*Compare(operand, old) > 0:
		return operand
	default:
		return old
	}
}

// union appends each element that no present one equals by Compare.
func union(old *pb.Value, elements []*pb.Value) *pb.Value {
	present := old.GetArrayValue().GetValues()
	values := append(make([]*pb.Value, 0, len(present)+len(elements)), present...)
	for _, element := range elements {
		if element = Normalize(element); !containsSame(values, element) {
			values = append(values, element)
		}
	}
	return arrayValue(values)
}

// remove removes all values that equal one of the elements by Compare.
func remove(old *pb.Value, elements []*pb.Value) *pb.Value {
	elements, _ = normalizeElements(elements)
	var values []*pb.Value
	for _, v := range old.GetArrayValue().GetValues() {
		if !containsSame(elements, v) {
			values = append(values, v)
		}
	}
	return arrayValue(values)
}

func containsSame(values []*pb.Value, v *pb.Value) bool {
	for _, candidate := range values {
		if Compare(candidate, v) == 0 {
			return true
		}
	}
	return false
}

func nullValue() *pb.Value {
	return &pb.Value{ValueType: &pb.Value_NullValue{NullValue: structpb.NullValue_NULL_VALUE}}
}
