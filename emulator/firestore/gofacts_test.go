package firestoreemu

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
)

// These tests state what the Go client sends, which users of this server rely on.

// rpcs counts the RPCs during f.
func rpcs(t *testing.T, s *Server, f func()) map[string]uint64 {
	t.Helper()
	before := s.Counters().RPCs
	f()
	diff := map[string]uint64{}
	for method, n := range s.Counters().RPCs {
		if n != before[method] {
			diff[method] = n - before[method]
		}
	}
	return diff
}

// E-GO-01 and E-GO-02: RPCs per transaction.
func TestGoClient_RPCsPerTransaction(t *testing.T) {
	ctx, faults, c, s := faulty(t)
	a, b := c.Doc("c/a"), c.Doc("c/b")
	for _, ref := range []*firestore.DocumentRef{a, b} {
		if _, err := ref.Set(ctx, fields{"n": 1}); err != nil {
			t.Fatal(err)
		}
	}
	twoGets := func(_ context.Context, tx *firestore.Transaction) error {
		if _, err := tx.Get(a); err != nil {
			return err
		}
		if _, err := tx.Get(b); err != nil {
			return err
		}
		return tx.Set(a, fields{"n": 2})
	}
	cases := []struct {
		name    string
		f       func(context.Context, *firestore.Transaction) error
		options []firestore.TransactionOption
		abort   bool
		want    map[string]uint64
	}{
		{"two gets and a set", twoGets, nil, false, map[string]uint64{"BeginTransaction": 1, "BatchGetDocuments": 2, "Commit": 1}},
		{"get all", func(_ context.Context, tx *firestore.Transaction) error {
			_, err := tx.GetAll([]*firestore.DocumentRef{a, b})
			return err
		}, nil, false, map[string]uint64{"BeginTransaction": 1, "BatchGetDocuments": 1, "Commit": 1}},
		{"no reads", func(_ context.Context, tx *firestore.Transaction) error {
			return tx.Set(a, fields{"n": 3})
		}, nil, false, map[string]uint64{"BeginTransaction": 1, "Commit": 1}},
		{"read-only", func(_ context.Context, tx *firestore.Transaction) error {
			_, err := tx.Get(a)
			return err
		}, []firestore.TransactionOption{firestore.ReadOnly}, false, map[string]uint64{"BeginTransaction": 1, "BatchGetDocuments": 1, "Commit": 1}},
		{"one abort", twoGets, nil, true, map[string]uint64{"BeginTransaction": 2, "BatchGetDocuments": 4, "Commit": 2, "Rollback": 1}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if tc.abort {
				faults.Add(fault.Rule{RPC: "Commit", Times: 1, Do: fault.Abort()})
			}
			got := rpcs(t, s, func() {
				if err := c.RunTransaction(ctx, tc.f, tc.options...); err != nil {
					t.Error(err)
				}
			})
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
	got := rpcs(t, s, func() {
		if _, err := c.GetAll(ctx, []*firestore.DocumentRef{a, b, c.Doc("c/none")}); err != nil {
			t.Error(err)
		}
		//lint:ignore SA1019 deprecated, but the only atomic batch with preconditions (E-GO-02)
		batch := c.Batch().Set(a, fields{"n": 4}).Set(b, fields{"n": 4})
		if _, err := batch.Commit(ctx); err != nil {
			t.Error(err)
		}
	})
	if want := fmt.Sprint(map[string]uint64{"BatchGetDocuments": 1, "Commit": 1}); fmt.Sprint(got) != want {
		t.Errorf("GetAll and a batch: %v, want %v", got, want)
	}
}

// E-GO-03: only ABORTED makes the client rerun f, even if f itself returns it wrapped.
func TestGoClient_RerunsOnlyOnAborted(t *testing.T) {
	ctx, faults, c, _ := faulty(t)
	for _, code := range []codes.Code{codes.Internal, codes.DeadlineExceeded, codes.FailedPrecondition} {
		rule := faults.Add(fault.Rule{RPC: "Commit", Times: 1, Do: fault.Fail(code)})
		runs := 0
		err := c.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
			runs++
			return tx.Set(c.Doc("c/d"), fields{"n": 1})
		})
		wantCode(t, code.String(), err, code)
		if runs != 1 {
			t.Errorf("%v: %d runs, want 1", code, runs)
		}
		rule.Remove()
	}
	faults.Add(fault.Rule{RPC: "BatchGetDocuments", Times: 1, Do: fault.Abort()})
	runs := 0
	err := c.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		runs++
		if _, err := tx.Get(c.Doc("c/d")); err != nil && codeOf(errors.Unwrap(fmt.Errorf("wrapped: %w", err))) != codes.NotFound {
			return fmt.Errorf("wrapped: %w", err)
		}
		return nil
	})
	if err != nil || runs != 2 {
		t.Errorf("wrapped ABORTED of a read: %v after %d runs, want OK after 2", err, runs)
	}
}

