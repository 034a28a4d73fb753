package conformance

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/genproto/googleapis/type/latlng"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// ownWords are requests that are refused with the same code and another text. The
// official texts refer to internals of the emulator.
var ownWords = map[string]bool{
	"commit: set, then create": true, "commit: delete, then update": true, "commit: delete, then delete what exists": true,
	"commit: update what is missing, then create": true, "write: no operation at all": true,
	"query: every collection, by descending name": true, "query: every collection, its last document": true, "query: every collection, by field": true,
}

// malformed are requests that both servers refuse with the same code and, except for
// ownWords, the same text.
func malformed() map[string]probe {
	m := map[string]probe{}
	write := func(what string, make func(*world) plannedWrite) {
		m["write: "+what] = func(ctx context.Context, w *world) outcome { return w.rawCommit(ctx, make(w)) }
	}
	ask := func(what string, q *pb.StructuredQuery) {
		m["query: "+what] = func(ctx context.Context, w *world) outcome { return w.query(ctx, queryOf(w, q)) }
	}
	filter := func(what string, f *pb.StructuredQuery_Filter) { ask(what, &pb.StructuredQuery{Where: f}) }

	// E-ER-01: names. Numeric ids are legal only in their shortest form and not for
	// zero; the official emulator calls the others reserved.
	for _, path := range []string{"", "/", "/c", "/c/", "/c/a/", "/c/a/s", "/c//x", "//x", "/c/.", "/../x", "/c/__x__", "/c/_____", "/__x__/a", "/__id7__/a", "/c/__id__", "/c/__id07__", "/c/__id0__", "/c/__id-0__", "/c/__id007__", "/c/__id-07__", "/c/__id9223372036854775808__"} {
		write("document "+path, func(w *world) plannedWrite { return set(w.root()+path, nil) })
		m["read: document "+path] = func(ctx context.Context, w *world) outcome {
			return w.batchGet(ctx, &pb.BatchGetDocumentsRequest{Documents: []string{w.root() + path}})
		}
	}
	for _, name := range []string{"", "c/a", "projects", "projects/p", "projects/p/databases", "projects/p/databases/d/c/a", "/projects/p/databases/d/documents/c/a"} {
		write("name "+name, func(*world) plannedWrite { return set(name, nil) })
	}
	write("long id", func(w *world) plannedWrite { return set(w.root()+"/c/"+strings.Repeat("x", 1501), nil) })

	m["write: long database id"] = func(ctx context.Context, w *world) outcome {
		database := "projects/p/databases/" + strings.Repeat("d", 101)
		_, err := w.rpc.Commit(ctx, &pb.CommitRequest{Database: database, Writes: []*pb.Write{set(database+"/documents/c/a", nil).write}})
		return failed(err)
	}

	// E-ER-01: fields and values
	for _, field := range []string{"", "__x__", "__name__", "_____", strings.Repeat("x", 1501)} {
		write("field "+field[:min(9, len(field))], func(w *world) plannedWrite { return set(w.root()+"/c/a", map[string]*pb.Value{field: integer(1)}) })
		write("inner field "+field[:min(9, len(field))], func(w *world) plannedWrite {
			return set(w.root()+"/c/a", map[string]*pb.Value{"m": mapping(map[string]*pb.Value{field: integer(1)})})
		})
	}
	deep := integer(1)
	for range 21 {
		deep = mapping(map[string]*pb.Value{"k": deep})
	}
	geo := func(lat, lng float64) *pb.Value {
		return &pb.Value{ValueType: &pb.Value_GeoPointValue{GeoPointValue: &latlng.LatLng{Latitude: lat, Longitude: lng}}}
	}
	for what, v := range map[string]*pb.Value{
		"untyped": {}, "untyped element": array(&pb.Value{}), "array in array": array(array()), "vector in array": array(vector(1)),
		"reference": reference("c/a"), "empty reference": reference(""), "latitude": geo(91, 0), "longitude": geo(0, -180.5),
		"long string": text(strings.Repeat("x", 1<<20-88)), "deep": deep, "empty vector": vector(), "long vector": vector(make([]float64, 2049)...),
		"vector of integers": mapping(map[string]*pb.Value{"__type__": text("__vector__"), "value": array(integer(1))}),
		"vector without":     mapping(map[string]*pb.Value{"__type__": text("__vector__")}),
		"vector with more":   mapping(map[string]*pb.Value{"__type__": text("__vector__"), "value": array(double(1)), "z": integer(1)}),
		"unknown type":       mapping(map[string]*pb.Value{"__type__": text("x")}),
		"field reference":    {ValueType: &pb.Value_FieldReferenceValue{FieldReferenceValue: "v"}},
	} {
		write("value "+what, func(w *world) plannedWrite { return set(w.root()+"/c/a", map[string]*pb.Value{"v": v}) })
	}

	// E-ER-01: field paths
	for _, path := range []string{"", "a.", ".a", "a..b", "1a", "a-b", "a b", "`a", "a`", "``", "`a`b", "`a\\.`", "`a\\x4`", "`a\\400`", "é", "*", "__x__", "a.__x__", strings.Repeat("a.", 20) + "a", strings.Repeat("x", 1501)} {
		short := path[:min(9, len(path))]
		write("masked "+short, func(w *world) plannedWrite {
			p := set(w.root()+"/c/a", nil)
			p.write.UpdateMask = &pb.DocumentMask{FieldPaths: []string{path}}
			return p
		})
		if len(path) < 40 { // see Deliberate: long paths in transforms
			write("transformed "+short, func(w *world) plannedWrite { return transformOf(w.root()+"/c/a", incrementOf(path)) })
		}
		ask("ordered by "+short, &pb.StructuredQuery{OrderBy: []*pb.StructuredQuery_Order{order(path, pb.StructuredQuery_ASCENDING)}})
		filter("compared "+short, compare(path, pb.StructuredQuery_FieldFilter_EQUAL, integer(1)))
		ask("projected "+short, &pb.StructuredQuery{Select: &pb.StructuredQuery_Projection{Fields: []*pb.StructuredQuery_FieldReference{fieldRef(path)}}})
	}

	// E-WR-03: preconditions
	write("version of nanoseconds", func(w *world) plannedWrite {
		p := set(w.root()+"/c/a", nil)
		p.write.CurrentDocument = &pb.Precondition{ConditionType: &pb.Precondition_UpdateTime{UpdateTime: &timestamppb.Timestamp{Seconds: 1, Nanos: 1}}}
		return p
	})

	// E-WR-06: transforms
	write("no operation", func(w *world) plannedWrite {
		return transformOf(w.root()+"/c/a", &pb.DocumentTransform_FieldTransform{FieldPath: "v"})
	})
	write("no server value", func(w *world) plannedWrite {
		return transformOf(w.root()+"/c/a", &pb.DocumentTransform_FieldTransform{FieldPath: "v", TransformType: &pb.DocumentTransform_FieldTransform_SetToServerValue{}})
	})
	write("increment by text", func(w *world) plannedWrite {
		return transformOf(w.root()+"/c/a", &pb.DocumentTransform_FieldTransform{FieldPath: "v", TransformType: &pb.DocumentTransform_FieldTransform_Increment{Increment: text("x")}})
	})
	write("inside another", func(w *world) plannedWrite { return transformOf(w.root()+"/c/a", incrementOf("v"), incrementOf("v.k")) })

	// E-QY-05
	many := func(n int) *pb.Value {
		var values []*pb.Value
		for i := range n {
			values = append(values, integer(int64(i)))
		}
		return array(values...)
	}
	eq := compare("v", pb.StructuredQuery_FieldFilter_EQUAL, integer(1))
	both := func(op pb.StructuredQuery_CompositeFilter_Operator, filters ...*pb.StructuredQuery_Filter) *pb.StructuredQuery_Filter {
		return composite(op, filters)
	}
	const and, or = pb.StructuredQuery_CompositeFilter_AND, pb.StructuredQuery_CompositeFilter_OR
	for _, op := range []pb.StructuredQuery_FieldFilter_Operator{pb.StructuredQuery_FieldFilter_IN, pb.StructuredQuery_FieldFilter_NOT_IN, pb.StructuredQuery_FieldFilter_ARRAY_CONTAINS_ANY} {
		filter(op.String()+" empty", compare("v", op, array()))
		filter(op.String()+" scalar", compare("v", op, integer(1)))
		filter(op.String()+" long", compare("v", op, many(31)))
	}
	filter("36 disjunctions", both(and, compare("v", pb.StructuredQuery_FieldFilter_IN, many(6)), compare("w", pb.StructuredQuery_FieldFilter_IN, many(6))))
	filter("two negations", both(and, isOf("v", pb.StructuredQuery_UnaryFilter_IS_NOT_NULL), compare("w", pb.StructuredQuery_FieldFilter_NOT_EQUAL, integer(1))))
	filter("not-in and or", both(or, compare("v", pb.StructuredQuery_FieldFilter_NOT_IN, many(1)), eq))
	filter("not-in and in", both(and, compare("v", pb.StructuredQuery_FieldFilter_NOT_IN, many(1)), compare("w", pb.StructuredQuery_FieldFilter_IN, many(1))))
	filter("two array-contains", both(and, compare("v", pb.StructuredQuery_FieldFilter_ARRAY_CONTAINS, integer(1)), compare("w", pb.StructuredQuery_FieldFilter_ARRAY_CONTAINS, integer(1))))
	filter("no filter", &pb.StructuredQuery_Filter{})
	filter("no operator", compare("v", 0, integer(1)))
	filter("no unary operator", isOf("v", 0))
	filter("no operand", compare("v", pb.StructuredQuery_FieldFilter_EQUAL, nil))
	filter("an empty or", both(or))
	var equalities []*pb.StructuredQuery_Filter
	for i := range 101 {
		equalities = append(equalities, compare("f"+strconv.Itoa(i), pb.StructuredQuery_FieldFilter_EQUAL, integer(1)))
	}
	filter("101 conditions", both(and, equalities...))
	ask("one field twice", &pb.StructuredQuery{OrderBy: []*pb.StructuredQuery_Order{order("v", pb.StructuredQuery_ASCENDING), order("v", pb.StructuredQuery_DESCENDING)}})
	ask("after the name", &pb.StructuredQuery{OrderBy: []*pb.StructuredQuery_Order{order("__name__", pb.StructuredQuery_ASCENDING), order("v", pb.StructuredQuery_ASCENDING)}})
	withNaN := compare("v", pb.StructuredQuery_FieldFilter_NOT_IN, array(null(), double(math.NaN())))
	ask("not-in NaN after the name", &pb.StructuredQuery{Where: withNaN, OrderBy: []*pb.StructuredQuery_Order{order("__name__", pb.StructuredQuery_ASCENDING)}})
	ask("negative limit", &pb.StructuredQuery{Limit: wrapperspb.Int32(-1)})
	ask("negative offset", &pb.StructuredQuery{Offset: -1})
	ask("long cursor", &pb.StructuredQuery{StartAt: &pb.Cursor{Values: []*pb.Value{integer(1)}}})
	ask("two collections", &pb.StructuredQuery{From: []*pb.StructuredQuery_CollectionSelector{{CollectionId: "c"}, {CollectionId: "d"}}})
	ask("reserved collection", &pb.StructuredQuery{From: []*pb.StructuredQuery_CollectionSelector{{CollectionId: "__x__"}}})

	// E-QY-05: without a collection id only ascending name order is possible. This
	// excludes limitToLast, which clients implement in descending order.
	everywhere := func(q *pb.StructuredQuery) *pb.StructuredQuery {
		q.From = []*pb.StructuredQuery_CollectionSelector{{AllDescendants: true}}
		return q
	}
	backwards := []*pb.StructuredQuery_Order{order("__name__", pb.StructuredQuery_DESCENDING)}
	ask("every collection, by descending name", everywhere(&pb.StructuredQuery{OrderBy: backwards}))
	ask("every collection, its last document", everywhere(&pb.StructuredQuery{OrderBy: backwards, Limit: wrapperspb.Int32(1)}))
	ask("every collection, by field", everywhere(&pb.StructuredQuery{OrderBy: []*pb.StructuredQuery_Order{order("v", pb.StructuredQuery_ASCENDING)}}))
	m["query: group below a document, by descending name"] = func(ctx context.Context, w *world) outcome {
		req := queryOf(w, &pb.StructuredQuery{OrderBy: backwards})
		req.GetStructuredQuery().From[0].AllDescendants = true
		req.Parent = w.root() + "/c/a"
		return w.query(ctx, req)
	}

	// E-WR-03, E-WR-08 and emptiness
	write("no operation at all", func(*world) plannedWrite { return plannedWrite{write: &pb.Write{}} })
	commit := func(what string, first, second func(w *world) plannedWrite) {
		m["commit: "+what] = func(ctx context.Context, w *world) outcome { return w.rawCommit(ctx, first(w), second(w)) }
	}
	replace := func(w *world) plannedWrite { return set(w.root()+"/c/a", nil) }
	remove := func(w *world) plannedWrite {
		return plannedWrite{write: &pb.Write{Operation: &pb.Write_Delete{Delete: w.root() + "/c/a"}}}
	}
	ifExists := func(exists bool, make func(*world) plannedWrite) func(*world) plannedWrite {
		return func(w *world) plannedWrite {
			p := make(w)
			p.write.CurrentDocument = &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: exists}}
			return p
		}
	}
	commit("set, then create", replace, ifExists(false, replace))
	commit("delete, then update", remove, ifExists(true, replace))
	commit("delete, then delete what exists", remove, ifExists(true, remove))
	commit("update what is missing, then create", ifExists(true, replace), ifExists(false, replace))
	batch := func(what string, bad func(w *world) plannedWrite) {
		m["batch: "+what] = func(ctx context.Context, w *world) outcome {
			_, err := w.rpc.BatchWrite(ctx, &pb.BatchWriteRequest{Database: w.database, Writes: []*pb.Write{replace(w).write, bad(w).write}})
			return failed(err)
		}
	}
	batch("beside a reserved id", func(w *world) plannedWrite { return set(w.root()+"/c/__x__", nil) })
	batch("beside a bad field", func(w *world) plannedWrite {
		return set(w.root()+"/c/b", map[string]*pb.Value{"__x__": integer(1)})
	})
	batch("beside a bad transform", func(w *world) plannedWrite { return transformOf(w.root()+"/c/b", incrementOf("a..b")) })

	// E-ER-01: CreateDocument takes one id each
	create := func(what string, req *pb.CreateDocumentRequest) {
		m["create: "+what] = func(ctx context.Context, w *world) outcome {
			req := proto.CloneOf(req)
			req.Parent = w.root()
			_, err := w.rpc.CreateDocument(ctx, req)
			return failed(err)
		}
	}
	create("id of three", &pb.CreateDocumentRequest{CollectionId: "c", DocumentId: "a/s/x"})
	create("collection of three", &pb.CreateDocumentRequest{CollectionId: "c/a/s", DocumentId: "x"})
	create("document with a name", &pb.CreateDocumentRequest{CollectionId: "c", DocumentId: "x", Document: &pb.Document{Name: "y"}})
	m["query: none"] = func(ctx context.Context, w *world) outcome {
		return w.query(ctx, &pb.RunQueryRequest{Parent: w.root()})
	}
	m["aggregation: none"] = func(ctx context.Context, w *world) outcome { return w.aggregate(ctx, countsNamed(w)) }
	m["aggregation: sum of a projection"] = func(ctx context.Context, w *world) outcome {
		req := countsNamed(w, "n")
		a := req.GetStructuredAggregationQuery()
		a.GetStructuredQuery().Select = &pb.StructuredQuery_Projection{Fields: []*pb.StructuredQuery_FieldReference{fieldRef("v")}}
		a.Aggregations = append(a.Aggregations, &pb.StructuredAggregationQuery_Aggregation{Operator: &pb.StructuredAggregationQuery_Aggregation_Sum_{
			Sum: &pb.StructuredAggregationQuery_Aggregation_Sum{Field: fieldRef("v")},
		}})
		return w.aggregate(ctx, req)
	}
	// E-QY-07: the descendants of a document are a range of names, and no index holds
	// the name before a field.
	for what, aggregation := range map[string]*pb.StructuredAggregationQuery_Aggregation{
		"sum":     {Operator: &pb.StructuredAggregationQuery_Aggregation_Sum_{Sum: &pb.StructuredAggregationQuery_Aggregation_Sum{Field: fieldRef("v")}}},
		"average": {Operator: &pb.StructuredAggregationQuery_Aggregation_Avg_{Avg: &pb.StructuredAggregationQuery_Aggregation_Avg{Field: fieldRef("v")}}},
	} {
		for _, collection := range []string{"", "c"} {
			m["aggregation: "+what+" over the descendants of a document, collection "+strconv.Quote(collection)] = func(ctx context.Context, w *world) outcome {
				req := countsNamed(w)
				a := req.GetStructuredAggregationQuery()
				a.GetStructuredQuery().From = []*pb.StructuredQuery_CollectionSelector{{CollectionId: collection, AllDescendants: true}}
				a.Aggregations = append(a.Aggregations, aggregation)
				req.Parent = w.root() + "/c/a"
				return w.aggregate(ctx, req)
			}
		}
	}
	m["aggregation: alias twice"] = func(ctx context.Context, w *world) outcome { return w.aggregate(ctx, countsNamed(w, "a", "a")) }
	return m
}

