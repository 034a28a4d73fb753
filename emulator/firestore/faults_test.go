package firestoreemu

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
)

// faulty starts a server with an injector and a client of it.
func faulty(t *testing.T) (context.Context, *fault.Injector, *firestore.Client, *Server) {
	t.Helper()
	faults := fault.New(1)
	s := StartT(t, Options{Faults: faults})
	return testContext(t), faults, newClient(t, s.Addr()), s
}

type fields = map[string]any

// Some codes make the client resend a Commit, others reach the caller (E-FI-02).
func TestFault_CommitFails(t *testing.T) {
	cases := []struct {
		code  codes.Code
		sent  int // Commits that the server receives
		seen  codes.Code
		exist bool
	}{
		{codes.Unavailable, 2, codes.OK, true},
		{codes.ResourceExhausted, 2, codes.OK, true},
		{codes.DeadlineExceeded, 1, codes.DeadlineExceeded, false},
		{codes.Internal, 1, codes.Internal, false},
		{codes.Unknown, 1, codes.Unknown, false},
		{codes.Canceled, 1, codes.Canceled, false},
		{codes.Aborted, 1, codes.Aborted, false}, // E-GO-04
	}
	for _, c := range cases {
		t.Run(c.code.String(), func(t *testing.T) {
			ctx, faults, client, s := faulty(t)
			faults.Add(fault.Rule{RPC: "Commit", Times: 1, At: fault.Before, Do: fault.Fail(c.code)})
			_, err := client.Doc("c/d").Set(ctx, fields{"n": 1})
			wantCode(t, "Set", err, c.seen)
			if got := s.Counters().RPCs["Commit"]; got != uint64(c.sent) {
				t.Errorf("%d Commits received, want %d", got, c.sent)
			}
			snap, _ := client.Doc("c/d").Get(ctx)
			if snap.Exists() != c.exist {
				t.Errorf("the document exists: %v, want %v", snap.Exists(), c.exist)
			}
		})
	}
}

// The answer to an applied Commit is lost, and the client resends the Commit
// (E-GO-05).
func TestFault_AnswerIsLost(t *testing.T) {
	t.Run("create", func(t *testing.T) {
		ctx, faults, c, _ := faulty(t)
		faults.Add(fault.Rule{RPC: "Commit", Times: 1, At: fault.After, Do: fault.Fail(codes.Unavailable)})
		_, err := c.Doc("c/d").Create(ctx, fields{"n": 1})
		wantCode(t, "Create", err, codes.AlreadyExists)
	})
	t.Run("last update time", func(t *testing.T) {
		ctx, faults, c, _ := faulty(t)
		wr, err := c.Doc("c/d").Create(ctx, fields{"n": 1})
		if err != nil {
			t.Fatal(err)
		}
		faults.Add(fault.Rule{RPC: "Commit", Times: 1, At: fault.After, Do: fault.Fail(codes.Unavailable)})
		_, err = c.Doc("c/d").Update(ctx, []firestore.Update{{Path: "n", Value: 2}}, firestore.LastUpdateTime(wr.UpdateTime))
		wantCode(t, "Update", err, codes.FailedPrecondition)
	})
	t.Run("increment", func(t *testing.T) {
		ctx, faults, c, _ := faulty(t)
		faults.Add(fault.Rule{RPC: "Commit", Times: 1, At: fault.After, Do: fault.Fail(codes.Unavailable)})
		if _, err := c.Doc("c/d").Set(ctx, fields{"n": firestore.Increment(1)}, firestore.MergeAll); err != nil {
			t.Fatal(err)
		}
		wantField(ctx, t, c.Doc("c/d"), int64(2))
	})
	t.Run("transaction", func(t *testing.T) {
		ctx, faults, c, _ := faulty(t)
		faults.Add(fault.Rule{RPC: "Commit", Times: 1, At: fault.After, Do: fault.Fail(codes.Unavailable)})
		runs := 0
		err := c.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
			runs++
			return tx.Set(c.Doc("c/d"), fields{"n": runs})
		})
		wantCode(t, "RunTransaction", err, codes.InvalidArgument) // E-TX-15
		wantField(ctx, t, c.Doc("c/d"), int64(1))
	})
}

func wantField(ctx context.Context, t *testing.T, ref *firestore.DocumentRef, want any) {
	t.Helper()
	snap, err := ref.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := snap.Data()["n"]; got != want {
		t.Errorf("n = %v, want %v", got, want)
	}
}

// If a connection is closed before or after a Commit, the client sees UNAVAILABLE and
// resends it. What was applied stays applied (E-FI-01).
func TestFault_ConnectionIsDropped(t *testing.T) {
	for name, c := range map[string]struct {
		at   fault.Stage
		want int64
	}{"before": {fault.Before, 1}, "after": {fault.After, 2}} {
		t.Run(name, func(t *testing.T) {
			ctx, faults, client, _ := faulty(t)
			faults.Add(fault.Rule{RPC: "Commit", Times: 1, At: c.at, Do: fault.Drop()})
			if _, err := client.Doc("c/d").Set(ctx, fields{"n": firestore.Increment(1)}, firestore.MergeAll); err != nil {
				t.Fatal(err)
			}
			wantField(ctx, t, client.Doc("c/d"), c.want)
		})
	}
}

