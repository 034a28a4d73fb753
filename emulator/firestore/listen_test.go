package firestoreemu

import (
	"context"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
)

// The snapshots of a query show added, changed and removed documents (E-RPC-02).
func TestListen_FollowsQuery(t *testing.T) {
	ctx := testContext(t)
	c := newClient(t, serverUnderTest(t))
	drones := c.Collection("drones")
	write := func(id string, battery int) {
		t.Helper()
		if _, err := drones.Doc(id).Set(ctx, map[string]any{"battery": battery}); err != nil {
			t.Fatal(err)
		}
	}
	write("a", 50)
	it := drones.Where("battery", ">=", 20).Snapshots(ctx)
	defer it.Stop()
	next := func() *firestore.QuerySnapshot {
		t.Helper()
		snap, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	wantChange := func(snap *firestore.QuerySnapshot, size int, id string, kind firestore.DocumentChangeKind) {
		t.Helper()
		if snap.Size != size || len(snap.Changes) != 1 || snap.Changes[0].Doc.Ref.ID != id || snap.Changes[0].Kind != kind {
			t.Errorf("snapshot of %d with changes %+v; want %d and a change of kind %v of %s", snap.Size, snap.Changes, size, kind, id)
		}
	}
	wantChange(next(), 1, "a", firestore.DocumentAdded)
	write("b", 30)
	wantChange(next(), 2, "b", firestore.DocumentAdded)
	write("low", 5) // does not match: no snapshot
	write("b", 31)
	wantChange(next(), 2, "b", firestore.DocumentModified)
	write("a", 10)
	wantChange(next(), 1, "a", firestore.DocumentRemoved)
	if _, err := drones.Doc("b").Delete(ctx); err != nil {
		t.Fatal(err)
	}
	wantChange(next(), 0, "b", firestore.DocumentRemoved)
}

// A snapshot of a query with a limit changes when a document displaces another.
func TestListen_FollowsQueryWithLimit(t *testing.T) {
	ctx := testContext(t)
	c := newClient(t, serverUnderTest(t))
	write := func(id string, n int) {
		t.Helper()
		if _, err := c.Doc("q/"+id).Set(ctx, map[string]any{"n": n}); err != nil {
			t.Fatal(err)
		}
	}
	write("a", 2)
	write("b", 3)
	it := c.Collection("q").OrderBy("n", firestore.Asc).Limit(2).Snapshots(ctx)
	defer it.Stop()
	if snap, err := it.Next(); err != nil || snap.Size != 2 {
		t.Fatalf("first snapshot: %+v, %v", snap, err)
	}
	write("c", 1)
	snap, err := it.Next()
	if err != nil {
		t.Fatal(err)
	}
	docs, err := snap.Documents.GetAll()
	if err != nil || len(docs) != 2 || docs[0].Ref.ID != "c" || docs[1].Ref.ID != "a" {
		t.Errorf("second snapshot: %d documents, %v; want c, a", len(docs), err)
	}
}

// The snapshots of a document show that it is created and deleted.
func TestListen_FollowsDocument(t *testing.T) {
	ctx := testContext(t)
	c := newClient(t, serverUnderTest(t))
	ref := c.Doc("drones/d")
	it := ref.Snapshots(ctx)
	defer it.Stop()
	expect := func(exists bool) {
		t.Helper()
		snap, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		if snap.Exists() != exists {
			t.Errorf("exists = %v, want %v", snap.Exists(), exists)
		}
	}
	expect(false)
	if _, err := ref.Set(ctx, map[string]any{"n": 1}); err != nil {
		t.Fatal(err)
	}
	expect(true)
	if _, err := ref.Delete(ctx); err != nil {
		t.Fatal(err)
	}
	expect(false)
}

// A resumed target gets the changes and deletions since, and a count.
func TestListen_Resumes(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("a", 1), set("b", 2), set("c", 3))
	token := r.listenOnce(nil)
	if got := r.heard; len(got.changed) != 3 || len(got.deleted) != 0 {
		t.Fatalf("first: %+v, want three documents", got)
	}
	r.mustCommit(nil, set("a", 10), remove("b"))
	r.listenOnce(token)
	if got := r.heard; len(got.changed) != 1 || got.changed[0] != "a" || len(got.deleted) != 1 || got.deleted[0] != "b" || got.count != 2 {
		t.Errorf("resumed: %+v, want a changed, b deleted, 2 in all", got)
	}
	if got := r.heard; got.reset {
		t.Error("resumed with a reset, want none")
	}
	r.listenOnce([]byte("12345678"))
	if !r.heard.reset || len(r.heard.changed) != 2 {
		t.Errorf("resumed from nowhere: %+v, want a reset and everything", r.heard)
	}
}

