package value

import (
	"slices"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// NormalizeFields returns the fields in the form in which they are stored: timestamps
// at any depth are floored to microseconds. Maps without changes are returned as they
// are. Nothing is changed in place.
func NormalizeFields(fields map[string]*pb.Value) map[string]*pb.Value {
	normal, _ := normalizeFields(fields)
	return normal
}

// Normalize is NormalizeFields for one value.
func Normalize(v *pb.Value) *pb.Value {
	switch t := v.GetValueType().(type) {
	case *pb.Value_TimestampValue:
		if floored := floorTimestamp(t.TimestampValue, time.Microsecond); floored != t.TimestampValue {
			return &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: floored}}
		}
	case *pb.Value_ArrayValue:
		if values, changed := normalizeElements(t.ArrayValue.GetValues()); changed {
			return arrayValue(values)
		}
	case *pb.Value_MapValue:
		if fields, changed := normalizeFields(t.MapValue.GetFields()); changed {
			return mapValue(fields)
		}
	}
	return v
}

func normalizeFields(fields map[string]*pb.Value) (normal map[string]*pb.Value, changed bool) {
	normal = fields
	for name, v := range fields {
		n := Normalize(v)
		if n == v {
			continue
		}
		if !changed {
			normal, changed = cloneFields(fields), true
		}
		normal[name] = n
	}
	return normal, changed
}

func normalizeElements(values []*pb.Value) (normal []*pb.Value, changed bool) {
	normal = values
	for i, v := range values {
		n := Normalize(v)
		if n == v {
			continue
		}
		if !changed {
			normal, changed = slices.Clone(values), true
		}
		normal[i] = n
	}
	return normal, changed
}

// floorTimestamp floors t to a multiple of unit, which must divide a second. If t is
// one, it returns t itself.
func floorTimestamp(t *timestamppb.Timestamp, unit time.Duration) *timestamppb.Timestamp {
	excess := t.GetNanos() % int32(unit)
	if excess == 0 {
		return t
	}
	return &timestamppb.Timestamp{Seconds: t.GetSeconds(), Nanos: t.GetNanos() - excess}
}

func arrayValue(values []*pb.Value) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_ArrayValue{ArrayValue: &pb.ArrayValue{Values: values}}}
}
