package query

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

const maxAggregations = 5

// Aggregation is a compiled aggregation query.
type Aggregation struct {
	plan     *Plan
	counters []counter
}

type aggregateOp int

const (
	aggregateCount aggregateOp = iota
	aggregateSum
	aggregateAverage
)

// counter is one aggregation. upTo bounds a count unless it is negative.
type counter struct {
	alias string
	op    aggregateOp
	field value.FieldPath
	upTo  int64
}

// CompileAggregation validates and compiles an aggregation under parent, like
// Compile.
func CompileAggregation(parent string, q *pb.StructuredAggregationQuery) (*Aggregation, error) {
	if len(q.GetAggregations()) == 0 {
		return nil, invalidf("Aggregations can not be empty.")
	}
	if n := len(q.GetAggregations()); n > maxAggregations {
		return nil, invalidf("The maximum number of aggregations allowed in an aggregation query is %d. Received: %d", maxAggregations, n)
	}
	plan, err := Compile(parent, q.GetStructuredQuery())
	if err != nil {
		return nil, err
	}
	a := &Aggregation{plan: plan}
	for _, aggregation := range q.GetAggregations() {
		c, err := compileCounter(aggregation)
		if err != nil {
			return nil, err
		}
		a.counters = append(a.counters, c)
	}
	if plan.projection != nil && len(a.Fields()) > 0 {
		return nil, invalidf("Cannot apply property masks when aggregation fields are present.")
	}
	if err := a.checkNameOrder(parent, q.GetStructuredQuery()); err != nil {
		return nil, err
	}
	plan.sortByToo(a.Fields())
	return a, a.nameCounters()
}

// checkNameOrder refuses an aggregated field that an index would have to hold
// after the document's name. This is so if the query itself uses the name, or
// covers all descendants of a document, which are a range of names, unless it also
// orders by the field.
func (a *Aggregation) checkNameOrder(parent string, q *pb.StructuredQuery) error {
	name, err := value.ParseParent(parent)
	if err != nil {
		return err
	}
	usesName := a.plan.scope.AllDescendants && name.IsDocument()
	usesName = usesName || slices.ContainsFunc(q.GetOrderBy(), func(o *pb.StructuredQuery_Order) bool {
		return o.GetField().GetFieldPath() == value.NameField
	})
	a.plan.filter.leaves(func(l *leaf) { usesName = usesName || l.field.IsName() })
	if !usesName {
		return nil
	}
	var unordered []string
	for _, field := range a.Fields() {
		if !slices.ContainsFunc(a.plan.orders, func(o Order) bool { return o.Field.Compare(field) == 0 }) {
			unordered = append(unordered, field.String())
		}
	}
	if len(unordered) == 0 {
		return nil
	}
	slices.Sort(unordered)
	return invalidf("This query requires an index that has fields [%s] after %s and Firestore does not currently support such an index. "+
		"Please try the query again with additional ordering on those fields.", strings.Join(slices.Compact(unordered), ", "), value.NameField)
}

func compileCounter(aggregation *pb.StructuredAggregationQuery_Aggregation) (counter, error) {
	c := counter{alias: aggregation.GetAlias(), upTo: -1}
	var field *pb.StructuredQuery_FieldReference
	switch op := aggregation.GetOperator().(type) {
	case *pb.StructuredAggregationQuery_Aggregation_Count_:
		if upTo := op.Count.GetUpTo(); upTo != nil {
			if upTo.GetValue() < 0 {
				return counter{}, invalidf("The `up_to` value in a COUNT aggregation must be greater than or equal to zero.")
			}
			c.upTo = upTo.GetValue()
		}
		return c, nil
	case *pb.StructuredAggregationQuery_Aggregation_Sum_:
		c.op, field = aggregateSum, op.Sum.GetField()
	case *pb.StructuredAggregationQuery_Aggregation_Avg_:
		c.op, field = aggregateAverage, op.Avg.GetField()
	default:
		return counter{}, invalidf("Operator field in Aggregation is not set.")
	}
	var err error
	if c.field, err = value.ParseFieldPath(field.GetFieldPath()); err != nil {
		return counter{}, err
	}
	if c.field.IsName() {
		return counter{}, invalidf("Aggregations are not supported for the property: %s", value.NameField)
	}
	return c, nil
}

