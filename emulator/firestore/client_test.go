package firestoreemu

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// Fifty goroutines increment a counter ten times each, with the real client. No update
// is lost, and no goroutine exhausts the client's five attempts (E-TX-08).
func TestClient_IncrementsHotCounter(t *testing.T) {
	longtest.Only(t, "takes seconds, because the client pauses up to a second after an abort")
	ctx := testContext(t)
	c := newClient(t, serverUnderTest(t))
	ref := c.Doc("counters/hot")
	if _, err := ref.Set(ctx, map[string]any{"n": 0}); err != nil {
		t.Fatal(err)
	}
	const workers, rounds = 50, 10
	began := time.Now()
	var group errgroup.Group
	var mu sync.Mutex
	attempts := 0
	for range workers {
		group.Go(func() error {
			for range rounds {
				err := c.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
					mu.Lock()
					attempts++
					mu.Unlock()
					snap, err := tx.Get(ref)
					if err != nil {
						return err
					}
					n, err := snap.DataAt("n")
					if err != nil {
						return err
					}
					return tx.Set(ref, map[string]any{"n": n.(int64) + 1})
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatalf("a worker gave up: %v", err)
	}
	t.Logf("%d increments in %v, %d attempts", workers*rounds, time.Since(began), attempts)
	snap, err := ref.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := snap.Data()["n"]; got != int64(workers*rounds) {
		t.Errorf("counter = %v, want %d", got, workers*rounds)
	}
}

// The usual calls of the client, one after the other.
func TestClient_ReadsAndWritesDocuments(t *testing.T) {
	ctx := testContext(t)
	c := newClient(t, serverUnderTest(t))
	ref := c.Doc("drones/d1")
	if _, err := ref.Get(ctx); err == nil {
		t.Error("a missing document was found")
	} else {
		wantCode(t, "get missing", err, codes.NotFound)
	}
	if _, err := ref.Create(ctx, map[string]any{"battery": 90, "state": "idle"}); err != nil {
		t.Fatal(err)
	}
	_, err := ref.Create(ctx, map[string]any{"battery": 90})
	wantCode(t, "create again", err, codes.AlreadyExists)
	if _, err := ref.Update(ctx, []firestore.Update{{Path: "battery", Value: firestore.Increment(-5)}}); err != nil {
		t.Fatal(err)
	}
	snap, err := ref.Get(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got := snap.Data()["battery"]; got != int64(85) {
		t.Errorf("battery = %v, want 85", got)
	}
	_, err = c.Doc("drones/none").Update(ctx, []firestore.Update{{Path: "a", Value: 1}})
	wantCode(t, "update missing", err, codes.NotFound)
	found, err := c.Collection("drones").Where("state", "==", "idle").Documents(ctx).GetAll()
	if err != nil || len(found) != 1 {
		t.Errorf("query: %d documents, %v; want 1", len(found), err)
	}
	if _, err := ref.Delete(ctx); err != nil {
		t.Error(err)
	}
}

// NewClient needs nothing but the test, and its server listens on no port.
func TestNewClient_StartsServerInProcess(t *testing.T) {
	ctx := testContext(t)
	c := NewClient(t)
	large := strings.Repeat("x", 1_000_000)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		if _, err := c.Doc("c/"+id).Create(ctx, fields{"text": large}); err != nil {
			t.Fatal(err)
		}
	}
	found, err := c.Collection("c").Documents(ctx).GetAll() // more than grpc's default limit of 4 MiB
	if err != nil || len(found) != 6 {
		t.Errorf("%d documents, %v; want 6", len(found), err)
	}
	if addr := StartT(t, Options{InProcess: true}).Addr(); addr != "" {
		t.Errorf("address %q of a server in process, want none", addr)
	}
}

// Clients of one project share documents, others do not. An owner's connection can be
// closed in process, too.
func TestServer_ClientT(t *testing.T) {
	for name, opts := range map[string]Options{"port": {}, "in process": {InProcess: true}} {
		t.Run(name, func(t *testing.T) {
			ctx := testContext(t)
			s := StartT(t, opts)
			one, two, other := s.ClientT(t, "p"), s.ClientT(t, "p", fault.DialOptions("worker")...), s.ClientT(t, "q")
			if _, err := one.Doc("c/d").Create(ctx, fields{"n": 1}); err != nil {
				t.Fatal(err)
			}
			wantField(ctx, t, two.Doc("c/d"), int64(1))
			if _, err := other.Doc("c/d").Get(ctx); codeOf(err) != codes.NotFound {
				t.Errorf("another project: %v, want NotFound", err)
			}
			if n := s.KillConnections("worker"); n != 1 {
				t.Errorf("closed %d connections of the worker, want 1", n)
			}
			wantField(ctx, t, two.Doc("c/d"), int64(1)) // on a new connection
		})
	}
}

// Errors of the helpers end the test, and errors of closing fail it.
func TestStartT_ReportsErrors(t *testing.T) {
	fake := &recordingTB{}
	func() {
		defer func() { _ = recover() }() // Fatalf of the fake panics
		StartT(fake, Options{Addr: "nonsense"})
	}()
	if len(fake.failures) != 1 || !strings.Contains(fake.failures[0], "want host:port") {
		t.Errorf("failures %q, want the error of Start", fake.failures)
	}
	faults := fault.New(1)
	fake = &recordingTB{}
	s := StartT(fake, Options{Faults: faults, DataDir: t.TempDir(), InProcess: true})
	faults.Add(fault.Rule{At: fault.BeforeSave, Do: fault.Fail(codes.DataLoss)})
	_, err := s.ClientT(fake, "p").Doc("c/d").Set(testContext(t), fields{"n": 1})
	wantCode(t, "write", err, codes.Internal)
	for _, cleanup := range slices.Backward(fake.cleanups) {
		cleanup()
	}
	if len(fake.failures) != 1 || !strings.Contains(fake.failures[0], "close embedded Firestore") {
		t.Errorf("failures %q, want the error of Close", fake.failures)
	}
}

// recordingTB is a test that records its failures.
type recordingTB struct {
	failures []string
	cleanups []func()
}

func (*recordingTB) Helper() {}

func (r *recordingTB) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	panic("ended")
}

func (r *recordingTB) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recordingTB) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
