package conformance

import (
	"math"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/genproto/googleapis/type/latlng"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"
)

// The sequences use few documents, fields and values, so that writes and queries
// concern the same ones. Many values are near each other where order is delicate.

var documentPaths = []string{
	"c/a", "c/b", "c/B", "c/é", "c/____", "c/__id7__", "c/__id12__", "c/__id-3__", "c/a/s/x", "c/a/s/y", "c/b/s/x", "c/gone/s/z", "d/a", "d/b",
}

var fieldPaths = []string{"v", "w", "m.k", "m", "m.l.k", "`odd.name`", "t"}

type generator struct {
	root string
	step int
}

// drawing draws random parts of requests.
type drawing struct {
	*rapid.T
	generator
}

func (d drawing) pick(label string, from ...string) string {
	return rapid.SampledFrom(from).Draw(d.T, label)
}

func (d drawing) chance(label string, percent int) bool {
	return rapid.IntRange(1, 100).Draw(d.T, label) <= percent
}

func (d drawing) name() string { return d.root + "/" + d.pick("document", documentPaths...) }

func (d drawing) field() string { return d.pick("field", fieldPaths...) }

func integer(i int64) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_IntegerValue{IntegerValue: i}}
}

func double(f float64) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_DoubleValue{DoubleValue: f}}
}

func text(s string) *pb.Value { return &pb.Value{ValueType: &pb.Value_StringValue{StringValue: s}} }

func null() *pb.Value {
	return &pb.Value{ValueType: &pb.Value_NullValue{NullValue: structpb.NullValue_NULL_VALUE}}
}

func array(values ...*pb.Value) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_ArrayValue{ArrayValue: &pb.ArrayValue{Values: values}}}
}

func mapping(fields map[string]*pb.Value) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_MapValue{MapValue: &pb.MapValue{Fields: fields}}}
}

func reference(name string) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_ReferenceValue{ReferenceValue: name}}
}

func vector(elements ...float64) *pb.Value {
	var values []*pb.Value
	for _, e := range elements {
		values = append(values, double(e))
	}
	return mapping(map[string]*pb.Value{"__type__": text("__vector__"), "value": array(values...)})
}

func (d drawing) number() *pb.Value {
	if d.chance("is integer", 60) {
		return integer(rapid.SampledFrom([]int64{0, 1, 2, 3, -1, 1 << 53, 1<<53 + 1, math.MaxInt64, math.MinInt64}).Draw(d.T, "integer"))
	}
	return double(rapid.SampledFrom([]float64{0, 1, 1.5, 2, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1 << 53, math.Copysign(0, -1)}).Draw(d.T, "double"))
}

// value draws a value. Arrays are inside arrays only through a map.
func (d drawing) value(depth int) *pb.Value {
	kinds := []string{"number", "number", "string", "string", "null", "bool", "timestamp", "bytes", "reference", "geo", "vector"}
	if depth > 0 {
		kinds = append(kinds, "array", "array", "map", "map")
	}
	switch d.pick("kind", kinds...) {
	case "number":
		return d.number()
	case "string":
		return text(d.pick("string", "", "a", "b", "ab", "é", "\U0001f600", "\uffff"))
	case "null":
		return null()
	case "bool":
		return &pb.Value{ValueType: &pb.Value_BooleanValue{BooleanValue: rapid.Bool().Draw(d.T, "bool")}}
	case "timestamp":
		return &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: &timestamppb.Timestamp{
			Seconds: rapid.SampledFrom([]int64{-1, 0, 1, 1_000_000_000}).Draw(d.T, "seconds"),
			Nanos:   rapid.SampledFrom([]int32{0, 1, 999, 1000, 999_999_999}).Draw(d.T, "nanos"),
		}}}
	case "bytes":
		return &pb.Value{ValueType: &pb.Value_BytesValue{BytesValue: []byte(d.pick("bytes", "", "\x00", "a", "\xff"))}}
	case "reference":
		return reference(d.name())
	case "geo":
		return &pb.Value{ValueType: &pb.Value_GeoPointValue{GeoPointValue: &latlng.LatLng{
			Latitude:  rapid.SampledFrom([]float64{-90, 0, 1}).Draw(d.T, "latitude"),
			Longitude: rapid.SampledFrom([]float64{-180, 0, 1}).Draw(d.T, "longitude"),
		}}}
	case "vector":
		return vector(rapid.SliceOfN(rapid.SampledFrom([]float64{-1, 0, 1}), 1, 3).Draw(d.T, "vector")...)
	case "array":
		return array(d.elements(depth - 1)...)
	default:
		return mapping(d.mapFields(depth - 1))
	}
}