// After a restart with the clock set back, the server commits at times that it has
// already sent to listeners. A listener that resumes does not miss these commits
// (E-ST-03).
func TestListen_ResumesAfterRestart(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	clock := clockwork.NewFakeClockAt(now)
	r := newRaw(t, Options{DataDir: dir, Clock: clock})
	r.mustCommit(nil, set("a", 1))
	clock.Advance(2 * time.Minute)
	token := r.listenOnce(nil)
	if err := r.server.Close(); err != nil {
		t.Fatal(err)
	}
	clock = clockwork.NewFakeClockAt(now.Add(time.Minute))
	r = newRaw(t, Options{DataDir: dir, Clock: clock})
	r.mustCommit(nil, set("a", 2))
	clock.Advance(2 * time.Minute)
	token = r.listenOnce(token)
	if got := r.heard; !slices.Equal(got.changed, []string{"a"}) {
		t.Errorf("resumed: %+v, want a changed", got)
	}
	r.listenOnce(token)
	if got := r.heard; got.reset || len(got.changed) != 0 {
		t.Errorf("resumed again: %+v, want no reset and nothing new", got)
	}
}

// heard is what a Listen stream sent.
type heard struct {
	changed, deleted []string
	count            int32
	reset            bool
}

// listenOnce listens to collection c until it is consistent and returns the resume
// token. What the stream sent is in r.heard.
func (r *raw) listenOnce(resume []byte) []byte {
	r.t.Helper()
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	stream, err := r.rpc.Listen(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	target := &pb.Target{TargetId: 7, TargetType: &pb.Target_Query{Query: &pb.Target_QueryTarget{
		Parent: testRoot,
		QueryType: &pb.Target_QueryTarget_StructuredQuery{StructuredQuery: &pb.StructuredQuery{
			From: []*pb.StructuredQuery_CollectionSelector{{CollectionId: "c"}},
		}},
	}}}
	if resume != nil {
		target.ResumeType = &pb.Target_ResumeToken{ResumeToken: resume}
		target.ExpectedCount = wrapperspb.Int32(1) // requests names in the filter, which are optional
	}
	err = stream.Send(&pb.ListenRequest{Database: testDatabase, TargetChange: &pb.ListenRequest_AddTarget{AddTarget: target}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.heard = heard{}
	for {
		answer, err := stream.Recv()
		if err != nil {
			r.t.Fatal(err)
		}
		switch a := answer.GetResponseType().(type) {
		case *pb.ListenResponse_DocumentChange:
			r.heard.changed = append(r.heard.changed, a.DocumentChange.GetDocument().GetName()[len(doc("")):])
		case *pb.ListenResponse_DocumentDelete:
			r.heard.deleted = append(r.heard.deleted, a.DocumentDelete.GetDocument()[len(doc("")):])
		case *pb.ListenResponse_Filter:
			r.heard.count = a.Filter.GetCount()
			if a.Filter.GetUnchangedNames() != nil {
				r.t.Error("the filter has names")
			}
		case *pb.ListenResponse_TargetChange:
			switch a.TargetChange.GetTargetChangeType() {
			case pb.TargetChange_RESET:
				r.heard.reset = true
			case pb.TargetChange_REMOVE:
				r.t.Fatalf("removed: %v", a.TargetChange.GetCause())
			case pb.TargetChange_NO_CHANGE:
				return a.TargetChange.GetResumeToken()
			}
		}
	}
}

// A listener that is far behind does not miss a commit that was dropped after the
// listener had chosen its next state (E-RPC-02).
func TestListen_DoesNotMissDroppedCommit(t *testing.T) {
	d, err := StartT(t, Options{}).database(testDatabase)
	if err != nil {
		t.Fatal(err)
	}
	commit := func(id string) {
		t.Helper()
		change := store.Change{Name: doc(id), Doc: &pb.Document{Name: doc(id)}}
		if _, err := d.store.Commit([]store.Change{change}, 0); err != nil {
			t.Fatal(err)
		}
	}
	l := &listener{server: d.server, db: d, watcher: d.store.Watch(), targets: map[int32]*target{}}
	defer l.close()
	l.targets[1] = &target{id: 1, names: []string{doc("a")}, shown: map[string]*pb.Document{}}
	next := d.store.Now()
	defer next.Close()
	commit("a")
	for range 5000 { // more than a watcher keeps
		commit("b")
	}
	l.advance(next)
	now := d.store.Now()
	defer now.Close()
	l.advance(now)
	if l.targets[1].shown[doc("a")] == nil {
		t.Error("the dropped commit was missed")
	}
}

// An invalid target is removed with the reason, and the stream continues.
func TestListen_RemovesInvalidTarget(t *testing.T) {
	r := newRaw(t, Options{})
	stream, err := r.rpc.Listen(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for what, target := range map[string]*pb.Target{
		"no name": {TargetType: &pb.Target_Documents{
			Documents: &pb.Target_DocumentsTarget{Documents: []string{"nonsense"}},
		}},
		"no query": {TargetType: &pb.Target_Query{Query: &pb.Target_QueryTarget{Parent: testRoot}}},
		"nothing":  {},
	} {
		target.TargetId = 7
		err := stream.Send(&pb.ListenRequest{Database: testDatabase, TargetChange: &pb.ListenRequest_AddTarget{AddTarget: target}})
		if err != nil {
			t.Fatal(err)
		}
		answer, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		removed := answer.GetTargetChange()
		if removed.GetTargetChangeType() != pb.TargetChange_REMOVE || codes.Code(removed.GetCause().GetCode()) != codes.InvalidArgument {
			t.Errorf("%s: got %v, want REMOVE with INVALID_ARGUMENT", what, answer)
		}
	}
}
