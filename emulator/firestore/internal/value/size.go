package value

import pb "cloud.google.com/go/firestore/apiv1/firestorepb"

// MaxDocumentBytes bounds the documentSize.
const MaxDocumentBytes = 1 << 20

// documentSize is the billed size of a document in bytes: its name, the names and
// values of its fields, and 32.
//
// Source: https://firebase.google.com/docs/firestore/storage-size
func documentSize(name Name, fields map[string]*pb.Value) int {
	const perDocument = 32
	return nameSize(name.Segments) + fieldsSize(fields) + perDocument
}

func nameSize(segments []string) int {
	const perName = 16
	size := perName
	for _, segment := range segments {
		size += len(segment) + 1
	}
	return size
}

func fieldsSize(fields map[string]*pb.Value) int {
	size := 0
	for name, v := range fields {
		size += len(name) + 1 + Size(v)
	}
	return size
}

// Size is the contribution of a value to the size of its document, in bytes.
func Size(v *pb.Value) int {
	switch t := v.GetValueType().(type) {
	case *pb.Value_NullValue, *pb.Value_BooleanValue:
		return 1
	case *pb.Value_IntegerValue, *pb.Value_DoubleValue, *pb.Value_TimestampValue:
		return 8
	case *pb.Value_GeoPointValue:
		return 16
	case *pb.Value_StringValue:
		return len(t.StringValue) + 1
	case *pb.Value_BytesValue:
		return len(t.BytesValue)
	case *pb.Value_ReferenceValue:
		if name, err := ParseReference(t.ReferenceValue); err == nil {
			return nameSize(name.Segments)
		}
		return len(t.ReferenceValue)
	case *pb.Value_ArrayValue:
		size := 0
		for _, element := range t.ArrayValue.GetValues() {
			size += Size(element)
		}
		return size
	case *pb.Value_MapValue:
		if isVector(t.MapValue) { // only its elements count
			return Size(t.MapValue.GetFields()[vectorKey])
		}
		return fieldsSize(t.MapValue.GetFields())
	default:
		return 0
	}
}
