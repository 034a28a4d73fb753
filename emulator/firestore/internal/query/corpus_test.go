package query

import (
	"math"
	"slices"
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/genproto/googleapis/type/latlng"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const testRoot = "projects/p/databases/(default)/documents"

var (
	null    = &pb.Value{ValueType: &pb.Value_NullValue{NullValue: structpb.NullValue_NULL_VALUE}}
	nan     = doubleValue(math.NaN())
	instant = &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: &timestamppb.Timestamp{Seconds: 1}}}
	place   = &pb.Value{ValueType: &pb.Value_GeoPointValue{GeoPointValue: &latlng.LatLng{Latitude: 1}}}
)

func text(s string) *pb.Value { return &pb.Value{ValueType: &pb.Value_StringValue{StringValue: s}} }
func boolean(b bool) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_BooleanValue{BooleanValue: b}}
}
func reference(path string) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_ReferenceValue{ReferenceValue: testRoot + "/" + path}}
}
func array(values ...*pb.Value) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_ArrayValue{ArrayValue: &pb.ArrayValue{Values: values}}}
}
func mapping(key string, v *pb.Value) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_MapValue{MapValue: &pb.MapValue{Fields: map[string]*pb.Value{key: v}}}}
}
func vector(elements ...*pb.Value) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_MapValue{MapValue: &pb.MapValue{Fields: map[string]*pb.Value{
		"__type__": text("__vector__"), "value": array(elements...),
	}}}}
}

func document(path string, keysAndValues ...any) *pb.Document {
	doc := &pb.Document{Name: testRoot + "/" + path, Fields: map[string]*pb.Value{}}
	for i := 0; i < len(keysAndValues); i += 2 {
		doc.Fields[keysAndValues[i].(string)] = keysAndValues[i+1].(*pb.Value)
	}
	return doc
}

// types has documents with different types in field v, in the order of values;
// "absent" has no v.
var types = []*pb.Document{
	document("c/absent", "w", intValue(1)),
	document("c/null", "v", null),
	document("c/false", "v", boolean(false)),
	document("c/true", "v", boolean(true)),
	document("c/nan", "v", nan),
	document("c/1", "v", intValue(1), "w", intValue(1)),
	document("c/1.0", "v", doubleValue(1), "w", intValue(2)),
	document("c/1.5", "v", doubleValue(1.5)),
	document("c/2", "v", intValue(2), "w", intValue(3)),
	document("c/time", "v", instant),
	document("c/a", "v", text("a")),
	document("c/b", "v", text("b")),
	document("c/ref", "v", reference("c/x")),
	document("c/geo", "v", place),
	document("c/[1 2]", "v", array(intValue(1), intValue(2))),
	document("c/[nan]", "v", array(nan)),
	document("c/vector", "v", vector(doubleValue(1))),
	document("c/map", "v", mapping("k", intValue(1))),
}

// ids runs the query over docs like a server and lists the ids of the results.
func ids(p *Plan, docs []*pb.Document) []string {
	var matching []*pb.Document
	for _, doc := range docs {
		if p.Matches(doc) {
			matching = append(matching, doc)
		}
	}
	p.Sort(matching)
	names := []string{}
	for _, doc := range p.Page(matching) {
		names = append(names, strings.TrimPrefix(doc.GetName(), testRoot+"/c/"))
	}
	return names
}

// Builders of protocol queries.

type structured = pb.StructuredQuery

func fieldFilter(field, op string, operand *pb.Value) *pb.StructuredQuery_Filter {
	return &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_FieldFilter{FieldFilter: &pb.StructuredQuery_FieldFilter{
		Field: fieldRef(field),
		Op:    pb.StructuredQuery_FieldFilter_Operator(pb.StructuredQuery_FieldFilter_Operator_value[op]),
		Value: operand,
	}}}
}

func unaryFilter(field, op string) *pb.StructuredQuery_Filter {
	return &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_UnaryFilter{UnaryFilter: &pb.StructuredQuery_UnaryFilter{
		OperandType: &pb.StructuredQuery_UnaryFilter_Field{Field: fieldRef(field)},
		Op:          pb.StructuredQuery_UnaryFilter_Operator(pb.StructuredQuery_UnaryFilter_Operator_value[op]),
	}}}
}

func composite(op pb.StructuredQuery_CompositeFilter_Operator, filters ...*pb.StructuredQuery_Filter) *pb.StructuredQuery_Filter {
	return &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_CompositeFilter{CompositeFilter: &pb.StructuredQuery_CompositeFilter{
		Op: op, Filters: filters,
	}}}
}

func and(filters ...*pb.StructuredQuery_Filter) *pb.StructuredQuery_Filter {
	return composite(pb.StructuredQuery_CompositeFilter_AND, filters...)
}

func or(filters ...*pb.StructuredQuery_Filter) *pb.StructuredQuery_Filter {
	return composite(pb.StructuredQuery_CompositeFilter_OR, filters...)
}

func fieldRef(path string) *pb.StructuredQuery_FieldReference {
	return &pb.StructuredQuery_FieldReference{FieldPath: path}
}

// on builds a query of collection c. where may be nil. A leading minus makes an order
// descending.
func on(where *pb.StructuredQuery_Filter, orders ...string) *structured {
	q := &structured{From: []*pb.StructuredQuery_CollectionSelector{{CollectionId: "c"}}, Where: where}
	for _, field := range orders {
		o := &pb.StructuredQuery_Order{Field: fieldRef(strings.TrimPrefix(field, "-")), Direction: pb.StructuredQuery_ASCENDING}
		if strings.HasPrefix(field, "-") {
			o.Direction = pb.StructuredQuery_DESCENDING
		}
		q.OrderBy = append(q.OrderBy, o)
	}
	return q
}

func with(q *structured, change func(*structured)) *structured {
	change(q)
	return q
}

func limit(n int32) func(*structured) {
	return func(q *structured) { q.Limit = wrapperspb.Int32(n) }
}

func startAt(before bool, values ...*pb.Value) func(*structured) {
	return func(q *structured) { q.StartAt = &pb.Cursor{Values: values, Before: before} }
}

func endAt(before bool, values ...*pb.Value) func(*structured) {
	return func(q *structured) { q.EndAt = &pb.Cursor{Values: values, Before: before} }
}

func mustCompile(t testing.TB, q *structured) *Plan {
	t.Helper()
	p, err := Compile(testRoot, q)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sorted(names ...string) []string {
	names = append([]string{}, names...)
	slices.Sort(names)
	return names
}
