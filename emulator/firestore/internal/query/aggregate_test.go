package query

import (
	"math"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

type aggregationProto = pb.StructuredAggregationQuery_Aggregation

func count(alias string, upTo *wrapperspb.Int64Value) *aggregationProto {
	return &aggregationProto{Alias: alias, Operator: &pb.StructuredAggregationQuery_Aggregation_Count_{
		Count: &pb.StructuredAggregationQuery_Aggregation_Count{UpTo: upTo}}}
}

func sum(alias, field string) *aggregationProto {
	return &aggregationProto{Alias: alias, Operator: &pb.StructuredAggregationQuery_Aggregation_Sum_{
		Sum: &pb.StructuredAggregationQuery_Aggregation_Sum{Field: fieldRef(field)}}}
}

func average(alias, field string) *aggregationProto {
	return &aggregationProto{Alias: alias, Operator: &pb.StructuredAggregationQuery_Aggregation_Avg_{
		Avg: &pb.StructuredAggregationQuery_Aggregation_Avg{Field: fieldRef(field)}}}
}

func aggregationQuery(q *structured, aggregations ...*aggregationProto) *pb.StructuredAggregationQuery {
	return &pb.StructuredAggregationQuery{
		QueryType:    &pb.StructuredAggregationQuery_StructuredQuery{StructuredQuery: q},
		Aggregations: aggregations,
	}
}

func run(t *testing.T, docs []*pb.Document, q *structured, aggregations ...*aggregationProto) map[string]*pb.Value {
	t.Helper()
	a, err := CompileAggregation(testRoot, aggregationQuery(q, aggregations...))
	if err != nil {
		t.Fatal(err)
	}
	var matching []*pb.Document
	for _, doc := range docs {
		if a.Plan().Matches(doc) {
			matching = append(matching, doc)
		}
	}
	a.Plan().Sort(matching)
	return a.Aggregate(a.Plan().Page(matching))
}

// E-QY-07
func TestAggregation_Count(t *testing.T) {
	tests := map[string]struct {
		query *structured
		upTo  *wrapperspb.Int64Value
		want  int64
	}{
		"all":               {on(nil), nil, int64(len(types))},
		"up to fewer":       {on(nil), wrapperspb.Int64(3), 3},
		"up to more":        {on(nil), wrapperspb.Int64(99), int64(len(types))},
		"up to none":        {on(nil), wrapperspb.Int64(0), 0},
		"of a limited page": {with(on(nil), limit(2)), nil, 2},
		"of nothing":        {on(fieldFilter("v", "EQUAL", intValue(9))), nil, 0},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			got := run(t, types, tt.query, count("n", tt.upTo))
			if !value.EqualFields(got, map[string]*pb.Value{"n": intValue(tt.want)}) {
				t.Errorf("got %v, want %d", got, tt.want)
			}
		})
	}
}

