package firestoreemu

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
)

func wantText(t testing.TB, what string, err error, code codes.Code, part string) {
	t.Helper()
	wantCode(t, what, err, code)
	if !strings.Contains(status.Convert(err).Message(), part) {
		t.Errorf("%s: %q, want it to contain %q", what, status.Convert(err).Message(), part)
	}
}

const (
	textExpired = "The referenced transaction has expired or is no longer valid."
	textGarbage = "Invalid transaction."
)

// Garbage is distinguished from an id that was valid before, including in another
// database or before a restart (E-TX-01, E-TX-07, E-TX-14, E-TX-15).
func TestTransaction_ChecksIds(t *testing.T) {
	r := newRaw(t, Options{})
	tx := r.begin(nil)
	r.mustCommit(tx, set("d", 1))
	wantText(t, "second commit", r.commit(tx, set("d", 2)), codes.InvalidArgument, textExpired)
	if got := r.get(nil, "d"); got != 1 {
		t.Errorf("d = %d: a closed transaction was applied again", got)
	}
	_, err := r.tryGet(tx, "d")
	wantText(t, "read after commit", err, codes.InvalidArgument, textExpired)
	if err := r.rollback(tx); err != nil {
		t.Errorf("rollback of a committed transaction: %v, want OK", err)
	}
	for name, garbage := range map[string][]byte{
		"short":   []byte("nonsense"),
		"altered": append(slices.Clone(tx[:len(tx)-1]), tx[len(tx)-1]^1),
	} {
		wantText(t, name+" commit", r.commit(garbage, set("d", 3)), codes.InvalidArgument, textGarbage)
		wantText(t, name+" rollback", r.rollback(garbage), codes.InvalidArgument, textGarbage)
		_, err := r.tryGet(garbage, "d")
		wantText(t, name+" read", err, codes.InvalidArgument, textGarbage)
		_, err = r.rpc.BeginTransaction(r.ctx, &pb.BeginTransactionRequest{Database: testDatabase,
			Options: &pb.TransactionOptions{Mode: &pb.TransactionOptions_ReadWrite_{
				ReadWrite: &pb.TransactionOptions_ReadWrite{RetryTransaction: garbage},
			}}})
		wantText(t, name+" retry", err, codes.InvalidArgument, textGarbage)
	}
	_, err = r.rpc.Commit(r.ctx, &pb.CommitRequest{Database: "projects/test/databases/other", Transaction: tx})
	wantText(t, "another database", err, codes.InvalidArgument, textGarbage)

	later := newRaw(t, Options{})
	wantText(t, "commit from before a restart", later.commit(tx, set("d", 4)), codes.InvalidArgument, textExpired)
	later.begin(tx) // accepted, although its age is unknown
}

// Without options a transaction is read-write (E-TX-02).
func TestTransaction_DefaultIsReadWrite(t *testing.T) {
	r := newRaw(t, Options{})
	begun, err := r.rpc.BeginTransaction(r.ctx, &pb.BeginTransactionRequest{Database: testDatabase})
	if err != nil {
		t.Fatal(err)
	}
	r.mustCommit(begun.GetTransaction(), set("d", 1))
}

// A read-only transaction reads one snapshot, locks nothing and writes nothing
// (E-TX-03, E-ST-04).
func TestTransaction_ReadOnlyReadsSnapshot(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1))
	begin := func(at *timestamppb.Timestamp) []byte {
		t.Helper()
		options := &pb.TransactionOptions_ReadOnly{}
		if at != nil {
			options.ConsistencySelector = &pb.TransactionOptions_ReadOnly_ReadTime{ReadTime: at}
		}
		begun, err := r.rpc.BeginTransaction(r.ctx, &pb.BeginTransactionRequest{Database: testDatabase,
			Options: &pb.TransactionOptions{Mode: &pb.TransactionOptions_ReadOnly_{ReadOnly: options}}})
		if err != nil {
			t.Fatal(err)
		}
		return begun.GetTransaction()
	}
	before := r.updateTime("d")
	tx := begin(nil)
	r.mustCommit(nil, set("d", 2)) // before its first read
	if got := r.get(tx, "d"); got != 2 {
		t.Errorf("first read: %d, want 2", got)
	}
	r.mustCommit(nil, set("d", 3)) // does not wait
	if got := r.query(tx, 0, 0); !slices.Equal(got, []int64{2}) {
		t.Errorf("second read: %v, want [2] again", got)
	}
	r.mustCommit(tx) // the Go client sends it
	writer := begin(nil)
	wantText(t, "write", r.commit(writer, set("d", 4)), codes.InvalidArgument, "Cannot modify entities in a read-only transaction.")
	if got := r.get(begin(before), "d"); got != 1 {
		t.Errorf("as of the first version: %d, want 1", got)
	}
}

