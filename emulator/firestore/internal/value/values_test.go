package value

import (
	"math"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/genproto/googleapis/type/latlng"
	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"
)

const testRoot = "projects/p/databases/(default)/documents"

func boolean(b bool) *pb.Value { return &pb.Value{ValueType: &pb.Value_BooleanValue{BooleanValue: b}} }
func integer(i int64) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_IntegerValue{IntegerValue: i}}
}
func double(f float64) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_DoubleValue{DoubleValue: f}}
}
func text(s string) *pb.Value { return &pb.Value{ValueType: &pb.Value_StringValue{StringValue: s}} }
func blob(s string) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_BytesValue{BytesValue: []byte(s)}}
}
func reference(path string) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_ReferenceValue{ReferenceValue: testRoot + "/" + path}}
}
func instant(seconds int64, nanos int32) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: &timestamppb.Timestamp{Seconds: seconds, Nanos: nanos}}}
}
func geoPoint(lat, lng float64) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_GeoPointValue{GeoPointValue: &latlng.LatLng{Latitude: lat, Longitude: lng}}}
}
func array(values ...*pb.Value) *pb.Value { return arrayValue(values) }

type fields = map[string]*pb.Value

func vector(elements ...float64) *pb.Value {
	values := make([]*pb.Value, len(elements))
	for i, e := range elements {
		values[i] = double(e)
	}
	return mapValue(fields{typeKey: text(vectorType), vectorKey: arrayValue(values)})
}

// nested wraps v in depth alternating maps and arrays.
func nested(depth int, v *pb.Value) *pb.Value {
	for i := range depth {
		if i%2 == 0 {
			v = mapValue(fields{"a": v})
		} else {
			v = array(v)
		}
	}
	return v
}

// anyValue generates values of every type. Many are near each other where order and
// equality are delicate: numbers at the limits of exactness, small ids and keys.
func anyValue(depth int) *rapid.Generator[*pb.Value] {
	scalars := []*rapid.Generator[*pb.Value]{
		rapid.Just(nullValue()),
		rapid.Map(rapid.Bool(), boolean),
		rapid.Map(rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 1, 2, 1 << 53, 1<<53 + 1, math.MaxInt64 - 1, math.MaxInt64}), integer),
		rapid.Map(rapid.Int64(), integer),
		rapid.Map(rapid.SampledFrom([]float64{
			math.NaN(), math.Inf(-1), math.Inf(1), math.Copysign(0, -1), 0, 0.5, 1, 1.5, 2, 1 << 53, 1<<53 + 2, 1 << 63, -1 << 63, math.SmallestNonzeroFloat64,
		}), double),
		rapid.Map(rapid.Float64(), double),
		rapid.Custom(func(t *rapid.T) *pb.Value {
			return instant(rapid.Int64Range(-2, 2).Draw(t, "seconds"), rapid.Int32Range(0, 3).Draw(t, "nanos"))
		}),
		rapid.Map(rapid.StringMatching(`[ab\x{e9}\x{1f600}]{0,2}`), text),
		rapid.Map(rapid.StringMatching(`[ab]{0,2}`), blob),
		rapid.Map(rapid.SampledFrom([]string{"a/b", "a/bc", "a/b/c/d", "a/__id7__", "a/__id12__", "a/__id-3__", "a/____", "a/B"}), reference),
		rapid.Custom(func(t *rapid.T) *pb.Value {
			return geoPoint(rapid.Float64Range(-1, 1).Draw(t, "latitude"), rapid.Float64Range(-1, 1).Draw(t, "longitude"))
		}),
		rapid.Map(rapid.SliceOfN(rapid.Float64Range(-1, 1), 1, 2), func(e []float64) *pb.Value { return vector(e...) }),
	}
	if depth == 0 {
		return rapid.OneOf(scalars...)
	}
	inner := rapid.Deferred(func() *rapid.Generator[*pb.Value] { return anyValue(depth - 1) })
	return rapid.OneOf(append(scalars,
		rapid.Map(rapid.SliceOfN(inner, 0, 2), arrayValue),
		rapid.Map(rapid.MapOfN(rapid.StringMatching(`[ab]{1,2}`), inner, 0, 2), mapValue),
	)...)
}
