package firestoreemu

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The benchmarks run against the server at FIRESTORE_EMULATOR_HOST, or else against an
// embedded one, so that both can be compared (E-PF-03):
//
//	go test -run '^$' -bench . ./emulator/firestore
//
// One operation is one call of a client; ns/op is over all clients together.

// benchClients is how many clients work concurrently.
const benchClients = 16

// inParallel shares b.N operations among the clients, each with its own document.
func inParallel(b *testing.B, opts Options, work func(ctx context.Context, c *firestore.Client, own *firestore.DocumentRef) error) {
	b.Helper()
	addr := os.Getenv("FIRESTORE_EMULATOR_HOST")
	if addr == "" {
		addr = StartT(b, opts).Addr()
	} else if opts.DataDir != "" {
		b.Skip("needs an embedded server, to set its durability")
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

// The speed of plain reads must not depend on 100 writers that wait for the document
// (E-PF-03). Compare with BenchmarkGet.
func BenchmarkGetWhileWritersQueue(b *testing.B) {
	if os.Getenv("FIRESTORE_EMULATOR_HOST") != "" {
		b.Skip("needs an embedded server, to see its queue")
	}
	r := newRaw(b, Options{})
	r.mustCommit(nil, set("hot", 1))
	tx := r.begin(nil)
	r.get(tx, "hot")
	var writers errgroup.Group
	for range 100 {
		writers.Go(func() error { return r.commit(nil, set("hot", 2)) })
	}
	d, err := r.server.database(testDatabase)
	if err != nil {
		b.Fatal(err)
	}
	if err := d.locks.AwaitWaiting(r.ctx, 100); err != nil {
		b.Fatal(err)
	}
	c := clientFor(b, r.server.Addr(), "test")
	var readers errgroup.Group
	var done atomic.Int64
	b.ResetTimer()
	for range benchClients {
		readers.Go(func() error {
			for done.Add(1) <= int64(b.N) {
				if _, err := c.Doc("c/hot").Get(b.Context()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := readers.Wait(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
	r.mustCommit(tx)
	if err := writers.Wait(); err != nil {
		b.Fatal(err)
	}
}

// The memory that 100,000 documents take, and the duration of a query with few
// results and of one that scans half of them.
func BenchmarkHundredThousandDocuments(b *testing.B) {
	const documents = 100_000
	s := StartT(b, Options{})
	d, err := s.database(testDatabase)
	if err != nil {
		b.Fatal(err)
	}
	before := liveBytes()
	for i := range documents {
		w := &pb.Write{Operation: &pb.Write_Update{Update: &pb.Document{
			Name: fmt.Sprintf("%s/drones/drone%06d", testRoot, i),
			Fields: map[string]*pb.Value{
				"state": text("idle"), "battery": integer(int64(i % 100)), "lat": double(51.5), "lon": double(-0.1),
				"lastUpdate": {ValueType: &pb.Value_TimestampValue{TimestampValue: timestamppb.Now()}},
			},
		}}}
		if _, err := d.commitAlone(b.Context(), &pb.CommitRequest{Database: testDatabase, Writes: []*pb.Write{w}}, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	megabytes := float64(liveBytes()-before) / 1e6
	c := clientFor(b, s.Addr(), "test")
	b.ResetTimer()
	for range b.N {
		found, err := c.Collection("drones").Where("battery", "==", 7).Where("state", "==", "idle").Limit(10).Documents(b.Context()).GetAll()
		if err != nil || len(found) != 10 {
			b.Fatalf("%d documents, %v", len(found), err)
		}
	}
	b.StopTimer()
	began := time.Now()
	half := c.Collection("drones").Where("battery", ">=", 50)
	_, err = half.NewAggregationQuery().WithCount("n").Get(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/fullscan")
	b.ReportMetric(megabytes, "MB")
}

func double(f float64) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_DoubleValue{DoubleValue: f}}
}

func liveBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