// E-GO-03: of concurrent Creates one wins, without pauses or transactions.
func TestGoClient_OneCreateWins(t *testing.T) {
	ctx := testContext(t)
	c := newClient(t, serverUnderTest(t))
	const racers = 8
	outcomes := make([]codes.Code, racers)
	var group sync.WaitGroup
	for i := range racers {
		group.Go(func() {
			_, err := c.Doc("orders/o1").Create(ctx, fields{"by": i})
			outcomes[i] = codeOf(err)
		})
	}
	group.Wait()
	won := 0
	for _, code := range outcomes {
		switch code {
		case codes.OK:
			won++
		case codes.AlreadyExists:
		default:
			t.Errorf("a racer got %v", code)
		}
	}
	if won != 1 {
		t.Errorf("%d racers won, want 1", won)
	}
}

// E-GO-04: a read in a transaction is not retried on UNAVAILABLE.
func TestGoClient_DoesNotRetryReadInTransaction(t *testing.T) {
	ctx, faults, c, s := faulty(t)
	faults.Add(fault.Rule{RPC: "BatchGetDocuments", Times: 1, Do: fault.Fail(codes.Unavailable)})
	got := rpcs(t, s, func() {
		err := c.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
			_, err := tx.Get(c.Doc("c/d"))
			return err
		})
		wantCode(t, "RunTransaction", err, codes.Unavailable)
	})
	if got["BatchGetDocuments"] != 1 {
		t.Errorf("%d reads, want 1", got["BatchGetDocuments"])
	}
}

// E-GO-06: if f ignores the ABORTED of a read, the client still sends Commit, which
// must not succeed.
func TestGoClient_CommitsAfterIgnoredAbort(t *testing.T) {
	ctx, faults, c, _ := faulty(t)
	faults.Add(fault.Rule{RPC: "BatchGetDocuments", Times: 1, Do: fault.Abort()})
	runs := 0
	err := c.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		runs++
		_, _ = tx.Get(c.Doc("c/d")) // ignores ABORTED
		return tx.Set(c.Doc("c/d"), fields{"n": runs})
	})
	if err != nil || runs != 2 {
		t.Errorf("%v after %d runs; want OK after 2, because the first commit must fail", err, runs)
	}
	wantField(ctx, t, c.Doc("c/d"), int64(2))
}

// E-TX-14: the client does not retry Rollback.
func TestGoClient_FailedFunctionRollsBackOnce(t *testing.T) {
	ctx, _, c, s := faulty(t)
	failure := errors.New("not today")
	began := time.Now()
	got := rpcs(t, s, func() {
		err := c.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
			_, _ = tx.Get(c.Doc("c/d"))
			return failure
		})
		if !errors.Is(err, failure) {
			t.Errorf("got %v, want the function's own error", err)
		}
	})
	if got["Rollback"] != 1 {
		t.Errorf("%d rollbacks in %v, want 1", got["Rollback"], time.Since(began))
	}
}
