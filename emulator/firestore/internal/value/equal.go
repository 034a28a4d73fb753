package value

import (
	"maps"
	"math"
	"slices"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

// Equal reports whether replacing a by b changes nothing. It is stricter than
// Compare(a, b) == 0: at any depth, the integer 1 and the double 1.0 are different,
// and so are 0.0 and -0.0. NaN equals NaN.
func Equal(a, b *pb.Value) bool {
	switch x := a.GetValueType().(type) {
	case *pb.Value_IntegerValue:
		y, ok := b.GetValueType().(*pb.Value_IntegerValue)
		return ok && x.IntegerValue == y.IntegerValue
	case *pb.Value_DoubleValue:
		y, ok := b.GetValueType().(*pb.Value_DoubleValue)
		return ok && equalDoubles(x.DoubleValue, y.DoubleValue)
	case *pb.Value_ArrayValue:
		y, ok := b.GetValueType().(*pb.Value_ArrayValue)
		return ok && slices.EqualFunc(x.ArrayValue.GetValues(), y.ArrayValue.GetValues(), Equal)
	case *pb.Value_MapValue:
		y, ok := b.GetValueType().(*pb.Value_MapValue)
		return ok && EqualFields(x.MapValue.GetFields(), y.MapValue.GetFields())
	default:
		return Compare(a, b) == 0
	}
}

// EqualFields reports whether the fields of two documents are Equal.
func EqualFields(a, b map[string]*pb.Value) bool {
	return maps.EqualFunc(a, b, Equal)
}

func equalDoubles(a, b float64) bool {
	return a == b && math.Signbit(a) == math.Signbit(b) || math.IsNaN(a) && math.IsNaN(b)
}
