package firestoreemu

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"
)

// The benchmarks run against the server that FIRESTORE_EMULATOR_HOST names, else
// against an embedded one, so that the same code compares both (E-PF-03):
//
//	go test -run '^$' -bench . ./internal/firestoreemu
//
// One operation is one call of the client; ns/op is over all clients together.

// benchClients is how many clients work at the same time.
const benchClients = 16

// inParallel shares b.N operations among the clients, each with its own document.
func inParallel(b *testing.B, opts Options, work func(ctx context.Context, c *firestore.Client, own *firestore.DocumentRef) error) {
	b.Helper()
	addr := os.Getenv("FIRESTORE_EMULATOR_HOST")
	if addr == "" {
		addr = start(b, opts).Addr()
	} else if opts.DataDir != "" {
		b.Skip("durability of another server cannot be set from here")
	}
	ctx := b.Context()
	clients := make([]*firestore.Client, benchClients)
	for i := range clients {
		clients[i] = clientFor(b, addr, "bench")
		if _, err := own(clients[i], i).Set(ctx, map[string]any{"n": 0, "state": "idle", "lat": 51.5, "lon": -0.1}); err != nil {
			b.Fatal(err)
		}
	}
	var done atomic.Int64
	var group errgroup.Group
	b.ResetTimer()
	for i, c := range clients {
		group.Go(func() error {
			for done.Add(1) <= int64(b.N) {
				if err := work(ctx, c, own(c, i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func own(c *firestore.Client, i int) *firestore.DocumentRef {
	return c.Doc(fmt.Sprintf("bench/client%02d", i))
}

// increment is a read and a write of one document in a transaction.
func increment(ctx context.Context, c *firestore.Client, ref *firestore.DocumentRef) error {
	return c.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		snap, err := tx.Get(ref)
		if err != nil {
			return err
		}
		n, err := snap.DataAt("n")
		if err != nil {
			return err
		}
		return tx.Set(ref, map[string]any{"n": n.(int64) + 1, "state": "busy"})
	})
}

func BenchmarkGet(b *testing.B) {
	inParallel(b, Options{}, func(ctx context.Context, _ *firestore.Client, ref *firestore.DocumentRef) error {
		_, err := ref.Get(ctx)
		return err
	})
}

func BenchmarkSet(b *testing.B) {
	var n atomic.Int64
	inParallel(b, Options{}, func(ctx context.Context, _ *firestore.Client, ref *firestore.DocumentRef) error {
		_, err := ref.Set(ctx, map[string]any{"n": n.Add(1), "state": "busy"})
		return err
	})
}

func BenchmarkTransactionDisjoint(b *testing.B) { inParallel(b, Options{}, increment) }

func BenchmarkTransactionHot(b *testing.B) {
	inParallel(b, Options{}, func(ctx context.Context, c *firestore.Client, _ *firestore.DocumentRef) error {
		return increment(ctx, c, own(c, 0))
	})
}

func BenchmarkIncrementHot(b *testing.B) {
	inParallel(b, Options{}, func(ctx context.Context, c *firestore.Client, _ *firestore.DocumentRef) error {
		_, err := own(c, 0).Update(ctx, []firestore.Update{{Path: "n", Value: firestore.Increment(1)}})
		return err
	})
}

func BenchmarkTransactionDisjointSyncFull(b *testing.B) {
	inParallel(b, Options{DataDir: b.TempDir(), Sync: SyncFull}, increment)
}

func BenchmarkTransactionDisjointSyncOS(b *testing.B) {
	inParallel(b, Options{DataDir: b.TempDir(), Sync: SyncOS}, increment)
}

func BenchmarkStart(b *testing.B) {
	for range b.N {
		s, err := Start(Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
