package firestoreemu

import (
	"fmt"
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// apply commits writes and returns the answer.
func (r *raw) apply(writes ...*pb.Write) (*pb.CommitResponse, error) {
	return r.rpc.Commit(r.ctx, &pb.CommitRequest{Database: testDatabase, Writes: writes})
}

func (r *raw) mustApply(writes ...*pb.Write) *pb.CommitResponse {
	r.t.Helper()
	answer, err := r.apply(writes...)
	if err != nil {
		r.t.Fatalf("commit: %v", err)
	}
	return answer
}

// document reads a document whole, nil if it is missing.
func (r *raw) document(id string) *pb.Document {
	r.t.Helper()
	d, err := r.rpc.GetDocument(r.ctx, &pb.GetDocumentRequest{Name: doc(id)})
	if codeOf(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// fieldsOf is a write of fields, with a mask if one is given.
func fieldsOf(id string, fields map[string]*pb.Value, mask ...string) *pb.Write {
	w := &pb.Write{Operation: &pb.Write_Update{Update: &pb.Document{Name: doc(id), Fields: fields}}}
	if mask != nil {
		w.UpdateMask = &pb.DocumentMask{FieldPaths: mask}
	}
	return w
}

func with(w *pb.Write, p *pb.Precondition) *pb.Write {
	w.CurrentDocument = p
	return w
}

func exists(yes bool) *pb.Precondition {
	return &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: yes}}
}

func version(at *timestamppb.Timestamp) *pb.Precondition {
	return &pb.Precondition{ConditionType: &pb.Precondition_UpdateTime{UpdateTime: at}}
}

// wantFields compares the fields of a document; nil means that it must not exist.
func (r *raw) wantFields(id string, want map[string]*pb.Value) {
	r.t.Helper()
	d := r.document(id)
	if d == nil || want == nil {
		if d != nil || want != nil {
			r.t.Errorf("%s = %v, want %v", id, d, want)
		}
		return
	}
	if diff := cmp.Diff(want, d.GetFields(), protocmp.Transform(), cmpopts.EquateEmpty()); diff != "" {
		r.t.Errorf("%s: %s", id, diff)
	}
}

// All writes of a commit are applied in order, or none (E-WR-01).
func TestWrite_IsAtomicAndOrdered(t *testing.T) {
	r := newRaw(t, Options{})
	answer := r.mustApply(set("a", 1), set("b", 1), set("a", 2), remove("b"))
	r.wantFields("a", map[string]*pb.Value{"n": integer(2)})
	r.wantFields("b", nil)
	if len(answer.GetWriteResults()) != 4 {
		t.Errorf("%d results, want 4", len(answer.GetWriteResults()))
	}
	_, err := r.apply(set("a", 3), with(set("none", 1), exists(true)))
	wantCode(t, "commit with a failing write", err, codes.NotFound)
	r.wantFields("a", map[string]*pb.Value{"n": integer(2)})
}

// A mask sets the fields that the document has and deletes those that it lacks
// (E-WR-02).
func TestWrite_AppliesMasks(t *testing.T) {
	type fields = map[string]*pb.Value
	start := fields{"a": integer(1), "b": integer(2)}
	cases := []struct {
		name string
		w    *pb.Write
		want fields
	}{
		{"none replaces", fieldsOf("d", fields{"c": integer(3)}), fields{"c": integer(3)}},
		{"sets and deletes", fieldsOf("d", fields{"a": integer(9)}, "a", "b"), fields{"a": integer(9)}},
		{"fields outside are ignored", fieldsOf("d", fields{"a": integer(9), "z": integer(8)}, "a"), fields{"a": integer(9), "b": integer(2)}},
		{"empty changes nothing", fieldsOf("d", fields{"a": integer(9)}, []string{}...), nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRaw(t, Options{})
			r.mustApply(fieldsOf("d", start))
			if c.want == nil {
				c.w.UpdateMask, c.want = &pb.DocumentMask{}, start
			}
			r.mustApply(c.w)
			r.wantFields("d", c.want)
		})
	}
	r := newRaw(t, Options{})
	create := fieldsOf("new", fields{"a": integer(1)})
	create.UpdateMask = &pb.DocumentMask{}
	r.mustApply(create)
	r.wantFields("new", fields{}) // an empty mask creates a missing document
}