// A read-only transaction cannot be retried, whether it is open, closed or from before
// a restart (E-TX-07).
func TestTransaction_RefusesRetryOfReadOnly(t *testing.T) {
	r := newRaw(t, Options{})
	begun, err := r.rpc.BeginTransaction(r.ctx, &pb.BeginTransactionRequest{Database: testDatabase,
		Options: &pb.TransactionOptions{Mode: &pb.TransactionOptions_ReadOnly_{ReadOnly: &pb.TransactionOptions_ReadOnly{}}}})
	if err != nil {
		t.Fatal(err)
	}
	tx := begun.GetTransaction()
	const textReadOnly = "Cannot retry a read-only transaction."
	retry := func(what string, r *raw, mode pb.TransactionOptions_ConcurrencyMode) {
		t.Helper()
		_, err := r.rpc.BeginTransaction(r.ctx, &pb.BeginTransactionRequest{Database: testDatabase,
			Options: &pb.TransactionOptions{Mode: &pb.TransactionOptions_ReadWrite_{
				ReadWrite: &pb.TransactionOptions_ReadWrite{RetryTransaction: tx, ConcurrencyMode: mode},
			}}})
		wantText(t, what, err, codes.InvalidArgument, textReadOnly)
	}
	retry("open", r, pb.TransactionOptions_PESSIMISTIC)
	retry("open, optimistic", r, pb.TransactionOptions_OPTIMISTIC)
	r.mustCommit(tx)
	retry("closed", r, pb.TransactionOptions_PESSIMISTIC)
	retry("from before a restart", newRaw(t, Options{}), pb.TransactionOptions_PESSIMISTIC)
}

// updateTime reads a document's version.
func (r *raw) updateTime(id string) *timestamppb.Timestamp {
	r.t.Helper()
	d, err := r.rpc.GetDocument(r.ctx, &pb.GetDocumentRequest{Name: doc(id)})
	if err != nil {
		r.t.Fatal(err)
	}
	return d.GetUpdateTime()
}

// A read in a transaction sees the newest state at the time of its lock (E-TX-04).
func TestTransaction_ReadsNewest(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1), set("e", 1))
	tx := r.begin(nil)
	r.get(tx, "d")
	r.mustCommit(nil, set("e", 2))
	if got := r.get(tx, "e"); got != 2 {
		t.Errorf("e = %d, want 2: committed before its lock", got)
	}
	r.mustCommit(tx, set("d", 2))
}

// A write waits for a query if the document matches its scope, filters and window,
// before or after the write, and only then (E-TX-05).
func TestTransaction_QueryLocksRange(t *testing.T) {
	cases := []struct {
		name  string
		limit int32
		write *pb.Write
		waits bool
	}{
		{"create that does not match", 0, set("new", 1), false},
		{"create that matches", 0, set("new", 60), true},
		{"change out of the result", 0, set("b", 1), true},
		{"change into the result", 0, set("low", 70), true},
		{"deletion of a result", 0, remove("b"), true},
		{"deletion of another", 0, remove("low"), false},
		{"other collection", 0, otherCollection(60), false},
		{"after the last of a full window", 2, set("new", 90), false},
		{"inside a full window", 2, set("new", 55), true},
		{"window not full", 9, set("new", 90), true},
		{"rewrite of a result without a change", 0, set("b", 50), true},
		{"rewrite of another without a change", 0, set("low", 10), false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRaw(t, Options{})
			r.mustCommit(nil, set("low", 10), set("b", 50), set("c", 60))
			tx := r.begin(nil)
			r.query(tx, 50, c.limit)
			if !c.waits {
				r.mustCommit(nil, c.write)
				r.mustCommit(tx)
				if w := r.server.Counters().Waits; w != 0 {
					t.Errorf("%d waits, want none", w)
				}
				return
			}
			outcome := r.commitBlocks(1, nil, c.write)
			r.mustCommit(tx)
			if err := outcome(); err != nil {
				t.Error(err)
			}
		})
	}
}

