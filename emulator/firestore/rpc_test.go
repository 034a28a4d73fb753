package firestoreemu

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Requests that are not implemented are refused and not ignored (E-RPC-03).
func TestRPC_RefusesUnimplemented(t *testing.T) {
	r := newRaw(t, Options{})
	const text = "not implemented (E-RPC-03)"
	write, err := r.rpc.Write(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, err = write.Recv()
	wantText(t, "Write", err, codes.Unimplemented, "embedded firestore: Write "+text)
	pipeline, err := r.rpc.ExecutePipeline(r.ctx, &pb.ExecutePipelineRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = pipeline.Recv()
	wantText(t, "ExecutePipeline", err, codes.Unimplemented, "ExecutePipeline "+text)
	explain, err := r.rpc.RunQuery(r.ctx, &pb.RunQueryRequest{Parent: testRoot, ExplainOptions: &pb.ExplainOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = explain.Recv()
	wantText(t, "explain", err, codes.Unimplemented, "explain_options "+text)
}

// A field that is newer than this server is refused anywhere in a request, in unary
// calls and in streams (E-RPC-03).
func TestRPC_RefusesUnknownFields(t *testing.T) {
	r := newRaw(t, Options{})
	newer := func(m proto.Message) {
		m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 1))
	}
	write := func() *pb.Write {
		w := set("a", 1)
		w.CurrentDocument = &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: false}}
		w.UpdateTransforms = []*pb.DocumentTransform_FieldTransform{{
			FieldPath:     "u",
			TransformType: &pb.DocumentTransform_FieldTransform_AppendMissingElements{AppendMissingElements: &pb.ArrayValue{Values: []*pb.Value{integer(1)}}},
		}}
		inner := map[string]*pb.Value{"list": {ValueType: &pb.Value_ArrayValue{ArrayValue: &pb.ArrayValue{Values: []*pb.Value{integer(1)}}}}}
		w.GetUpdate().Fields["map"] = &pb.Value{ValueType: &pb.Value_MapValue{MapValue: &pb.MapValue{Fields: inner}}}
		return w
	}
	list := func(w *pb.Write) *pb.ArrayValue {
		return w.GetUpdate().GetFields()["map"].GetMapValue().GetFields()["list"].GetArrayValue()
	}
	for want, in := range map[string]func(*pb.CommitRequest) proto.Message{
		"CommitRequest":  func(c *pb.CommitRequest) proto.Message { return c },
		"Write":          func(c *pb.CommitRequest) proto.Message { return c.Writes[1] },
		"Document":       func(c *pb.CommitRequest) proto.Message { return c.Writes[1].GetUpdate() },
		"Precondition":   func(c *pb.CommitRequest) proto.Message { return c.Writes[1].GetCurrentDocument() },
		"FieldTransform": func(c *pb.CommitRequest) proto.Message { return c.Writes[1].GetUpdateTransforms()[0] },
		"MapValue": func(c *pb.CommitRequest) proto.Message {
			return c.Writes[1].GetUpdate().GetFields()["map"].GetMapValue()
		},
		"ArrayValue": func(c *pb.CommitRequest) proto.Message { return list(c.Writes[1]) },
		"Value":      func(c *pb.CommitRequest) proto.Message { return list(c.Writes[1]).GetValues()[0] },
		"Value of an array union": func(c *pb.CommitRequest) proto.Message {
			return c.Writes[1].GetUpdateTransforms()[0].GetAppendMissingElements().GetValues()[0]
		},
	} {
		c := &pb.CommitRequest{Database: testDatabase, Writes: []*pb.Write{set("b", 1), write()}}
		newer(in(c))
		_, err := r.rpc.Commit(r.ctx, c)
		message, _, _ := strings.Cut(want, " ")
		wantText(t, want, err, codes.Unimplemented, "field 999 of "+message+" not implemented (E-RPC-03)")
	}

	limited := &pb.StructuredQuery{
		From:  []*pb.StructuredQuery_CollectionSelector{{CollectionId: "c"}},
		Limit: wrapperspb.Int32(1),
	}
	newer(limited.Limit)
	query, err := r.rpc.RunQuery(r.ctx, &pb.RunQueryRequest{Parent: testRoot, QueryType: &pb.RunQueryRequest_StructuredQuery{StructuredQuery: limited}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = query.Recv()
	wantText(t, "query", err, codes.Unimplemented, "field 999 of Int32Value")

	target := &pb.Target{TargetType: &pb.Target_Documents{Documents: &pb.Target_DocumentsTarget{Documents: []string{doc("a")}}}}
	newer(target)
	listen, err := r.rpc.Listen(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := listen.Send(&pb.ListenRequest{Database: testDatabase, TargetChange: &pb.ListenRequest_AddTarget{AddTarget: target}}); err != nil {
		t.Fatal(err)
	}
	_, err = listen.Recv()
	wantText(t, "listen", err, codes.Unimplemented, "field 999 of Target")
}

// Databases are created on first use and isolated. Illegal names are refused
// (E-RPC-04).
func TestRPC_IsolatesDatabases(t *testing.T) {
	ctx := testContext(t)
	addr := serverUnderTest(t)
	one, two := newClient(t, addr), newClient(t, addr)
	if _, err := one.Doc("c/d").Set(ctx, fields{"n": 1}); err != nil {
		t.Fatal(err)
	}
	if snap, err := two.Doc("c/d").Get(ctx); codeOf(err) != codes.NotFound {
		t.Errorf("another project sees %v, %v", snap.Data(), err)
	}
	r := newRaw(t, Options{})
	_, err := r.rpc.BeginTransaction(r.ctx, &pb.BeginTransactionRequest{Database: "nonsense"})
	wantCode(t, "bad database", err, codes.InvalidArgument)
}

// An address in use or an invalid option is an error in one line that names it.
func TestStart_RefusesInvalidOptions(t *testing.T) {
	s := StartT(t, Options{})
	for part, opts := range map[string]Options{
		"cannot listen on Addr": {Addr: s.Addr()},
		"not loopback":          {Addr: "0.0.0.0:0"},
		"want host:port":        {Addr: "nonsense"},
		"Indexes":               {Indexes: []byte("{")},
		"Retention":             {Retention: -time.Second},
		"set only one of them":  {Addr: "127.0.0.1:0", InProcess: true},
	} {
		_, err := Start(opts)
		if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want one line with %q", err, part)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// The pages of a listing are of one snapshot and can include missing parents
// (E-RPC-01).
func TestRPC_ListsDocuments(t *testing.T) {
	r := newRaw(t, Options{})
	for i := range 5 {
		r.mustCommit(nil, set(fmt.Sprint(i), int64(i)))
	}
	child := set("x", 1)
	child.GetUpdate().Name = doc("ghost") + "/sub/s"
	r.mustCommit(nil, child)
	list := func(req *pb.ListDocumentsRequest) []string {
		t.Helper()
		req.Parent, req.CollectionId, req.PageSize = testRoot, "c", 2
		var ids []string
		for {
			answer, err := r.rpc.ListDocuments(r.ctx, req)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range answer.GetDocuments() {
				ids = append(ids, d.GetName()[len(doc("")):])
				if len(d.GetFields()) > 0 && req.GetMask() != nil {
					t.Errorf("fields %v with an empty mask", d.GetFields())
				}
			}
			if len(ids) == 2 {
				r.mustCommit(nil, set("00", 9)) // must not shift the pages
			}
			if req.PageToken = answer.GetNextPageToken(); req.PageToken == "" {
				return ids
			}
		}
	}
	if got, want := list(&pb.ListDocumentsRequest{}), []string{"0", "1", "2", "3", "4"}; !slices.Equal(got, want) {
		t.Errorf("documents %v, want %v", got, want)
	}
	got := list(&pb.ListDocumentsRequest{ShowMissing: true, Mask: &pb.DocumentMask{}})
	if want := []string{"0", "00", "1", "2", "3", "4", "ghost"}; !slices.Equal(got, want) {
		t.Errorf("with missing ones %v, want %v", got, want)
	}
	got = list(&pb.ListDocumentsRequest{OrderBy: "n desc"})
	if want := []string{"00", "4", "3", "2", "1", "0"}; !slices.Equal(got, want) {
		t.Errorf("ordered %v, want %v", got, want)
	}
	_, err := r.rpc.ListDocuments(r.ctx, &pb.ListDocumentsRequest{Parent: testRoot, CollectionId: "c", PageToken: "?"})
	wantCode(t, "bad token", err, codes.InvalidArgument)
}

// Pages with large documents are smaller, so that every client can receive them
// (E-RPC-01).
func TestRPC_ListsLargeDocuments(t *testing.T) {
	const documents = 18
	r := newRaw(t, Options{})
	for i := range documents {
		large := set(fmt.Sprint(i), 1)
		large.GetUpdate().Fields["text"] = text(strings.Repeat("x", 1_000_000))
		r.mustCommit(nil, large)
	}
	listed := 0
	for token := ""; ; {
		page, err := r.rpc.ListDocuments(r.ctx, &pb.ListDocumentsRequest{Parent: testRoot, CollectionId: "c", PageToken: token})
		if err != nil {
			t.Fatal(err)
		}
		listed += len(page.GetDocuments())
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if listed != documents {
		t.Errorf("listed %d of %d documents", listed, documents)
	}
}

// Collections are listed if they have documents, or documents below missing ones.
func TestRPC_ListsCollectionIds(t *testing.T) {
	r := newRaw(t, Options{})
	deep := set("x", 1)
	deep.GetUpdate().Name = testRoot + "/a/missing/sub/s"
	gone := set("x", 1)
	gone.GetUpdate().Name = testRoot + "/gone/g"
	r.mustCommit(nil, set("d", 1), deep, gone)
	r.mustCommit(nil, &pb.Write{Operation: &pb.Write_Delete{Delete: testRoot + "/gone/g"}})
	for parent, want := range map[string][]string{testRoot: {"a", "c"}, testRoot + "/a/missing": {"sub"}, doc("d"): nil} {
		answer, err := r.rpc.ListCollectionIds(r.ctx, &pb.ListCollectionIdsRequest{Parent: parent})
		if err != nil || !slices.Equal(answer.GetCollectionIds(), want) {
			t.Errorf("%s: %v, %v; want %v", parent, answer.GetCollectionIds(), err, want)
		}
	}
}

// The single-document RPCs work like commits (E-RPC-02).
func TestRPC_HandlesSingleDocuments(t *testing.T) {
	r := newRaw(t, Options{})
	made, err := r.rpc.CreateDocument(r.ctx, &pb.CreateDocumentRequest{
		Parent: testRoot, CollectionId: "c", DocumentId: "d", Document: &pb.Document{Fields: map[string]*pb.Value{"n": integer(1)}},
	})
	if err != nil || made.GetName() != doc("d") || made.GetCreateTime() == nil {
		t.Fatalf("create: %v, %v", made, err)
	}
	_, err = r.rpc.CreateDocument(r.ctx, &pb.CreateDocumentRequest{Parent: testRoot, CollectionId: "c", DocumentId: "d"})
	wantCode(t, "create again", err, codes.AlreadyExists)
	anonymous, err := r.rpc.CreateDocument(r.ctx, &pb.CreateDocumentRequest{Parent: testRoot, CollectionId: "c"})
	if err != nil || anonymous.GetName() == doc("") {
		t.Errorf("create without an id: %v, %v", anonymous, err)
	}
	changed, err := r.rpc.UpdateDocument(r.ctx, &pb.UpdateDocumentRequest{
		Document:   &pb.Document{Name: doc("d"), Fields: map[string]*pb.Value{"m": integer(2)}},
		UpdateMask: &pb.DocumentMask{FieldPaths: []string{"m"}},
	})
	if err != nil || len(changed.GetFields()) != 2 {
		t.Errorf("update: %v, %v; want both fields", changed, err)
	}
	if _, err := r.rpc.DeleteDocument(r.ctx, &pb.DeleteDocumentRequest{Name: doc("d")}); err != nil {
		t.Error(err)
	}
	_, err = r.rpc.GetDocument(r.ctx, &pb.GetDocumentRequest{Name: doc("d")})
	wantCode(t, "get deleted", err, codes.NotFound)
}

// A query without an index is refused, logged or run, depending on the mode. A
// server without an index configuration runs every query (E-IX-06).
func TestServer_IndexModes(t *testing.T) {
	ctx := testContext(t)
	for name, c := range map[string]struct {
		indexes []byte
		mode    IndexMode
		want    codes.Code
		logged  bool
	}{
		"no configuration": {nil, IndexStrict, codes.OK, false},
		"strict":           {[]byte("{}"), IndexStrict, codes.FailedPrecondition, false},
		"warn":             {[]byte("{}"), IndexWarn, codes.OK, true},
		"off":              {[]byte("{}"), IndexOff, codes.OK, false},
	} {
		t.Run(name, func(t *testing.T) {
			var logged bytes.Buffer
			log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
			client := StartT(t, Options{Indexes: c.indexes, IndexMode: c.mode, Logger: log}).ClientT(t, "test")
			_, err := client.Collection("c").Where("x", "==", 1).OrderBy("q", 1).Documents(ctx).GetAll()
			wantCode(t, "query", err, c.want)
			if got := strings.Contains(logged.String(), "The query requires an index."); got != c.logged {
				t.Errorf("logged %q", logged.String())
			}
		})
	}
}

func TestCheckIndexes(t *testing.T) {
	if err := CheckIndexes([]byte(`{"indexes":[]}`)); err != nil {
		t.Errorf("legal file: %v", err)
	}
	if err := CheckIndexes([]byte(`{"index":[]}`)); err == nil || !strings.Contains(err.Error(), `unknown field "index"`) {
		t.Errorf("misspelled field: %v", err)
	}
}