// E-WR-03
func TestWrite_ChecksPreconditions(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustApply(set("d", 1))
	stale := r.updateTime("d")
	r.mustApply(set("d", 2))
	cases := []struct {
		name   string
		writes []*pb.Write
		want   codes.Code
		text   string
	}{
		{"update missing", []*pb.Write{with(set("none", 1), exists(true))}, codes.NotFound, "No document to update: " + doc("none")},
		{"delete missing", []*pb.Write{with(remove("none"), exists(true))}, codes.NotFound, "No document to update: "},
		{"create existing", []*pb.Write{with(set("d", 1), exists(false))}, codes.AlreadyExists, "Document already exists: " + doc("d")},
		{"stale version", []*pb.Write{with(set("d", 1), version(stale))}, codes.FailedPrecondition, "does not match the required base version"},
		{"version of a missing one", []*pb.Write{with(set("none", 1), version(stale))}, codes.FailedPrecondition, "does not match the required base version"},
		{"set then create", []*pb.Write{set("new", 1), with(set("new", 2), exists(false))}, codes.InvalidArgument, ""},
		{"sees earlier writes", []*pb.Write{set("new", 1), with(set("new", 2), exists(true))}, codes.OK, ""},
		{"delete then create", []*pb.Write{remove("d"), with(set("d", 2), exists(false))}, codes.OK, ""},
	}
	for _, c := range cases {
		_, err := r.apply(c.writes...)
		wantText(t, c.name, err, c.want, c.text)
	}
	if _, err := r.apply(with(set("d", 7), version(r.updateTime("d")))); err != nil {
		t.Errorf("current version: %v", err)
	}
}

// A write that changes nothing creates no version, but the integer 1 is not the double
// 1.0 (E-WR-04).
func TestWrite_NoOpCreatesNoVersion(t *testing.T) {
	r := newRaw(t, Options{})
	first := r.mustApply(set("d", 1))
	again := r.mustApply(set("d", 1))
	if got, want := again.GetWriteResults()[0].GetUpdateTime().AsTime(), first.GetCommitTime().AsTime(); !got.Equal(want) {
		t.Errorf("result of a no-op: %v, want the stored version %v", got, want)
	}
	if !again.GetCommitTime().AsTime().After(first.GetCommitTime().AsTime()) {
		t.Error("the commit time of a no-op does not advance")
	}
	if got := r.updateTime("d").AsTime(); !got.Equal(first.GetCommitTime().AsTime()) {
		t.Errorf("update time %v after a no-op, want %v", got, first.GetCommitTime().AsTime())
	}
	double := r.mustApply(fieldsOf("d", map[string]*pb.Value{"n": {ValueType: &pb.Value_DoubleValue{DoubleValue: 1}}}))
	if got := r.updateTime("d").AsTime(); !got.Equal(double.GetCommitTime().AsTime()) {
		t.Error("replacing 1 by 1.0 created no version")
	}
}

// A deletion has no update time, a missing document can be deleted, and a recreated one
// has a new create time (E-WR-05).
func TestWrite_DeletesAndRecreates(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustApply(set("d", 1))
	created := r.document("d").GetCreateTime().AsTime()
	r.mustApply(set("d", 2))
	if got := r.document("d").GetCreateTime().AsTime(); !got.Equal(created) {
		t.Errorf("create time %v after an update, want %v", got, created)
	}
	answer := r.mustApply(remove("d"), remove("none"))
	for _, result := range answer.GetWriteResults() {
		if result.GetUpdateTime() != nil {
			t.Errorf("a deletion's result has the update time %v", result.GetUpdateTime().AsTime())
		}
	}
	r.mustApply(set("d", 2))
	if got := r.document("d").GetCreateTime().AsTime(); !got.After(created) {
		t.Errorf("create time %v after recreation, want a later one", got)
	}
	before := r.document("d").GetCreateTime().AsTime()
	r.mustApply(remove("d"), set("d", 2))
	if got := r.document("d").GetCreateTime().AsTime(); !got.After(before) {
		t.Errorf("create time %v after recreation in one commit, want a later one", got)
	}
}