func otherCollection(n int64) *pb.Write {
	return &pb.Write{Operation: &pb.Write_Update{Update: &pb.Document{
		Name: testRoot + "/elsewhere/d", Fields: map[string]*pb.Value{"n": integer(n)},
	}}}
}

// An aggregation in a transaction locks what it counted (E-TX-05).
func TestTransaction_AggregationLocksRange(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("a", 1))
	tx := r.begin(nil)
	stream, err := r.rpc.RunAggregationQuery(r.ctx, &pb.RunAggregationQueryRequest{
		Parent:              testRoot,
		ConsistencySelector: &pb.RunAggregationQueryRequest_Transaction{Transaction: tx},
		QueryType: &pb.RunAggregationQueryRequest_StructuredAggregationQuery{
			StructuredAggregationQuery: &pb.StructuredAggregationQuery{
				QueryType: &pb.StructuredAggregationQuery_StructuredQuery{StructuredQuery: &pb.StructuredQuery{
					From: []*pb.StructuredQuery_CollectionSelector{{CollectionId: "c"}},
				}},
				Aggregations: []*pb.StructuredAggregationQuery_Aggregation{{
					Alias:    "n",
					Operator: &pb.StructuredAggregationQuery_Aggregation_Count_{Count: &pb.StructuredAggregationQuery_Aggregation_Count{}},
				}},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := stream.Recv(); err != nil || answer.GetResult().GetAggregateFields()["n"].GetIntegerValue() != 1 {
		t.Fatalf("count: %v, %v", answer, err)
	}
	outcome := r.commitBlocks(1, nil, set("b", 2))
	r.mustCommit(tx)
	if err := outcome(); err != nil {
		t.Error(err)
	}
}

// A retry keeps its age: it wins against transactions that began after its first
// attempt (E-TX-07).
func TestTransaction_RetryKeepsAge(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1))
	first, loser := r.begin(nil), r.begin(nil)
	r.get(first, "d")
	r.get(loser, "d")
	r.mustCommit(first, set("d", 2)) // wounds the loser
	younger := r.begin(nil)
	r.get(younger, "d")
	retry := r.begin(loser)
	r.get(retry, "d")
	r.mustCommit(retry, set("d", 3)) // older than younger: does not wait
	wantCode(t, "younger", r.commit(younger, set("d", 4)), codes.Aborted)
}

// A retry does not wait for an earlier attempt that is still open because its rollback
// was lost. Two retries of one attempt do not deadlock (E-TX-07, E-TX-08).
func TestTransaction_RetryWoundsOpenAttempt(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1))
	zombie := r.begin(nil)
	r.get(zombie, "d")
	retry := r.begin(zombie)
	r.get(retry, "d")
	r.mustCommit(retry, set("d", 2))
	wantCode(t, "the earlier attempt", r.commit(zombie, set("d", 3)), codes.Aborted)

	one, two := r.begin(zombie), r.begin(zombie)
	r.get(one, "d")
	r.get(two, "d")
	outcome := r.commitBlocks(1, one, set("d", 4))
	r.mustCommit(two, set("d", 5))
	wantCode(t, "one", outcome(), codes.Aborted)
}