// elements draws elements of an array, with arrays and vectors only inside maps.
func (d drawing) elements(depth int) []*pb.Value {
	var values []*pb.Value
	for range rapid.IntRange(0, 3).Draw(d.T, "elements") {
		v := d.value(depth)
		if v.GetArrayValue() != nil || v.GetMapValue().GetFields()["__type__"] != nil { // an array or a vector
			v = mapping(map[string]*pb.Value{"k": v})
		}
		values = append(values, v)
	}
	return values
}

func (d drawing) mapFields(depth int) map[string]*pb.Value {
	fields := map[string]*pb.Value{}
	for range rapid.IntRange(0, 2).Draw(d.T, "keys") {
		fields[d.pick("key", "k", "l", "é")] = d.value(depth)
	}
	return fields
}

func (d drawing) documentFields() map[string]*pb.Value {
	fields := map[string]*pb.Value{}
	for range rapid.IntRange(0, 4).Draw(d.T, "fields") {
		switch name := d.pick("top field", "v", "v", "w", "w", "m", "odd.name", "t"); name {
		case "m":
			fields["m"] = mapping(d.mapFields(2))
		case "t":
			fields["t"] = array(d.elements(1)...)
		default:
			fields[name] = d.value(2)
		}
	}
	return fields
}

func (d drawing) mask() *pb.DocumentMask {
	mask := &pb.DocumentMask{}
	for range rapid.IntRange(0, 3).Draw(d.T, "masked") {
		mask.FieldPaths = append(mask.FieldPaths, d.field())
	}
	return mask
}

func (d drawing) transforms() []*pb.DocumentTransform_FieldTransform {
	var transforms []*pb.DocumentTransform_FieldTransform
	for range rapid.IntRange(1, 2).Draw(d.T, "transforms") {
		t := &pb.DocumentTransform_FieldTransform{FieldPath: d.pick("transformed", "v", "w", "t", "m.k", "`odd.name`")}
		switch d.pick("transform", "increment", "maximum", "minimum", "union", "remove") {
		case "increment":
			t.TransformType = &pb.DocumentTransform_FieldTransform_Increment{Increment: d.number()}
		case "maximum":
			t.TransformType = &pb.DocumentTransform_FieldTransform_Maximum{Maximum: d.number()}
		case "minimum":
			t.TransformType = &pb.DocumentTransform_FieldTransform_Minimum{Minimum: d.number()}
		case "union":
			t.TransformType = &pb.DocumentTransform_FieldTransform_AppendMissingElements{AppendMissingElements: &pb.ArrayValue{Values: d.elements(1)}}
		case "remove":
			t.TransformType = &pb.DocumentTransform_FieldTransform_RemoveAllFromArray{RemoveAllFromArray: &pb.ArrayValue{Values: d.elements(1)}}
		}
		transforms = append(transforms, t)
	}
	if d.chance("request time", 20) {
		transforms = append(transforms, d.requestTime()...)
	}
	return transforms
}

// requestTime sets a field to the request's time, and another to a number that no
// other step writes. Otherwise the second of two requests in the same millisecond
// would change nothing.
func (d drawing) requestTime() []*pb.DocumentTransform_FieldTransform {
	return []*pb.DocumentTransform_FieldTransform{
		{FieldPath: "at", TransformType: &pb.DocumentTransform_FieldTransform_SetToServerValue{
			SetToServerValue: pb.DocumentTransform_FieldTransform_REQUEST_TIME,
		}},
		{FieldPath: "step", TransformType: &pb.DocumentTransform_FieldTransform_AppendMissingElements{
			AppendMissingElements: &pb.ArrayValue{Values: []*pb.Value{integer(int64(d.step))}},
		}},
	}
}