// Transforms are applied after the update, in order, and return their results. The
// server time is the arrival of the request in milliseconds (E-WR-06).
func TestWrite_AppliesTransforms(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Date(2030, 1, 2, 3, 4, 5, 123456789, time.UTC))
	r := newRaw(t, Options{Clock: clock})
	type transform = pb.DocumentTransform_FieldTransform
	add := func(n int64) *transform {
		return &transform{FieldPath: "n", TransformType: &pb.DocumentTransform_FieldTransform_Increment{Increment: integer(n)}}
	}
	w := fieldsOf("d", map[string]*pb.Value{"n": integer(10)})
	w.UpdateTransforms = []*transform{
		add(1), add(2),
		{FieldPath: "at", TransformType: &pb.DocumentTransform_FieldTransform_SetToServerValue{
			SetToServerValue: pb.DocumentTransform_FieldTransform_REQUEST_TIME,
		}},
		{FieldPath: "tags", TransformType: &pb.DocumentTransform_FieldTransform_AppendMissingElements{
			AppendMissingElements: &pb.ArrayValue{Values: []*pb.Value{text("x")}},
		}},
	}
	answer := r.mustApply(w)
	arrival := timestamppb.New(time.Date(2030, 1, 2, 3, 4, 5, 123000000, time.UTC))
	stamp := &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: arrival}}
	r.wantFields("d", map[string]*pb.Value{
		"n": integer(13), "at": stamp,
		"tags": {ValueType: &pb.Value_ArrayValue{ArrayValue: &pb.ArrayValue{Values: []*pb.Value{text("x")}}}},
	})
	want := []*pb.Value{integer(11), integer(13), stamp, {ValueType: &pb.Value_NullValue{}}}
	if diff := cmp.Diff(want, answer.GetWriteResults()[0].GetTransformResults(), protocmp.Transform()); diff != "" {
		t.Errorf("transform results: %s", diff)
	}
	if arrival.AsTime().After(answer.GetCommitTime().AsTime()) {
		t.Errorf("request time %v after commit time %v", arrival.AsTime(), answer.GetCommitTime().AsTime())
	}
	r.mustApply(&pb.Write{Operation: &pb.Write_Transform{Transform: &pb.DocumentTransform{
		Document: doc("missing"), FieldTransforms: []*transform{add(5)},
	}}})
	r.wantFields("missing", map[string]*pb.Value{"n": integer(5)})
}

// Timestamps are stored in microseconds, a commit can have more than 500 writes, and a
// document at most 500 transforms (E-WR-07).
func TestWrite_HasLimits(t *testing.T) {
	r := newRaw(t, Options{})
	at := func(nanos int32) *pb.Value {
		return &pb.Value{ValueType: &pb.Value_TimestampValue{TimestampValue: &timestamppb.Timestamp{Seconds: 1, Nanos: nanos}}}
	}
	r.mustApply(fieldsOf("t", map[string]*pb.Value{"t": at(123456789)}))
	r.wantFields("t", map[string]*pb.Value{"t": at(123456000)})
	var many []*pb.Write
	for i := range int64(1200) {
		many = append(many, set(fmt.Sprint(i), i))
	}
	r.mustApply(many...)
	r.wantFields("1199", map[string]*pb.Value{"n": integer(1199)})
	transforming := func(id string, n int) *pb.Write {
		w := set(id, 1)
		for range n {
			w.UpdateTransforms = append(w.UpdateTransforms, &pb.DocumentTransform_FieldTransform{
				FieldPath: "n", TransformType: &pb.DocumentTransform_FieldTransform_Increment{Increment: integer(1)},
			})
		}
		return w
	}
	r.mustApply(transforming("d", 400), transforming("d", 100), transforming("e", 500))
	for name, writes := range map[string][]*pb.Write{
		"501 transforms in one write":  {transforming("d", 501)},
		"501 transforms in two writes": {transforming("d", 400), set("e", 1), transforming("d", 101)},
	} {
		_, err := r.apply(writes...)
		wantText(t, name, err, codes.InvalidArgument, "more than 500 field transforms")
	}
}