// A wounded transaction answers ABORTED to everything until it is rolled back, so it
// never sees part of a newer state (E-TX-10, E-TX-11, E-GO-06).
func TestTransaction_WoundedAnswersAborted(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1), set("e", 1))
	older, tx := r.begin(nil), r.begin(nil)
	r.get(older, "d")
	r.get(tx, "d")
	r.mustCommit(older, set("d", 2), set("e", 2))
	_, err := r.tryGet(tx, "e")
	wantText(t, "read", err, codes.Aborted, "Aborted due to cross-transaction contention.")
	_, err = r.tryQuery(tx, 0, 0)
	wantCode(t, "query", err, codes.Aborted)
	wantCode(t, "empty commit", r.commit(tx), codes.Aborted)
	wantCode(t, "commit", r.commit(tx, set("d", 3)), codes.Aborted)
	if err := r.rollback(tx); err != nil {
		t.Errorf("rollback: %v", err)
	}
	wantText(t, "commit after rollback", r.commit(tx), codes.InvalidArgument, textExpired)
	if got := r.get(nil, "d"); got != 2 {
		t.Errorf("d = %d, want 2", got)
	}
}

// A wound releases the locks and answers the waiting RPC of the wounded transaction
// with ABORTED, both immediately (E-TX-08).
func TestTransaction_WoundAnswersWaitingRPC(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("1", 1), set("2", 1))
	a, b := r.begin(nil), r.begin(nil)
	r.get(a, "1")
	r.get(b, "2")
	blocked := r.commitBlocks(1, b, set("1", 20)) // waits for A
	r.mustCommit(a, set("2", 10))                 // wounds B, which holds 2
	wantCode(t, "B", blocked(), codes.Aborted)
}

// By the server's clock, a lock wait ends after 15 s, a transaction that blocks others
// after 20 s, an idle one after 60 s and any after 270 s (E-TX-10, E-TX-12, E-TX-13).
func TestTransaction_TimesOut(t *testing.T) {
	t.Run("lock wait", func(t *testing.T) {
		r, clock := clocked(t)
		tx := r.begin(nil)
		r.get(tx, "d")
		outcome := r.commitBlocks(1, nil, set("d", 2))
		clock.Advance(15 * time.Second)
		wantText(t, "waiting write", outcome(), codes.Aborted, "Too much contention on these documents. Please try again.")
		r.mustCommit(tx, set("d", 3))
	})
	t.Run("lock deadline", func(t *testing.T) {
		r, clock := clocked(t)
		tx := r.begin(nil)
		r.get(tx, "d")
		first := r.commitBlocks(1, nil, set("d", 2))
		clock.Advance(14 * time.Second)
		second := r.commitBlocks(2, nil, set("d", 3))
		clock.Advance(6 * time.Second)
		wantCode(t, "first write", first(), codes.Aborted)
		if err := second(); err != nil {
			t.Errorf("second write: %v, want OK: the holder was aborted", err)
		}
		wantCode(t, "holder", r.commit(tx, set("d", 4)), codes.Aborted)
	})
	t.Run("idle", func(t *testing.T) {
		r, clock := clocked(t)
		tx := r.begin(nil)
		r.get(tx, "d")
		clock.Advance(59 * time.Second)
		r.get(tx, "d")
		clock.Advance(59 * time.Second)
		r.get(tx, "d")
		clock.Advance(60 * time.Second)
		r.mustCommit(nil, set("d", 2)) // its locks are released
		wantText(t, "commit", r.commit(tx, set("d", 3)), codes.InvalidArgument, textExpired)
	})
	t.Run("total", func(t *testing.T) {
		r, clock := clocked(t)
		tx := r.begin(nil)
		for range 9 {
			r.get(tx, "d")
			clock.Advance(30 * time.Second)
		}
		wantText(t, "commit", r.commit(tx, set("d", 3)), codes.InvalidArgument, textExpired)
	})
	t.Run("abandoned holder", func(t *testing.T) {
		r, clock := clocked(t)
		gone := &raw{t: t, ctx: r.ctx, server: r.server}
		conn := dial(t, r.server.Addr())
		gone.rpc = pb.NewFirestoreClient(conn)
		gone.get(gone.begin(nil), "d")
		conn.Close() // does not release its lock
		outcome := r.commitBlocks(1, nil, set("d", 2))
		clock.Advance(15 * time.Second)
		wantCode(t, "write after 15 s", outcome(), codes.Aborted)
		clock.Advance(45 * time.Second)
		r.mustCommit(nil, set("d", 2))
	})
}

