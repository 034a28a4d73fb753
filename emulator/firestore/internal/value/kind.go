package value

import (
	"math"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

// Kind is the type class of a value. Kinds are ordered like values of different types
// in Firestore. Integers and doubles share KindNumber. NaN is a kind of its own: it
// sorts before every number, and no range filter on a number matches it.
type Kind int

// The type classes in ascending order. KindInvalid is a value without a type, which no
// valid document has.
const (
	KindInvalid Kind = iota
	KindNull
	KindBool
	KindNaN
	KindNumber
	KindTimestamp
	KindString
	KindBytes
	KindReference
	KindGeoPoint
	KindArray
	KindVector
	KindMap
)

const (
	typeKey    = "__type__"
	vectorType = "__vector__"
	vectorKey  = "value"
)

// KindOf returns the type class of v; nil is KindInvalid.
func KindOf(v *pb.Value) Kind {
	switch t := v.GetValueType().(type) {
	case *pb.Value_NullValue:
		return KindNull
	case *pb.Value_BooleanValue:
		return KindBool
	case *pb.Value_IntegerValue:
		return KindNumber
	case *pb.Value_DoubleValue:
		if math.IsNaN(t.DoubleValue) {
			return KindNaN
		}
		return KindNumber
	case *pb.Value_TimestampValue:
		return KindTimestamp
	case *pb.Value_StringValue:
		return KindString
	case *pb.Value_BytesValue:
		return KindBytes
	case *pb.Value_ReferenceValue:
		return KindReference
	case *pb.Value_GeoPointValue:
		return KindGeoPoint
	case *pb.Value_ArrayValue:
		return KindArray
	case *pb.Value_MapValue:
		if isVector(t.MapValue) {
			return KindVector
		}
		return KindMap
	default:
		return KindInvalid
	}
}

// isVector reports whether m is the encoding of a vector:
// {__type__: "__vector__", value: [doubles]}.
func isVector(m *pb.MapValue) bool {
	return m.GetFields()[typeKey].GetStringValue() == vectorType
}

func vectorElements(v *pb.Value) []*pb.Value {
	return v.GetMapValue().GetFields()[vectorKey].GetArrayValue().GetValues()
}