// nameCounters gives each aggregation without an alias the name "field_N", counted
// from 1, and refuses duplicates.
func (a *Aggregation) nameCounters() error {
	seen := map[string]bool{}
	next := 1
	for i := range a.counters {
		alias := &a.counters[i].alias
		if *alias == "" {
			*alias = "field_" + strconv.Itoa(next)
			next++
		}
		if seen[*alias] {
			return invalidf("Aggregation aliases contain duplicate alias: %s.", *alias)
		}
		seen[*alias] = true
		if err := value.ValidateFields(map[string]*pb.Value{*alias: intValue(0)}); err != nil {
			return invalidf("The aggregation alias \"%s\" is not a legal field name.", *alias)
		}
	}
	return nil
}

// Plan is the query whose results are aggregated. In addition to the conditions of
// the query, every summed or averaged field must exist.
func (a *Aggregation) Plan() *Plan { return a.plan }

// Fields lists the summed and averaged fields, in the order of the request.
func (a *Aggregation) Fields() []value.FieldPath {
	var fields []value.FieldPath
	for _, c := range a.counters {
		if c.field != nil {
			fields = append(fields, c.field)
		}
	}
	return fields
}

// Aggregate computes all aggregations over the results of the query, which are the
// matching documents in order after offset and limit. The result is keyed by alias.
func (a *Aggregation) Aggregate(docs []*pb.Document) map[string]*pb.Value {
	results := make(map[string]*pb.Value, len(a.counters))
	for _, c := range a.counters {
		results[c.alias] = c.over(docs)
	}
	return results
}

func (c counter) over(docs []*pb.Document) *pb.Value {
	switch c.op {
	case aggregateCount:
		n := int64(len(docs))
		if c.upTo >= 0 {
			n = min(n, c.upTo)
		}
		return intValue(n)
	case aggregateSum:
		return c.tally(docs).sum()
	case aggregateAverage:
		return c.tally(docs).average()
	default:
		panic(fmt.Sprintf("query: aggregation operator %d", c.op))
	}
}

// tally adds up the numbers among the values of a field. The sum of the integers is
// kept in two halves, so that it does not overflow in any order of additions.
type tally struct {
	n           int64
	high, low   int64 // sum of the integers is high<<32 + low
	doubles     float64
	lost        float64 // rounding error of doubles
	doublesSeen bool
}

// add adds a double and keeps the rounding error (Neumaier's variant of Kahan
// summation), so that ten times 3.2 is 32.
func (t *tally) add(x float64) {
	sum := t.doubles + x
	if math.Abs(t.doubles) >= math.Abs(x) {
		t.lost += (t.doubles - sum) + x
	} else {
		t.lost += (x - sum) + t.doubles
	}
	t.doubles = sum
}

func (c counter) tally(docs []*pb.Document) tally {
	var t tally
	for _, doc := range docs {
		switch v := value.Get(doc.GetFields(), c.field).GetValueType().(type) {
		case *pb.Value_IntegerValue:
			t.n++
			t.high += v.IntegerValue >> 32
			t.low += v.IntegerValue & math.MaxUint32
		case *pb.Value_DoubleValue:
			t.n++
			t.add(v.DoubleValue)
			t.doublesSeen = true
		}
	}
	return t
}

func (t tally) integers() *big.Int {
	sum := new(big.Int).Lsh(big.NewInt(t.high), 32)
	return sum.Add(sum, big.NewInt(t.low))
}

// total is the sum of all numbers as a double.
func (t tally) total() float64 {
	integers, _ := new(big.Float).SetInt(t.integers()).Float64()
	if math.IsNaN(t.doubles) || math.IsInf(t.doubles, 0) {
		return t.doubles + integers // these have no rounding error
	}
	return t.doubles + (t.lost + integers)
}

// sum is an integer if only integers were added and the sum fits, else a double.
func (t tally) sum() *pb.Value {
	if integers := t.integers(); !t.doublesSeen && integers.IsInt64() {
		return intValue(integers.Int64())
	}
	return doubleValue(t.total())
}

// average is a double, or null if there was no number.
func (t tally) average() *pb.Value {
	if t.n == 0 {
		return &pb.Value{ValueType: &pb.Value_NullValue{NullValue: structpb.NullValue_NULL_VALUE}}
	}
	return doubleValue(t.total() / float64(t.n))
}

func intValue(i int64) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_IntegerValue{IntegerValue: i}}
}

func doubleValue(f float64) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_DoubleValue{DoubleValue: f}}
}