// clocked is newRaw on a fake clock.
func clocked(t *testing.T) (*raw, *clockwork.FakeClock) {
	t.Helper()
	clock := clockwork.NewFakeClock()
	r := newRaw(t, Options{Clock: clock})
	r.mustCommit(nil, set("d", 1))
	if err := clock.BlockUntilContext(r.ctx, 1); err != nil { // housekeeping has its ticker
		t.Fatal(err)
	}
	return r, clock
}

// A commit that is cancelled while it waits leaves the queue and is not applied. Its
// transaction stays open (E-TX-13).
func TestTransaction_CancelLeavesQueue(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1))
	holder, tx := r.begin(nil), r.begin(nil)
	r.get(holder, "d")
	ctx, cancel := context.WithCancel(r.ctx)
	outcome := blocks(r, 1, func() (*pb.CommitResponse, error) {
		return r.rpc.Commit(ctx, &pb.CommitRequest{Database: testDatabase, Transaction: tx, Writes: []*pb.Write{set("d", 9)}})
	})
	cancel()
	_, err := outcome()
	wantCode(t, "cancelled commit", err, codes.Canceled)
	d, err := r.server.database(testDatabase)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.locks.AwaitWaiting(r.ctx, 0); err != nil { // the server has noticed
		t.Fatal(err)
	}
	r.mustCommit(holder, set("d", 2))
	if got := r.get(nil, "d"); got != 2 {
		t.Errorf("d = %d, want 2", got)
	}
	if err := r.rollback(tx); err != nil {
		t.Errorf("rollback: %v", err)
	}
}

// A commit that fails definitely closes its transaction and releases its locks
// (E-TX-14).
func TestTransaction_FailedCommitCloses(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1))
	tx := r.begin(nil)
	r.get(tx, "d")
	create := set("d", 2)
	create.CurrentDocument = &pb.Precondition{ConditionType: &pb.Precondition_Exists{Exists: false}}
	wantCode(t, "create", r.commit(tx, set("e", 1), create), codes.AlreadyExists)
	if got := r.get(nil, "e"); got != -1 {
		t.Errorf("e = %d: half of the commit was applied", got)
	}
	r.mustCommit(nil, set("d", 3))
	wantText(t, "again", r.commit(tx), codes.InvalidArgument, textExpired)
}

// An optimistic transaction reads a snapshot without locks. Its commit is aborted if it
// writes and anything that it read has changed (E-TX-16).
func TestTransaction_OptimisticChecksReads(t *testing.T) {
	cases := []struct {
		name   string
		read   func(r *raw, tx []byte)
		change []*pb.Write
		writes []*pb.Write
		want   codes.Code
	}{
		{"nothing changed", readD, nil, []*pb.Write{set("d", 5)}, codes.OK},
		{"a document changed", readD, []*pb.Write{set("d", 2)}, []*pb.Write{set("e", 5)}, codes.Aborted},
		{"a missing document appeared", readMissing, []*pb.Write{set("new", 2)}, []*pb.Write{set("e", 5)}, codes.Aborted},
		{"another document changed", readD, []*pb.Write{set("x", 2)}, []*pb.Write{set("d", 5)}, codes.OK},
		{"a query result changed", queryAll, []*pb.Write{set("d", 2)}, []*pb.Write{set("e", 5)}, codes.Aborted},
		{"a query result appeared", queryAll, []*pb.Write{set("new", 2)}, []*pb.Write{set("e", 5)}, codes.Aborted},
		{"changed, but it writes nothing", readD, []*pb.Write{set("d", 2)}, nil, codes.OK},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newRaw(t, Options{})
			r.mustCommit(nil, set("d", 1))
			begun, err := r.rpc.BeginTransaction(r.ctx, &pb.BeginTransactionRequest{Database: testDatabase,
				Options: &pb.TransactionOptions{Mode: &pb.TransactionOptions_ReadWrite_{
					ReadWrite: &pb.TransactionOptions_ReadWrite{ConcurrencyMode: pb.TransactionOptions_OPTIMISTIC},
				}}})
			if err != nil {
				t.Fatal(err)
			}
			tx := begun.GetTransaction()
			c.read(r, tx)
			if c.change != nil {
				r.mustCommit(nil, c.change...) // does not wait
			}
			c.read(r, tx) // the same snapshot
			wantCode(t, "commit", r.commit(tx, c.writes...), c.want)
		})
	}
}

