package firestoreemu

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
	"weak"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/jonboulle/clockwork"
)

// A client that stops reading in the middle of an answer does not keep versions older
// than the retention in memory (E-ST-05).
func TestSnapshot_SlowReaderKeepsNothing(t *testing.T) {
	const documents = 10 // far more than a connection buffers
	everything := &pb.StructuredQuery{From: []*pb.StructuredQuery_CollectionSelector{{CollectionId: "c"}}}
	reads := map[string]func(*raw) (receive func() error, err error){
		"RunQuery": func(r *raw) (func() error, error) {
			stream, err := r.rpc.RunQuery(r.ctx, &pb.RunQueryRequest{
				Parent: testRoot, QueryType: &pb.RunQueryRequest_StructuredQuery{StructuredQuery: everything},
			})
			return func() error { _, err := stream.Recv(); return err }, err
		},
		"BatchGetDocuments": func(r *raw) (func() error, error) {
			req := &pb.BatchGetDocumentsRequest{Database: testDatabase}
			for i := range documents {
				req.Documents = append(req.Documents, doc(fmt.Sprint(i)))
			}
			stream, err := r.rpc.BatchGetDocuments(r.ctx, req)
			return func() error { _, err := stream.Recv(); return err }, err
		},
		"Listen": func(r *raw) (func() error, error) {
			stream, err := r.rpc.Listen(r.ctx)
			if err != nil {
				return nil, err
			}
			err = stream.Send(&pb.ListenRequest{Database: testDatabase, TargetChange: &pb.ListenRequest_AddTarget{AddTarget: &pb.Target{
				TargetId: 1, TargetType: &pb.Target_Query{Query: &pb.Target_QueryTarget{
					Parent: testRoot, QueryType: &pb.Target_QueryTarget_StructuredQuery{StructuredQuery: everything},
				}},
			}}})
			return func() error { _, err := stream.Recv(); return err }, err
		},
	}
	for name, read := range reads {
		t.Run(name, func(t *testing.T) {
			clock := clockwork.NewFakeClock()
			r := newRaw(t, Options{Clock: clock, Retention: time.Minute})
			for i := range documents {
				large := set(fmt.Sprint(i), 1)
				large.GetUpdate().Fields["text"] = text(strings.Repeat("x", 1_000_000))
				r.mustCommit(nil, large)
			}
			other := func(n int64) *pb.Write {
				w := set("", n)
				w.GetUpdate().Name = testRoot + "/other/one"
				return w
			}
			r.mustCommit(nil, other(1))
			receive, err := read(r)
			if err != nil {
				t.Fatal(err)
			}
			if err := receive(); err != nil { // once, and not the rest
				t.Fatal(err)
			}
			d, err := r.server.database(testDatabase)
			if err != nil {
				t.Fatal(err)
			}
			old := weak.Make(d.store.Newest(testRoot + "/other/one"))
			r.mustCommit(nil, other(2))
			clock.Advance(time.Hour)
			for range 5000 { // more than is kept for a listener that falls behind
				if _, err := d.store.Commit(nil, 0); err != nil {
					t.Fatal(err)
				}
			}
			wantFreed(t, old)
		})
	}
}

// wantFreed waits until a version that was replaced long ago is no longer in memory. A goroutine of the
// server may still be ending that has it.
func wantFreed[T any](t *testing.T, old weak.Pointer[T]) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if runtime.GC(); old.Value() == nil {
			return
		}
		if time.Since(began) > 10*time.Second {
			t.Error("a version older than the retention is still in memory")
			return
		}
	}
}