// E-QY-07
func TestAggregation_SumAndAverage(t *testing.T) {
	numbers := func(values ...*pb.Value) []*pb.Document {
		var docs []*pb.Document
		for i, v := range values {
			docs = append(docs, document("c/"+string(rune('a'+i)), "v", v))
		}
		return docs
	}
	tests := map[string]struct {
		docs         []*pb.Document
		sum, average *pb.Value
	}{
		"nothing":                    {nil, intValue(0), null},
		"no numbers":                 {numbers(text("x"), null), intValue(0), null},
		"integers":                   {numbers(intValue(1), intValue(4)), intValue(5), doubleValue(2.5)},
		"a double makes it a double": {numbers(intValue(1), doubleValue(1)), doubleValue(2), doubleValue(1)},
		"others are skipped":         {numbers(intValue(1), text("x"), intValue(3)), intValue(4), doubleValue(2)},
		"NaN wins":                   {numbers(intValue(1), nan), nan, nan},
		"infinities cancel to NaN":   {numbers(doubleValue(math.Inf(1)), doubleValue(math.Inf(-1))), nan, nan},
		"overflow turns double":      {numbers(intValue(math.MaxInt64), intValue(1)), doubleValue(1 << 63), doubleValue(1 << 62)},
		"underflow turns double":     {numbers(intValue(math.MinInt64), intValue(-1)), doubleValue(-1 << 63), doubleValue(-1 << 62)},
		"overflow and back":          {numbers(intValue(math.MaxInt64), intValue(1), intValue(-5)), intValue(math.MaxInt64 - 4), doubleValue(float64(math.MaxInt64-4) / 3)},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			got := run(t, tt.docs, on(nil), sum("s", "v"), average("a", "v"))
			if want := map[string]*pb.Value{"s": tt.sum, "a": tt.average}; !value.EqualFields(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// Documents without a summed field do not count in the whole request, because an
// index over the field does not hold them.
func TestAggregation_RequiresAggregatedFields(t *testing.T) {
	got := run(t, types, on(nil), count("", nil), sum("total", "w"), count("", nil))
	want := map[string]*pb.Value{"field_1": intValue(4), "total": intValue(7), "field_2": intValue(4)}
	if !value.EqualFields(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Offset and limit of a sum apply in the order of an index that ends in the summed
// fields.
func TestAggregation_PagesBySummedField(t *testing.T) {
	docs := []*pb.Document{
		document("c/1", "g", intValue(1), "a", intValue(1), "b", intValue(30)),
		document("c/2", "g", intValue(1), "a", intValue(2), "b", intValue(10)),
		document("c/3", "g", intValue(1), "a", intValue(3), "b", intValue(20)),
	}
	tests := map[string]struct {
		query  *structured
		fields []string
		want   int64 // sum of the last field over the first document
	}{
		"unordered":                 {on(nil), []string{"b"}, 10},
		"two fields sort by name":   {on(nil), []string{"b", "a"}, 1},
		"after the explicit order":  {on(nil, "g"), []string{"b"}, 10},
		"in the explicit direction": {on(nil, "-g"), []string{"b"}, 30},
		"after an inequality":       {on(fieldFilter("a", "GREATER_THAN", intValue(1))), []string{"b"}, 10},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			var sums []*aggregationProto
			for _, field := range tt.fields {
				sums = append(sums, sum(field, field))
			}
			last := tt.fields[len(tt.fields)-1]
			if got := run(t, docs, with(tt.query, limit(1)), sums...)[last]; got.GetIntegerValue() != tt.want {
				t.Errorf("got %v, want %d", got, tt.want)
			}
		})
	}
}

// E-QY-07
func TestCompileAggregation_RefusesInvalid(t *testing.T) {
	tests := map[string]struct {
		aggregations []*aggregationProto
		want         string
	}{
		"none":            {nil, "Aggregations can not be empty."},
		"six":             {[]*aggregationProto{count("a", nil), count("b", nil), count("c", nil), count("d", nil), count("e", nil), count("f", nil)}, "The maximum number of aggregations allowed in an aggregation query is 5. Received: 6"},
		"no operator":     {[]*aggregationProto{{}}, "Operator field in Aggregation is not set."},
		"negative up_to":  {[]*aggregationProto{count("", wrapperspb.Int64(-1))}, "The `up_to` value in a COUNT aggregation must be greater than or equal to zero."},
		"sum of no field": {[]*aggregationProto{sum("", "")}, "Invalid empty property path string."},
		"sum of the name": {[]*aggregationProto{sum("", "__name__")}, "Aggregations are not supported for the property: __name__"},
		"one alias twice": {[]*aggregationProto{count("a", nil), count("a", nil)}, "Aggregation aliases contain duplicate alias: a."},
		"alias taken":     {[]*aggregationProto{count("field_1", nil), count("", nil)}, "Aggregation aliases contain duplicate alias: field_1."},
		"reserved alias":  {[]*aggregationProto{count("__a__", nil)}, `The aggregation alias "__a__" is not a legal field name.`},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			_, err := CompileAggregation(testRoot, aggregationQuery(on(nil), tt.aggregations...))
			if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
	if _, err := CompileAggregation(testRoot, aggregationQuery(with(on(nil), limit(-1)), count("", nil))); status.Code(err) != codes.InvalidArgument {
		t.Errorf("bad query: %v", err)
	}
	const afterName = "This query requires an index that has fields [x, y] after __name__ and Firestore does not currently support such an index. Please try the query again with additional ordering on those fields."
	for _, q := range []*structured{on(nil, "z", "__name__"), on(fieldFilter("__name__", "GREATER_THAN", reference("c/a")))} {
		if _, err := CompileAggregation(testRoot, aggregationQuery(q, sum("", "y"), average("", "x"))); status.Convert(err).Message() != afterName {
			t.Errorf("sum after the name: %v, want %s", err, afterName)
		}
	}
	if _, err := CompileAggregation(testRoot, aggregationQuery(on(nil, "x", "__name__"), sum("", "x"))); err != nil {
		t.Errorf("sum before the name: %v", err)
	}
	descendants := on(nil)
	descendants.From[0].AllDescendants = true
	if _, err := CompileAggregation(testRoot+"/c/d", aggregationQuery(descendants, sum("", "y"), average("", "x"))); status.Convert(err).Message() != afterName {
		t.Errorf("sum over the descendants of a document: %v, want %s", err, afterName)
	}
	if _, err := CompileAggregation(testRoot, aggregationQuery(descendants, sum("", "y"))); err != nil {
		t.Errorf("sum over a collection group: %v", err)
	}
	if _, err := CompileAggregation(testRoot+"/c/d", aggregationQuery(descendants, count("", nil))); err != nil {
		t.Errorf("count of the descendants of a document: %v", err)
	}
	projected := func() *structured {
		q := on(nil)
		q.Select = &pb.StructuredQuery_Projection{Fields: []*pb.StructuredQuery_FieldReference{fieldRef("x")}}
		return q
	}
	const masked = "Cannot apply property masks when aggregation fields are present."
	if _, err := CompileAggregation(testRoot, aggregationQuery(projected(), count("", nil), sum("", "x"))); status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != masked {
		t.Errorf("sum of a projection: %v, want %s", err, masked)
	}
	if _, err := CompileAggregation(testRoot, aggregationQuery(projected(), count("", nil))); err != nil {
		t.Errorf("count of a projection: %v", err)
	}
	a, err := CompileAggregation(testRoot, aggregationQuery(on(nil), count("", nil), sum("", "x"), average("", "y.z")))
	if err != nil || len(a.Fields()) != 2 || a.Fields()[1].String() != "y.z" {
		t.Errorf("fields %v, %v", a.Fields(), err)
	}
}

func TestAggregation_SumHasNoRoundingError(t *testing.T) {
	var ten []*pb.Value
	for range 10 {
		ten = append(ten, doubleValue(0.1))
	}
	for want, numbers := range map[float64][]*pb.Value{
		1: ten,
		2: {doubleValue(1), doubleValue(1e100), doubleValue(1), doubleValue(-1e100)},
	} {
		var c tally
		for _, n := range numbers {
			c.add(n.GetDoubleValue())
		}
		if got := c.total(); got != want {
			t.Errorf("sum is %v, want %v", got, want)
		}
	}
}