func readD(r *raw, tx []byte) {
	r.t.Helper()
	if got := r.get(tx, "d"); got != 1 {
		r.t.Errorf("d = %d, want 1", got)
	}
}

func readMissing(r *raw, tx []byte) {
	r.t.Helper()
	if got := r.get(tx, "new"); got != -1 {
		r.t.Errorf("new = %d, want missing", got)
	}
}

func queryAll(r *raw, tx []byte) {
	r.t.Helper()
	if got := r.query(tx, 0, 0); !slices.Equal(got, []int64{1}) {
		r.t.Errorf("query: %v, want [1]", got)
	}
}

// new_transaction begins a transaction with its first read. The first message has only
// the id (E-RPC-02).
func TestTransaction_BeginsWithRead(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1))
	stream, err := r.rpc.BatchGetDocuments(r.ctx, &pb.BatchGetDocumentsRequest{
		Database: testDatabase, Documents: []string{doc("d")},
		ConsistencySelector: &pb.BatchGetDocumentsRequest_NewTransaction{NewTransaction: &pb.TransactionOptions{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil || len(first.GetTransaction()) == 0 || first.GetResult() != nil {
		t.Fatalf("first message: %v, %v; want the id alone", first, err)
	}
	second, err := stream.Recv()
	if err != nil || second.GetFound() == nil {
		t.Fatalf("second message: %v, %v", second, err)
	}
	outcome := r.commitBlocks(1, nil, set("d", 2)) // the transaction holds its lock
	r.mustCommit(first.GetTransaction(), set("d", 3))
	if err := outcome(); err != nil {
		t.Error(err)
	}
}

// Reads at a read_time see exactly that time. Each kind of invalid time has its own
// error (E-ST-05).
func TestSnapshot_ReadsAtTime(t *testing.T) {
	clock := clockwork.NewFakeClockAt(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	r := newRaw(t, Options{Clock: clock})
	early := timestamppb.New(clock.Now().Add(-time.Minute))
	r.mustCommit(nil, set("d", 1))
	first := r.updateTime("d")
	clock.Advance(time.Second)
	r.mustCommit(nil, set("d", 2))
	at := func(ts *timestamppb.Timestamp) (*pb.BatchGetDocumentsResponse, error) {
		stream, err := r.rpc.BatchGetDocuments(r.ctx, &pb.BatchGetDocumentsRequest{
			Database: testDatabase, Documents: []string{doc("d")},
			ConsistencySelector: &pb.BatchGetDocumentsRequest_ReadTime{ReadTime: ts},
		})
		if err != nil {
			return nil, err
		}
		return stream.Recv()
	}
	answer, err := at(first)
	if err != nil || answer.GetFound().GetFields()["n"].GetIntegerValue() != 1 || !answer.GetReadTime().AsTime().Equal(first.AsTime()) {
		t.Errorf("at the first version: %v, %v", answer, err)
	}
	if answer, err = at(early); err != nil || answer.GetMissing() == "" || answer.GetReadTime() == nil {
		t.Errorf("before first data: %v, %v; want missing", answer, err)
	}
	_, err = at(&timestamppb.Timestamp{Seconds: first.GetSeconds(), Nanos: first.GetNanos() + 1})
	wantText(t, "nanoseconds", err, codes.InvalidArgument, "timestamp cannot have more than microseconds precision")
	_, err = at(timestamppb.New(clock.Now().Add(time.Hour)))
	wantText(t, "future", err, codes.InvalidArgument, "The requested 'read_time' cannot be in the future.")
	clock.Advance(2 * time.Hour)
	_, err = at(first)
	wantText(t, "too old", err, codes.FailedPrecondition, "The requested snapshot version is too old.")
}

// Commit times strictly rise, even if the clock stops or is set back (E-ST-02,
// E-ST-03).
func TestSnapshot_CommitTimesRise(t *testing.T) {
	clock := clockwork.NewFakeClock()
	dir := t.TempDir()
	r := newRaw(t, Options{Clock: clock, DataDir: dir})
	last := int64(0)
	commit := func(r *raw) {
		t.Helper()
		answer, err := r.rpc.Commit(r.ctx, &pb.CommitRequest{Database: testDatabase, Writes: []*pb.Write{set("d", last)}})
		if err != nil {
			t.Fatal(err)
		}
		if at := store.Micros(answer.GetCommitTime()); at <= last {
			t.Errorf("commit time %d after %d", at, last)
		} else {
			last = at
		}
	}
	for range 3 {
		commit(r)
	}
	if err := r.server.Close(); err != nil {
		t.Fatal(err)
	}
	r = newRaw(t, Options{Clock: clockwork.NewFakeClockAt(clock.Now().Add(-time.Hour)), DataDir: dir})
	commit(r)
}

// Duplicate names are answered once (E-ST-06).
func TestSnapshot_AnswersDuplicatesOnce(t *testing.T) {
	r := newRaw(t, Options{})
	stream, err := r.rpc.BatchGetDocuments(r.ctx, &pb.BatchGetDocumentsRequest{
		Database: testDatabase, Documents: []string{doc("d"), doc("d"), doc("e")},
	})
	if err != nil {
		t.Fatal(err)
	}
	answers := 0
	for {
		_, err := stream.Recv()
		if isEOF(err) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		answers++
	}
	if answers != 2 {
		t.Errorf("%d answers, want 2", answers)
	}
}

// Old versions are dropped after the retention, but not while a snapshot needs them
// (E-ST-05).
func TestSnapshot_KeepsVersionsInUse(t *testing.T) {
	clock := clockwork.NewFakeClock()
	r := newRaw(t, Options{Clock: clock, Retention: time.Minute})
	r.mustCommit(nil, set("d", 1))
	begun, err := r.rpc.BeginTransaction(r.ctx, &pb.BeginTransactionRequest{Database: testDatabase,
		Options: &pb.TransactionOptions{Mode: &pb.TransactionOptions_ReadOnly_{ReadOnly: &pb.TransactionOptions_ReadOnly{}}}})
	if err != nil {
		t.Fatal(err)
	}
	tx := begun.GetTransaction()
	r.get(tx, "d")
	for n := int64(2); n < 10; n++ {
		clock.Advance(25 * time.Second)
		r.mustCommit(nil, set("d", n))
		if got := r.get(tx, "d"); got != 1 {
			t.Fatalf("in the open snapshot d = %d, want 1", got)
		}
	}
	r.mustCommit(tx)
	clock.Advance(time.Hour)
	r.mustCommit(nil, remove("d"))
	clock.Advance(time.Hour)
	r.mustCommit(nil, set("e", 1))
	r.mustCommit(nil, set("e", 2))
	if got := r.get(nil, "d"); got != -1 {
		t.Errorf("d = %d, want missing", got)
	}
}

// A read that found its transaction just before a Rollback opens no snapshot, which
// would keep old versions forever (E-TX-03, E-TX-15).
func TestSnapshot_IsNotOpenedAfterRollback(t *testing.T) {
	clock := clockwork.NewFakeClock()
	r := newRaw(t, Options{Clock: clock, Retention: time.Minute})
	r.mustCommit(nil, set("d", 1))
	d, err := r.server.database(testDatabase)
	if err != nil {
		t.Fatal(err)
	}
	old := weak.Make(d.store.Newest(doc("d")))
	tx := d.transactions.begin(readOnly, 0, nil)
	found, err := d.transactions.find(tx.id)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.rollback(tx.id); err != nil {
		t.Fatal(err)
	}
	_, err = found.fixSnapshot(d.store)
	wantText(t, "the read", err, codes.InvalidArgument, textExpired)
	r.mustCommit(nil, set("d", 2))
	clock.Advance(time.Hour)
	r.mustCommit(nil, set("d", 3))
	wantFreed(t, old)
}
