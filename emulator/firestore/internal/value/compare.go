package value

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/genproto/googleapis/type/latlng"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Compare compares two values in the order of Firestore's indexes. It is negative if
// a sorts before b, and 0 if an equality filter does not distinguish them. Integers
// and doubles are compared by exact numeric value; 0 equals -0, and all NaNs are
// equal. It is a total order.
//
// Source: https://firebase.google.com/docs/firestore/manage-data/data-types
func Compare(a, b *pb.Value) int {
	kind := KindOf(a)
	if c := cmp.Compare(kind, KindOf(b)); c != 0 {
		return c
	}
	switch kind {
	case KindBool:
		return compareBools(a.GetBooleanValue(), b.GetBooleanValue())
	case KindNumber:
		return compareNumbers(a, b)
	case KindTimestamp:
		return compareTimestamps(a.GetTimestampValue(), b.GetTimestampValue())
	case KindString:
		return strings.Compare(a.GetStringValue(), b.GetStringValue())
	case KindBytes:
		return bytes.Compare(a.GetBytesValue(), b.GetBytesValue())
	case KindReference:
		return CompareNameStrings(a.GetReferenceValue(), b.GetReferenceValue())
	case KindGeoPoint:
		return compareGeoPoints(a.GetGeoPointValue(), b.GetGeoPointValue())
	case KindArray:
		return slices.CompareFunc(a.GetArrayValue().GetValues(), b.GetArrayValue().GetValues(), Compare)
	case KindVector:
		return compareVectors(vectorElements(a), vectorElements(b))
	case KindMap:
		return compareMaps(a.GetMapValue().GetFields(), b.GetMapValue().GetFields())
	default: // null, NaN and values without a type are equal to themselves
		return 0
	}
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// compareNumbers compares two non-NaN numbers without rounding. A double cannot
// represent 1<<53 + 1, an integer can.
func compareNumbers(a, b *pb.Value) int {
	x, xIsInt := a.GetValueType().(*pb.Value_IntegerValue)
	y, yIsInt := b.GetValueType().(*pb.Value_IntegerValue)
	switch {
	case xIsInt && yIsInt:
		return cmp.Compare(x.IntegerValue, y.IntegerValue)
	case xIsInt:
		return compareIntDouble(x.IntegerValue, b.GetDoubleValue())
	case yIsInt:
		return -compareIntDouble(y.IntegerValue, a.GetDoubleValue())
	default:
		return cmp.Compare(a.GetDoubleValue(), b.GetDoubleValue())
	}
}

func compareIntDouble(i int64, d float64) int {
	const twoTo63 = 1 << 63
	switch {
	case d >= twoTo63:
		return -1
	case d < -twoTo63:
		return 1
	}
	whole := math.Trunc(d)
	if c := cmp.Compare(i, int64(whole)); c != 0 {
		return c
	}
	return cmp.Compare(0, d-whole)
}

func compareTimestamps(a, b *timestamppb.Timestamp) int {
	return cmp.Or(
		cmp.Compare(a.GetSeconds(), b.GetSeconds()),
		cmp.Compare(a.GetNanos(), b.GetNanos()),
	)
}

func compareGeoPoints(a, b *latlng.LatLng) int {
	return cmp.Or(
		cmp.Compare(a.GetLatitude(), b.GetLatitude()),
		cmp.Compare(a.GetLongitude(), b.GetLongitude()),
	)
}

// compareVectors compares the dimension first, then element by element.
func compareVectors(a, b []*pb.Value) int {
	return cmp.Or(
		cmp.Compare(len(a), len(b)),
		slices.CompareFunc(a, b, Compare),
	)
}

// compareMaps compares the maps entry by entry in key order, by key and then by value.
// If all are equal, the smaller map sorts first.
func compareMaps(a, b map[string]*pb.Value) int {
	aKeys := slices.Sorted(maps.Keys(a))
	bKeys := slices.Sorted(maps.Keys(b))
	for i := range min(len(aKeys), len(bKeys)) {
		if c := strings.Compare(aKeys[i], bKeys[i]); c != 0 {
			return c
		}
		if c := Compare(a[aKeys[i]], b[bKeys[i]]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(aKeys), len(bKeys))
}