func (d drawing) write() plannedWrite {
	p := plannedWrite{write: &pb.Write{}}
	switch d.pick("write", "set", "set", "set", "merge", "merge", "update transform", "transform", "delete") {
	case "set":
		p.write.Operation = &pb.Write_Update{Update: &pb.Document{Name: d.name(), Fields: d.documentFields()}}
	case "merge":
		p.write.Operation = &pb.Write_Update{Update: &pb.Document{Name: d.name(), Fields: d.documentFields()}}
		p.write.UpdateMask = d.mask()
	case "update transform":
		p.write.Operation = &pb.Write_Update{Update: &pb.Document{Name: d.name(), Fields: d.documentFields()}}
		if d.chance("masked", 50) {
			p.write.UpdateMask = d.mask()
		}
		p.write.UpdateTransforms = d.transforms()
	case "transform":
		p.write.Operation = &pb.Write_Transform{Transform: &pb.DocumentTransform{Document: d.name(), FieldTransforms: d.transforms()}}
	case "delete":
		p.write.Operation = &pb.Write_Delete{Delete: d.name()}
	}
	switch d.pick("precondition", "none", "none", "none", "none", "none", "none", "none", "none", "none", "exists", "missing", "time") {
	case "exists":
		p.write.CurrentDocument = &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: true}}
	case "missing":
		p.write.CurrentDocument = &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: false}}
	case "time":
		p.usesTime, p.updatedAt = true, rapid.IntRange(0, 20).Draw(d.T, "commit")
	}
	return p
}

func (d drawing) writes(atLeast int) []plannedWrite {
	var writes []plannedWrite
	for range rapid.IntRange(atLeast, 3).Draw(d.T, "writes") {
		writes = append(writes, d.write())
	}
	dropRepeatedPreconditions(writes)
	return writes
}

// dropRepeatedPreconditions removes the preconditions of further writes to a document:
// see Deliberate, preconditions between writes to one document.
func dropRepeatedPreconditions(writes []plannedWrite) {
	times := map[string]int{}
	for _, p := range writes {
		times[writtenName(p.write)]++
	}
	for i := range writes {
		if times[writtenName(writes[i].write)] > 1 {
			writes[i].usesTime, writes[i].write.CurrentDocument = false, nil
		}
	}
}

func (d drawing) readAt() readAt {
	return readAt{past: d.chance("in the past", 15), commit: rapid.IntRange(0, 20).Draw(d.T, "commit")}
}

func fieldRef(path string) *pb.StructuredQuery_FieldReference {
	return &pb.StructuredQuery_FieldReference{FieldPath: path}
}

func (d drawing) filter(depth int) *pb.StructuredQuery_Filter {
	kinds := []string{"field", "field", "field", "field", "unary", "name"}
	if depth > 0 {
		kinds = append(kinds, "and", "and", "or")
	}
	switch kind := d.pick("filter", kinds...); kind {
	case "unary":
		return &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_UnaryFilter{UnaryFilter: &pb.StructuredQuery_UnaryFilter{
			OperandType: &pb.StructuredQuery_UnaryFilter_Field{Field: fieldRef(d.field())},
			Op:          pb.StructuredQuery_UnaryFilter_Operator(rapid.IntRange(2, 5).Draw(d.T, "unary operator")),
		}}}
	case "and", "or":
		f := &pb.StructuredQuery_CompositeFilter{Op: pb.StructuredQuery_CompositeFilter_AND}
		if kind == "or" {
			f.Op = pb.StructuredQuery_CompositeFilter_OR
		}
		for range rapid.IntRange(1, 3).Draw(d.T, "parts") {
			f.Filters = append(f.Filters, d.filter(depth-1))
		}
		return &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_CompositeFilter{CompositeFilter: f}}
	case "name":
		return d.fieldFilter("__name__", func() *pb.Value { return reference(d.name()) })
	default:
		return d.fieldFilter(d.field(), func() *pb.Value { return d.value(1) })
	}
}

func (d drawing) fieldFilter(field string, operand func() *pb.Value) *pb.StructuredQuery_Filter {
	f := &pb.StructuredQuery_FieldFilter{
		Field: fieldRef(field),
		Op:    pb.StructuredQuery_FieldFilter_Operator(rapid.IntRange(1, 10).Draw(d.T, "operator")),
	}
	switch f.Op {
	case pb.StructuredQuery_FieldFilter_IN, pb.StructuredQuery_FieldFilter_NOT_IN, pb.StructuredQuery_FieldFilter_ARRAY_CONTAINS_ANY:
		var values []*pb.Value
		for range rapid.IntRange(0, 3).Draw(d.T, "alternatives") {
			values = append(values, operand())
		}
		f.Value = array(values...)
	default:
		f.Value = operand()
	}
	return &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_FieldFilter{FieldFilter: f}}
}

