package firestoreemu

import (
	"context"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
)

// Fifty goroutines add one to a counter ten times each, with the real client: no
// update is lost and nobody runs out of the client's five attempts (E-TX-08).
func TestClient_HotCounter(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: the client pauses up to a second after an abort")
	}
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

// The client's everyday calls, one after the other.
func TestClient_Documents(t *testing.T) {
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
