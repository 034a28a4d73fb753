package firestoreemu

import (
	"context"
	"os"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/google/uuid"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dronefleet/dronefleet/testkit/leaktest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDirEnv); dir != "" {
		serveAsChild(dir)
		return
	}
	leaktest.Main(m)
}

// testTimeout bounds every test that could hang. No passing test waits for it.
const testTimeout = 60 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// serverUnderTest is the address of the server that FIRESTORE_EMULATOR_HOST
// names, else of an embedded one.
func serverUnderTest(t testing.TB) string {
	t.Helper()
	if addr := os.Getenv("FIRESTORE_EMULATOR_HOST"); addr != "" {
		return addr
	}
	return StartT(t, Options{}).Addr()
}

func dial(t testing.TB, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatalf("dial %s: %v", addr, err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// newClient returns the real Go client with a project of its own.
func newClient(t testing.TB, addr string) *firestore.Client {
	t.Helper()
	return clientFor(t, addr, "test-"+uuid.NewString())
}

func clientFor(t testing.TB, addr, project string) *firestore.Client {
	t.Helper()
	c, err := firestore.NewClient(context.Background(), project,
		option.WithEndpoint(addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	if err != nil {
		t.Fatalf("client for %s: %v", addr, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

const (
	testDatabase = "projects/test/databases/(default)"
	testRoot     = testDatabase + "/documents"
)

// raw calls the server without a client library, to control every step.
type raw struct {
	t      testing.TB
	ctx    context.Context
	rpc    pb.FirestoreClient
	server *Server
	heard  heard // in the last Listen
}

func newRaw(t testing.TB, opts Options) *raw {
	t.Helper()
	s := StartT(t, opts)
	return &raw{t: t, ctx: testContext(t), rpc: pb.NewFirestoreClient(dial(t, s.Addr())), server: s}
}

func doc(id string) string { return testRoot + "/c/" + id }

func integer(n int64) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_IntegerValue{IntegerValue: n}}
}

func text(s string) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_StringValue{StringValue: s}}
}

// set is a write that replaces a document with {n: value}.
func set(id string, n int64) *pb.Write {
	return &pb.Write{Operation: &pb.Write_Update{Update: &pb.Document{
		Name: doc(id), Fields: map[string]*pb.Value{"n": integer(n)},
	}}}
}

func remove(id string) *pb.Write {
	return &pb.Write{Operation: &pb.Write_Delete{Delete: doc(id)}}
}

// begin opens a read-write transaction; retryOf may be nil.
func (r *raw) begin(retryOf []byte) []byte {
	r.t.Helper()
	answer, err := r.rpc.BeginTransaction(r.ctx, &pb.BeginTransactionRequest{
		Database: testDatabase,
		Options: &pb.TransactionOptions{Mode: &pb.TransactionOptions_ReadWrite_{
			ReadWrite: &pb.TransactionOptions_ReadWrite{RetryTransaction: retryOf},
		}},
	})
	if err != nil {
		r.t.Fatalf("BeginTransaction: %v", err)
	}
	return answer.GetTransaction()
}

// tryGet reads the field n of documents, in a transaction unless tx is nil. Missing
// documents read as -1.
func (r *raw) tryGet(tx []byte, ids ...string) (map[string]int64, error) {
	req := &pb.BatchGetDocumentsRequest{Database: testDatabase}
	if tx != nil {
		req.ConsistencySelector = &pb.BatchGetDocumentsRequest_Transaction{Transaction: tx}
	}
	for _, id := range ids {
		req.Documents = append(req.Documents, doc(id))
	}
	stream, err := r.rpc.BatchGetDocuments(r.ctx, req)
	if err != nil {
		return nil, err
	}
	values := map[string]int64{}
	for range ids {
		answer, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if found := answer.GetFound(); found != nil {
			values[found.GetName()[len(doc("")):]] = found.GetFields()["n"].GetIntegerValue()
		} else {
			values[answer.GetMissing()[len(doc("")):]] = -1
		}
	}
	return values, nil
}

func (r *raw) get(tx []byte, id string) int64 {
	r.t.Helper()
	values, err := r.tryGet(tx, id)
	if err != nil {
		r.t.Fatalf("get %s: %v", id, err)
	}
	return values[id]
}

// tryQuery returns the field n of the documents in collection c with n >= least.
func (r *raw) tryQuery(tx []byte, least int64, limit int32) ([]int64, error) {
	q := &pb.StructuredQuery{
		From: []*pb.StructuredQuery_CollectionSelector{{CollectionId: "c"}},
		Where: &pb.StructuredQuery_Filter{FilterType: &pb.StructuredQuery_Filter_FieldFilter{
			FieldFilter: &pb.StructuredQuery_FieldFilter{
				Field: &pb.StructuredQuery_FieldReference{FieldPath: "n"},
				Op:    pb.StructuredQuery_FieldFilter_GREATER_THAN_OR_EQUAL,
				Value: integer(least),
			},
		}},
	}
	if limit > 0 {
		q.Limit = wrapInt32(limit)
	}
	req := &pb.RunQueryRequest{Parent: testRoot, QueryType: &pb.RunQueryRequest_StructuredQuery{StructuredQuery: q}}
	if tx != nil {
		req.ConsistencySelector = &pb.RunQueryRequest_Transaction{Transaction: tx}
	}
	stream, err := r.rpc.RunQuery(r.ctx, req)
	if err != nil {
		return nil, err
	}
	found := []int64{}
	for {
		answer, err := stream.Recv()
		if isEOF(err) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if d := answer.GetDocument(); d != nil {
			found = append(found, d.GetFields()["n"].GetIntegerValue())
		}
	}
}

func (r *raw) query(tx []byte, least int64, limit int32) []int64 {
	r.t.Helper()
	found, err := r.tryQuery(tx, least, limit)
	if err != nil {
		r.t.Fatalf("query: %v", err)
	}
	return found
}

// commit commits writes, in a transaction unless tx is nil.
func (r *raw) commit(tx []byte, writes ...*pb.Write) error {
	_, err := r.rpc.Commit(r.ctx, &pb.CommitRequest{Database: testDatabase, Transaction: tx, Writes: writes})
	return err
}

func (r *raw) mustCommit(tx []byte, writes ...*pb.Write) {
	r.t.Helper()
	if err := r.commit(tx, writes...); err != nil {
		r.t.Fatalf("commit: %v", err)
	}
}

func (r *raw) rollback(tx []byte) error {
	_, err := r.rpc.Rollback(r.ctx, &pb.RollbackRequest{Database: testDatabase, Transaction: tx})
	return err
}

// blocks starts f, which must wait for a lock, and returns when this many requests
// wait. The returned function waits for the result of f.
func blocks[T any](r *raw, waiting int, f func() (T, error)) func() (T, error) {
	r.t.Helper()
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := f()
		done <- outcome{value, err}
	}()
	d, err := r.server.database(testDatabase)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := d.locks.AwaitWaiting(r.ctx, waiting); err != nil {
		r.t.Fatalf("expected %d requests to wait for locks: %v", waiting, err)
	}
	return func() (T, error) {
		o := <-done
		return o.value, o.err
	}
}

// commitBlocks is blocks for a commit.
func (r *raw) commitBlocks(waiting int, tx []byte, writes ...*pb.Write) func() error {
	r.t.Helper()
	wait := blocks(r, waiting, func() (struct{}, error) { return struct{}{}, r.commit(tx, writes...) })
	return func() error {
		_, err := wait()
		return err
	}
}