// E-ER-01, E-QY-05, E-WR-06: both servers refuse invalid requests with the same text.
func TestErrorsAgree(t *testing.T) {
	ws := connectWorlds(t)
	for what, probe := range malformed() {
		t.Run(what, func(t *testing.T) {
			ctx := stepContext(t)
			officialWorld, embeddedWorld := ws.fresh()
			want, got := probe(ctx, officialWorld), probe(ctx, embeddedWorld)
			if want.code == codes.OK || got.code != want.code || got.message != want.message && !ownWords[what] {
				t.Errorf("official: %.300s\nembedded: %.300s", want, got)
			}
		})
	}
}

// E-QY-05: both servers accept the largest operand of each kind and refuse a larger one
// with the same text.
func TestErrorsAgree_OnOperandSizes(t *testing.T) {
	ws := connectWorlds(t)
	long := func(n int) *pb.Value { return text(strings.Repeat("x", n)) }
	many := func(v *pb.Value, n int) *pb.Value { return array(slices.Repeat([]*pb.Value{v}, n)...) }
	anywhere := func(path string) *pb.Value { return reference("projects/p/databases/(default)/documents/" + path) }
	for what, tt := range map[string]struct {
		largest int
		operand func(n int) *pb.Value
	}{
		"text":      {1499, long},
		"wide text": {749, func(n int) *pb.Value { return text(strings.Repeat("é", n)) }},
		"bytes":     {1500, func(n int) *pb.Value { return &pb.Value{ValueType: &pb.Value_BytesValue{BytesValue: make([]byte, n)}} }},
		"text in":   {1499, func(n int) *pb.Value { return array(array(long(n))) }},
		"beside":    {1491, func(n int) *pb.Value { return array(long(n), integer(1)) }},
		"integers":  {187, func(n int) *pb.Value { return many(integer(1), n) }},
		"doubles":   {187, func(n int) *pb.Value { return many(double(1), n) }},
		"nulls":     {1500, func(n int) *pb.Value { return many(null(), n) }},
		"map":       {1494, func(n int) *pb.Value { return mapping(map[string]*pb.Value{"aaaa": long(n)}) }},
		"map in map": {1495, func(n int) *pb.Value {
			return mapping(map[string]*pb.Value{"a": mapping(map[string]*pb.Value{"b": long(n)})})
		}},
		"vector":    {187, func(n int) *pb.Value { return vector(make([]float64, n)...) }},
		"reference": {1481, func(n int) *pb.Value { return anywhere("c/" + strings.Repeat("x", n)) }},
		"deeper":    {1471, func(n int) *pb.Value { return anywhere("c/__id1__/c/" + strings.Repeat("x", n)) }},
	} {
		t.Run(what, func(t *testing.T) {
			for n, want := range map[int]codes.Code{tt.largest: codes.OK, tt.largest + 1: codes.InvalidArgument} {
				for _, op := range []pb.StructuredQuery_FieldFilter_Operator{pb.StructuredQuery_FieldFilter_EQUAL, pb.StructuredQuery_FieldFilter_ARRAY_CONTAINS} {
					ctx := stepContext(t)
					officialWorld, embeddedWorld := ws.fresh()
					ask := func(w *world) outcome {
						return w.query(ctx, queryOf(w, &pb.StructuredQuery{Where: compare("v", op, tt.operand(n))}))
					}
					official, embedded := ask(officialWorld), ask(embeddedWorld)
					if official.code != want || embedded.code != want || official.message != embedded.message {
						t.Errorf("%s of %d:\nofficial: %.300s\nembedded: %.300s", op, n, official, embedded)
					}
				}
			}
		})
	}
}