// structuredQuery draws a query and its parent.
func (d drawing) structuredQuery() (parent string, q *pb.StructuredQuery) {
	parent = d.root
	q = &pb.StructuredQuery{}
	switch d.pick("scope", "collection", "collection", "collection", "subcollection", "group") {
	case "collection":
		q.From = []*pb.StructuredQuery_CollectionSelector{{CollectionId: d.pick("collection", "c", "c", "d", "empty")}}
	case "subcollection":
		parent += "/" + d.pick("parent", "c/a", "c/b", "c/gone", "d/a")
		q.From = []*pb.StructuredQuery_CollectionSelector{{CollectionId: "s"}}
	case "group":
		q.From = []*pb.StructuredQuery_CollectionSelector{{CollectionId: d.pick("group", "s", "c"), AllDescendants: true}}
	}
	if d.chance("filtered", 65) {
		q.Where = d.filter(2)
	}
	d.orders(q)
	if d.chance("starts", 25) {
		q.StartAt = d.cursor(q)
	}
	if d.chance("ends", 25) {
		q.EndAt = d.cursor(q)
	}
	if d.chance("offset", 15) {
		q.Offset = int32(rapid.IntRange(-1, 3).Draw(d.T, "offset"))
	}
	if d.chance("limited", 30) {
		q.Limit = wrapperspb.Int32(int32(rapid.IntRange(-1, 4).Draw(d.T, "limit")))
	}
	q.Select = d.projection()
	return parent, q
}

// projection is nil most of the time.
func (d drawing) projection() *pb.StructuredQuery_Projection {
	if !d.chance("projected", 15) {
		return nil
	}
	s := &pb.StructuredQuery_Projection{}
	for range rapid.IntRange(1, 3).Draw(d.T, "projected fields") {
		s.Fields = append(s.Fields, fieldRef(d.pick("projected field", append(fieldPaths, "__name__")...)))
	}
	return s
}

// orders draws the sort order, without descending names: see Deliberate.
func (d drawing) orders(q *pb.StructuredQuery) {
	for range rapid.SampledFrom([]int{0, 0, 1, 1, 2}).Draw(d.T, "orders") {
		o := &pb.StructuredQuery_Order{Field: fieldRef(d.field()), Direction: pb.StructuredQuery_ASCENDING}
		if d.chance("descending", 40) {
			o.Direction = pb.StructuredQuery_DESCENDING
		}
		q.OrderBy = append(q.OrderBy, o)
	}
	if d.chance("by name", 25) {
		direction := pb.StructuredQuery_ASCENDING
		if len(q.OrderBy) > 0 {
			direction = q.OrderBy[len(q.OrderBy)-1].Direction
		}
		q.OrderBy = append(q.OrderBy, &pb.StructuredQuery_Order{Field: fieldRef("__name__"), Direction: direction})
	}
}

func (d drawing) cursor(q *pb.StructuredQuery) *pb.Cursor {
	c := &pb.Cursor{Before: rapid.Bool().Draw(d.T, "before")}
	n := len(q.OrderBy)
	if d.chance("too many", 5) {
		n++
	} else if n > 0 {
		n = rapid.IntRange(1, n).Draw(d.T, "cursor values")
	}
	for i := range n {
		if i < len(q.OrderBy) && q.OrderBy[i].GetField().GetFieldPath() == "__name__" {
			c.Values = append(c.Values, reference(d.name()))
		} else {
			c.Values = append(c.Values, d.value(1))
		}
	}
	return c
}

func (d drawing) query() *pb.RunQueryRequest {
	parent, q := d.structuredQuery()
	return &pb.RunQueryRequest{Parent: parent, QueryType: &pb.RunQueryRequest_StructuredQuery{StructuredQuery: q}}
}

func (d drawing) aggregation() *pb.RunAggregationQueryRequest {
	parent, q := d.structuredQuery()
	q.Select = nil
	a := &pb.StructuredAggregationQuery{QueryType: &pb.StructuredAggregationQuery_StructuredQuery{StructuredQuery: q}, Aggregations: d.aggregations()}
	return &pb.RunAggregationQueryRequest{Parent: parent, QueryType: &pb.RunAggregationQueryRequest_StructuredAggregationQuery{StructuredAggregationQuery: a}}
}

func (d drawing) aggregations() []*pb.StructuredAggregationQuery_Aggregation {
	var aggregations []*pb.StructuredAggregationQuery_Aggregation
	for range rapid.IntRange(1, 3).Draw(d.T, "aggregations") {
		one := &pb.StructuredAggregationQuery_Aggregation{}
		switch d.pick("aggregation", "count", "sum", "average") {
		case "count":
			count := &pb.StructuredAggregationQuery_Aggregation_Count{}
			if d.chance("up to", 30) {
				count.UpTo = wrapperspb.Int64(int64(rapid.IntRange(0, 3).Draw(d.T, "up to")))
			}
			one.Operator = &pb.StructuredAggregationQuery_Aggregation_Count_{Count: count}
		case "sum":
			one.Operator = &pb.StructuredAggregationQuery_Aggregation_Sum_{Sum: &pb.StructuredAggregationQuery_Aggregation_Sum{Field: fieldRef(d.field())}}
		case "average":
			one.Operator = &pb.StructuredAggregationQuery_Aggregation_Avg_{Avg: &pb.StructuredAggregationQuery_Aggregation_Avg{Field: fieldRef(d.field())}}
		}
		aggregations = append(aggregations, one)
	}
	return aggregations
}