// BatchWrite applies each write independently, and none if a document occurs twice or a
// write is malformed (E-WR-08).
func TestWrite_BatchIsNotAtomic(t *testing.T) {
	r := newRaw(t, Options{})
	answer, err := r.rpc.BatchWrite(r.ctx, &pb.BatchWriteRequest{Database: testDatabase, Writes: []*pb.Write{
		set("a", 1), with(set("b", 1), exists(true)), set("c", 1),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []codes.Code{codes.OK, codes.NotFound, codes.OK} {
		if got := codes.Code(answer.GetStatus()[i].GetCode()); got != want {
			t.Errorf("write %d: %v, want %v", i, got, want)
		}
		if has := answer.GetWriteResults()[i].GetUpdateTime() != nil; has != (want == codes.OK) {
			t.Errorf("write %d: has an update time: %v", i, has)
		}
	}
	_, err = r.rpc.BatchWrite(r.ctx, &pb.BatchWriteRequest{Database: testDatabase, Writes: []*pb.Write{set("a", 1), set("a", 2)}})
	wantCode(t, "one name twice", err, codes.InvalidArgument)
	_, err = r.rpc.BatchWrite(r.ctx, &pb.BatchWriteRequest{Database: testDatabase, Writes: []*pb.Write{set("d", 1), set("__x__", 1)}})
	wantCode(t, "beside a reserved id", err, codes.InvalidArgument)
	if r.document("d") != nil {
		t.Error("a write beside a malformed one was applied")
	}
}

// E-ER-01
func TestWrite_RefusesInvalidInput(t *testing.T) {
	r := newRaw(t, Options{})
	foreign := set("d", 1)
	foreign.GetUpdate().Name = "projects/test/databases/other/documents/c/d"
	big := fieldsOf("d", map[string]*pb.Value{"s": text(strings.Repeat("x", 1<<20))})
	var sum []*pb.Write
	for i := range 12 {
		sum = append(sum, fieldsOf(fmt.Sprint(i), map[string]*pb.Value{"s": text(strings.Repeat("x", 1_000_000))}))
	}
	fat := fieldsOf("d", map[string]*pb.Value{"a": text(strings.Repeat("x", 600_000)), "b": text(strings.Repeat("x", 600_000))})
	cases := map[string][]*pb.Write{
		"no operation":          {{}},
		"foreign database":      {foreign},
		"reserved id":           {set("__x__", 1)},
		"dot":                   {set(".", 1)},
		"long id":               {set(strings.Repeat("x", 1501), 1)},
		"long string":           {big},
		"large document":        {fat},
		"large request":         sum,
		"masked delete":         {{Operation: &pb.Write_Delete{Delete: doc("d")}, UpdateMask: &pb.DocumentMask{}}},
		"empty transform":       {{Operation: &pb.Write_Transform{Transform: &pb.DocumentTransform{Document: doc("d")}}}},
		"value without a type":  {fieldsOf("d", map[string]*pb.Value{"a": {}})},
		"bad mask path":         {fieldsOf("d", map[string]*pb.Value{"a": integer(1)}, "a..b")},
		"empty field name":      {fieldsOf("d", map[string]*pb.Value{"": integer(1)})},
		"update without a name": {{Operation: &pb.Write_Update{Update: &pb.Document{}}}},
	}
	for name, writes := range cases {
		_, err := r.apply(writes...)
		wantCode(t, name, err, codes.InvalidArgument)
	}
	_, err := r.apply(sum...)
	wantText(t, "large request", err, codes.InvalidArgument, "Request payload size exceeds the limit: 10485760 bytes.")
	if _, err := r.apply(set("____", 1)); err != nil { // legal
		t.Errorf("____: %v", err)
	}
}
