package firestoreemu

import (
	"strings"
	"testing"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/jonboulle/clockwork"
	"google.golang.org/grpc/codes"
)

// Documents, deletions, times and databases survive a restart; transactions and
// older versions do not (E-DU-01, E-ST-02).
func TestDurability_SurvivesRestart(t *testing.T) {
	dir := t.TempDir()
	r := newRaw(t, Options{DataDir: dir})
	r.mustCommit(nil, set("kept", 1), set("gone", 1))
	old := r.updateTime("kept")
	r.mustCommit(nil, set("kept", 2), remove("gone"))
	kept := r.document("kept")
	other := set("kept", 7)
	other.GetUpdate().Name = "projects/test/databases/second/documents/c/kept"
	if _, err := r.rpc.Commit(r.ctx, &pb.CommitRequest{Database: "projects/test/databases/second", Writes: []*pb.Write{other}}); err != nil {
		t.Fatal(err)
	}
	tx := r.begin(nil)
	r.get(tx, "kept")
	if err := r.server.Close(); err != nil {
		t.Fatal(err)
	}

	r = newRaw(t, Options{DataDir: dir})
	again := r.document("kept")
	if got := again.GetFields()["n"].GetIntegerValue(); got != 2 {
		t.Errorf("kept = %d, want 2", got)
	}
	if !again.GetUpdateTime().AsTime().Equal(kept.GetUpdateTime().AsTime()) || !again.GetCreateTime().AsTime().Equal(kept.GetCreateTime().AsTime()) {
		t.Errorf("times %v, %v; want %v, %v", again.GetCreateTime(), again.GetUpdateTime(), kept.GetCreateTime(), kept.GetUpdateTime())
	}
	if r.document("gone") != nil {
		t.Error("a deleted document came back")
	}
	d, err := r.rpc.GetDocument(r.ctx, &pb.GetDocumentRequest{Name: other.GetUpdate().GetName()})
	if err != nil || d.GetFields()["n"].GetIntegerValue() != 7 {
		t.Errorf("second database: %v, %v", d, err)
	}
	wantText(t, "transaction from before", r.commit(tx, set("kept", 3)), codes.InvalidArgument, textExpired)
	r.mustCommit(nil, set("kept", 3)) // its lock is gone
	_, err = r.rpc.GetDocument(r.ctx, &pb.GetDocumentRequest{
		Name: doc("kept"), ConsistencySelector: &pb.GetDocumentRequest_ReadTime{ReadTime: old},
	})
	wantCode(t, "version from before", err, codes.FailedPrecondition)
}

// A database with a name that is too long for the data file is refused and does not
// affect others (E-ER-01, E-DU-01).
func TestDurability_RefusesLongDatabaseName(t *testing.T) {
	r := newRaw(t, Options{DataDir: t.TempDir()})
	project := "projects/" + strings.Repeat("p", 1<<15)
	stray := set("d", 1)
	stray.GetUpdate().Name = project + "/databases/(default)/documents/c/d"
	_, err := r.rpc.Commit(r.ctx, &pb.CommitRequest{Database: project + "/databases/(default)", Writes: []*pb.Write{stray}})
	if codeOf(err) != codes.InvalidArgument {
		t.Errorf("a name of 32 KiB: %.80v, want InvalidArgument", err)
	}
	r.mustCommit(nil, set("d", 1))
}

// No commit is earlier than a previous commit that changed nothing, even after a
// restart with the clock set back (E-ST-02, E-WR-04).
func TestDurability_TimeOfNoOpSurvivesRestart(t *testing.T) {
	dir, clock := t.TempDir(), clockwork.NewFakeClock()
	before := clock.Now()
	r := newRaw(t, Options{DataDir: dir, Clock: clock})
	r.mustCommit(nil, set("d", 1))
	clock.Advance(time.Minute)
	nothing, err := r.rpc.Commit(r.ctx, &pb.CommitRequest{Database: testDatabase, Writes: []*pb.Write{set("d", 1)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.server.Close(); err != nil {
		t.Fatal(err)
	}

	r = newRaw(t, Options{DataDir: dir, Clock: clockwork.NewFakeClockAt(before)})
	next, err := r.rpc.Commit(r.ctx, &pb.CommitRequest{Database: testDatabase, Writes: []*pb.Write{set("d", 2)}})
	if err != nil {
		t.Fatal(err)
	}
	if commitMicros(next) <= commitMicros(nothing) {
		t.Errorf("a commit at %v after one at %v", next.GetCommitTime().AsTime(), nothing.GetCommitTime().AsTime())
	}
}