func (d drawing) batchGet() *pb.BatchGetDocumentsRequest {
	req := &pb.BatchGetDocumentsRequest{}
	for range rapid.IntRange(1, 4).Draw(d.T, "documents") {
		req.Documents = append(req.Documents, d.name())
	}
	if d.chance("masked", 20) {
		req.Mask = d.mask()
	}
	return req
}

func (d drawing) list() *pb.ListDocumentsRequest {
	req := &pb.ListDocumentsRequest{Parent: d.root, CollectionId: d.pick("listed", "c", "d", "empty")}
	if d.chance("below a document", 30) {
		req.Parent += "/" + d.pick("parent", "c/a", "c/gone", "d/a")
		req.CollectionId = "s"
	}
	req.PageSize = int32(rapid.SampledFrom([]int{0, 0, 1, 2, 100}).Draw(d.T, "page size"))
	if d.chance("missing too", 30) {
		req.ShowMissing = true
	}
	if !req.ShowMissing && d.chance("masked", 20) { // see Deliberate: masks beside missing documents
		req.Mask = d.mask()
	}
	return req
}

func (d drawing) transaction() transactionPlan {
	plan := transactionPlan{
		readOnly: d.chance("read only", 25),
		rollback: d.chance("rolled back", 15),
		again:    d.chance("again", 15),
	}
	if plan.readOnly {
		plan.at = d.readAt()
	}
	for range rapid.IntRange(0, 2).Draw(d.T, "reads") {
		switch d.pick("read", "get", "get", "query", "aggregate") {
		case "get":
			plan.reads = append(plan.reads, transactionRead{get: d.batchGet()})
		case "query":
			plan.reads = append(plan.reads, transactionRead{query: d.query()})
		case "aggregate":
			plan.reads = append(plan.reads, transactionRead{aggregate: d.aggregation()})
		}
	}
	if !plan.readOnly || d.chance("writes nevertheless", 10) {
		plan.writes = d.writes(0)
	}
	return plan
}

func (d drawing) anyStep() step {
	switch d.pick("step", "commit", "commit", "commit", "commit", "query", "query", "query", "aggregate", "get", "list", "collections", "batch write", "transaction", "single") {
	case "commit":
		return commitStep(d.writes(0))
	case "query":
		return queryStep(d.query(), d.readAt())
	case "aggregate":
		return aggregationStep(d.aggregation(), d.readAt())
	case "get":
		return batchGetStep(d.batchGet(), d.readAt())
	case "list":
		return listStep(d.list())
	case "collections":
		parent := d.root
		if d.chance("of a document", 60) {
			parent = d.name()
		}
		return listCollectionIDsStep(&pb.ListCollectionIdsRequest{Parent: parent, PageSize: int32(rapid.IntRange(0, 2).Draw(d.T, "page size"))})
	case "batch write":
		return batchWriteStep(d.writes(0))
	case "transaction":
		return transactionStep(d.transaction())
	default:
		return d.singleDocument()
	}
}

func (d drawing) singleDocument() step {
	switch d.pick("single", "get", "create", "update", "delete") {
	case "get":
		req := &pb.GetDocumentRequest{Name: d.name()}
		if d.chance("masked", 30) {
			req.Mask = d.mask()
		}
		return getStep(req)
	case "create":
		return createStep(&pb.CreateDocumentRequest{
			Parent: d.root, CollectionId: d.pick("collection", "c", "d"), DocumentId: d.pick("id", "a", "b", "____", "__id7__"),
			Document: &pb.Document{Fields: d.documentFields()},
		})
	case "update":
		req := &pb.UpdateDocumentRequest{Document: &pb.Document{Name: d.name(), Fields: d.documentFields()}}
		if d.chance("masked", 50) {
			req.UpdateMask = d.mask()
		}
		if d.chance("must exist", 40) {
			req.CurrentDocument = &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: rapid.Bool().Draw(d.T, "exists")}}
		}
		return updateStep(req)
	default:
		return deleteStep(&pb.DeleteDocumentRequest{Name: d.name()})
	}
}