// Rules match requests by name, owner and count (E-FI-01).
func TestFault_RulesMatchRequests(t *testing.T) {
	ctx, faults, plain, s := faulty(t)
	worker, err := firestore.NewClient(ctx, "other", option.WithEndpoint(s.Addr()), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
		option.WithGRPCDialOption(fault.DialOptions("worker")[0]), option.WithGRPCDialOption(fault.DialOptions("worker")[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer worker.Close()
	set := func(c *firestore.Client, path string) codes.Code {
		_, err := c.Doc(path).Set(ctx, fields{"n": 1})
		return codeOf(err)
	}
	byName := faults.Add(fault.Rule{RPC: "Commit", NamePrefix: "drones/", Do: fault.Fail(codes.Internal)})
	if got := set(plain, "drones/a"); got != codes.Internal {
		t.Errorf("drones/a: %v, want INTERNAL", got)
	}
	if got := set(plain, "orders/a"); got != codes.OK {
		t.Errorf("orders/a: %v, want OK", got)
	}
	byName.Remove()
	byOwner := faults.Add(fault.Rule{RPC: "Commit", Owner: "worker", Do: fault.Fail(codes.Internal)})
	if got := set(plain, "drones/a"); got != codes.OK {
		t.Errorf("client without owner: %v, want OK", got)
	}
	if got := set(worker, "drones/a"); got != codes.Internal {
		t.Errorf("worker: %v, want INTERNAL", got)
	}
	byOwner.Remove()
	second := faults.Add(fault.Rule{RPC: "Commit", Nth: 2, Do: fault.Fail(codes.Internal)})
	got := []codes.Code{set(plain, "a/1"), set(plain, "a/2"), set(plain, "a/3")}
	if got[0] != codes.OK || got[1] != codes.Internal || got[2] != codes.OK || second.Fired() != 1 {
		t.Errorf("nth 2: %v, fired %d", got, second.Fired())
	}
	if n := s.KillConnections("worker"); n == 0 {
		t.Error("no connection of the worker was closed")
	}
	if got := set(worker, "a/4"); got != codes.OK {
		t.Errorf("after its connection was closed: %v, want OK on a new one", got)
	}
}

// A commit that is paused while it holds its locks does not block plain reads, which
// see the old state (E-ST-04, E-FI-01).
func TestFault_PausedCommitDoesNotBlockReads(t *testing.T) {
	ctx, faults, c, _ := faulty(t)
	if _, err := c.Doc("c/d").Set(ctx, fields{"n": 1}); err != nil {
		t.Fatal(err)
	}
	gate := fault.NewGate()
	faults.Add(fault.Rule{RPC: "Commit", Times: 1, At: fault.Locked, Do: fault.Pause(gate)})
	done := make(chan error, 1)
	go func() {
		_, err := c.Doc("c/d").Set(ctx, fields{"n": 2})
		done <- err
	}()
	if err := gate.Arrived(ctx, 1); err != nil {
		t.Fatal(err)
	}
	wantField(ctx, t, c.Doc("c/d"), int64(1))
	gate.Open()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantField(ctx, t, c.Doc("c/d"), int64(2))
}

// After an injected abort the client reruns the function. An expired transaction fails
// (E-FI-01).
func TestFault_TransactionAbortsOrExpires(t *testing.T) {
	ctx, faults, c, _ := faulty(t)
	runs := 0
	f := func(_ context.Context, tx *firestore.Transaction) error {
		runs++
		if _, err := tx.Get(c.Doc("c/d")); err != nil && codeOf(err) != codes.NotFound {
			return err
		}
		return tx.Set(c.Doc("c/d"), fields{"n": runs})
	}
	faults.Add(fault.Rule{RPC: "Commit", Times: 1, Do: fault.Abort()})
	if err := c.RunTransaction(ctx, f); err != nil || runs != 2 {
		t.Errorf("after an abort: %v, %d runs; want OK in 2", err, runs)
	}
	faults.Add(fault.Rule{RPC: "BatchGetDocuments", Times: 1, Do: fault.ExpireTransaction()})
	wantCode(t, "expired", c.RunTransaction(ctx, f), codes.InvalidArgument)
}

// A delay is by the server's clock (E-FI-03).
func TestFault_DelayUsesServerClock(t *testing.T) {
	clock := clockwork.NewFakeClock()
	faults := fault.New(1)
	r := newRaw(t, Options{Faults: faults, Clock: clock})
	faults.Add(fault.Rule{RPC: "Commit", Times: 1, At: fault.After, Do: fault.Delay(time.Hour)})
	done := make(chan error, 1)
	go func() { done <- r.commit(nil, set("d", 1)) }()
	if err := clock.BlockUntilContext(r.ctx, 2); err != nil { // housekeeping and the delay
		t.Fatal(err)
	}
	if got := r.get(nil, "d"); got != 1 {
		t.Errorf("d = %d, want 1: the commit is applied before the delay", got)
	}
	clock.Advance(time.Hour)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// When a save fails, this commit and all later ones fail and are not visible. Reads
// still work. One log line names the directory (E-DU-01).
func TestFault_SaveFails(t *testing.T) {
	faults, dir := fault.New(1), t.TempDir()
	var logged bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&logged, &slog.HandlerOptions{Level: slog.LevelError}))
	var unwritable []error
	s, err := Start(Options{
		Faults: faults, DataDir: dir, Sync: SyncOS, Logger: log,
		OnUnwritable: func(err error) { unwritable = append(unwritable, err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{t: t, ctx: testContext(t), server: s, rpc: pb.NewFirestoreClient(dial(t, s.Addr()))}
	r.mustCommit(nil, set("d", 1))
	faults.Add(fault.Rule{At: fault.BeforeSave, Do: fault.Fail(codes.DataLoss)})
	wantCode(t, "commit with a broken disk", r.commit(nil, set("d", 2)), codes.Internal)
	if got := r.get(nil, "d"); got != 1 {
		t.Errorf("d = %d, want 1", got)
	}
	wantCode(t, "later commit", r.commit(nil, set("e", 2)), codes.Internal)
	if err := s.Close(); status.Code(err) != codes.DataLoss {
		t.Errorf("Close: %v, want DataLoss", err)
	}
	if text := logged.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"data_dir":"`+dir+`"`) {
		t.Errorf("logged %q, want one line that names the directory", text)
	}
	if len(unwritable) != 1 || status.Code(unwritable[0]) != codes.DataLoss {
		t.Errorf("OnUnwritable got %v, want DataLoss once", unwritable)
	}
}

// A crash before the save loses the whole unacknowledged commit, a crash after it keeps
// the whole commit (E-FI-01, E-DU-01).
func TestFault_ProcessCrashes(t *testing.T) {
	for _, stage := range []string{"before", "after"} {
		t.Run(stage, func(t *testing.T) {
			dir := t.TempDir()
			addr, _ := childCrashing(t, dir, SyncFull, stage)
			r := &raw{t: t, ctx: testContext(t), rpc: pb.NewFirestoreClient(dial(t, addr))}
			r.mustCommit(nil, set("a", 1)) // the child crashes at its second save
			if err := r.commit(nil, set("a", 2), set("b", 2)); err == nil {
				t.Fatal("the crashed commit was acknowledged")
			}
			addr, _ = child(t, dir, SyncFull)
			r.rpc = pb.NewFirestoreClient(dial(t, addr))
			values, err := r.tryGet(nil, "a", "b")
			if err != nil {
				t.Fatal(err)
			}
			wantA, wantB := int64(1), int64(-1)
			if stage == "after" {
				wantA, wantB = 2, 2
			}
			if values["a"] != wantA || values["b"] != wantB {
				t.Errorf("after the crash: %v, want a=%d b=%d", values, wantA, wantB)
			}
		})
	}
}

// The server can be closed while a save is paused.
func TestFault_CloseEndsPause(t *testing.T) {
	faults := fault.New(1)
	r := newRaw(t, Options{Faults: faults, DataDir: t.TempDir()})
	gate := fault.NewGate()
	faults.Add(fault.Rule{At: fault.BeforeSave, Do: fault.Pause(gate)})
	done := make(chan error, 1)
	go func() { done <- r.commit(nil, set("d", 1)) }()
	if err := gate.Arrived(r.ctx, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the commit: %v, want a failure", err)
	}
}

// HoldLock makes writers wait, but not readers, until it is released or the server
// aborts its transaction (E-FI-01, E-TX-12).
func TestServer_HoldLockBlocksWriters(t *testing.T) {
	r, clock := clocked(t)
	release, err := r.server.HoldLock(r.ctx, doc("d"))
	if err != nil {
		t.Fatal(err)
	}
	outcome := r.commitBlocks(1, nil, set("d", 2))
	if got := r.get(nil, "d"); got != 1 {
		t.Errorf("d = %d, want 1", got)
	}
	release()
	release() // harmless
	if err := outcome(); err != nil {
		t.Error(err)
	}
	if _, err := r.server.HoldLock(r.ctx, doc("d")); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Minute)
	r.mustCommit(nil, set("d", 3)) // the holder has been idle too long
	_, err = r.server.HoldLock(r.ctx, "nonsense")
	wantCode(t, "bad name", err, codes.InvalidArgument)
}
