package firestoreemu

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
)

// E-TX-09 (a): A, then B, read d. B's commit waits; A's commit wins; B is aborted, and
// its retry sees A's value.
func TestContention_OlderWriterWins(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1))
	a, b := r.begin(nil), r.begin(nil)
	r.get(a, "d")
	r.get(b, "d")
	outcome := r.commitBlocks(1, b, set("d", 20))
	r.mustCommit(a, set("d", 10))
	wantCode(t, "B's commit", outcome(), codes.Aborted)
	if err := r.rollback(b); err != nil {
		t.Errorf("B's rollback: %v", err)
	}
	retry := r.begin(b)
	if got := r.get(retry, "d"); got != 10 {
		t.Errorf("B's retry reads %d, want A's 10", got)
	}
	r.mustCommit(retry, set("d", 30))
	if got := r.get(nil, "d"); got != 30 {
		t.Errorf("d = %d, want 30", got)
	}
}

// E-TX-09 (b): if A writes nothing, B waits until A ends and then commits.
func TestContention_WriterWaitsForReader(t *testing.T) {
	for _, end := range []string{"commit", "rollback"} {
		t.Run(end, func(t *testing.T) {
			r := newRaw(t, Options{})
			r.mustCommit(nil, set("d", 1))
			a, b := r.begin(nil), r.begin(nil)
			r.get(a, "d")
			r.get(b, "d")
			outcome := r.commitBlocks(1, b, set("d", 20))
			if end == "commit" {
				r.mustCommit(a)
			} else if err := r.rollback(a); err != nil {
				t.Fatal(err)
			}
			if err := outcome(); err != nil {
				t.Errorf("B's commit: %v, want OK without a retry", err)
			}
		})
	}
}

// E-TX-09 (c): a write outside transactions waits and then overwrites A's.
func TestContention_OutsideWriteWaits(t *testing.T) {
	outside := map[string]func(r *raw) error{
		"set":    func(r *raw) error { return r.commit(nil, set("d", 99)) },
		"delete": func(r *raw) error { return r.commit(nil, remove("d")) },
		"batch":  func(r *raw) error { return r.commit(nil, set("other", 1), set("d", 99)) },
	}
	for name, write := range outside {
		t.Run(name, func(t *testing.T) {
			r := newRaw(t, Options{})
			r.mustCommit(nil, set("d", 1))
			a := r.begin(nil)
			r.get(a, "d")
			outcome := blocks(r, 1, func() (int, error) { return 0, write(r) })
			r.mustCommit(a, set("d", 10))
			if _, err := outcome(); err != nil {
				t.Errorf("outside %s: %v", name, err)
			}
			want := int64(99)
			if name == "delete" {
				want = -1
			}
			if got := r.get(nil, "d"); got != want {
				t.Errorf("d = %d, want %d: the outside write applies last", got, want)
			}
		})
	}
}

// E-TX-09 (d): A read d, B queried it. A commits immediately, B's commit is aborted, and
// its rerun sees the change.
func TestContention_QueryYoungerThanWriter(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1))
	a, b := r.begin(nil), r.begin(nil)
	r.get(a, "d")
	r.query(b, 0, 0)
	r.mustCommit(a, set("d", 10))
	wantCode(t, "B's commit", r.commit(b, set("e", 1)), codes.Aborted)
	if err := r.rollback(b); err != nil {
		t.Error(err)
	}
	retry := r.begin(b)
	if got := r.query(retry, 0, 0); !slices.Equal(got, []int64{10}) {
		t.Errorf("B's rerun sees %v, want [10]", got)
	}
	r.mustCommit(retry, set("e", 1))
}

// E-TX-09 (e): B queried d first, so A's write to d waits for B.
func TestContention_WriterWaitsForQuery(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("d", 1))
	a, b := r.begin(nil), r.begin(nil)
	r.query(b, 0, 0)
	r.get(a, "d")
	outcome := r.commitBlocks(1, a, set("d", 10))
	if got := r.query(b, 0, 0); !slices.Equal(got, []int64{1}) {
		t.Errorf("B's second query sees %v, want [1] as before", got)
	}
	r.mustCommit(b, set("e", 1))
	if err := outcome(); err != nil {
		t.Errorf("A's commit: %v", err)
	}
}

// E-TX-09 (f): two transactions read and write the same documents in opposite order.
// Exactly one more attempt is needed.
func TestContention_CrossedReads(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("1", 1), set("2", 2))
	a, b := r.begin(nil), r.begin(nil)
	r.get(a, "1")
	r.get(b, "2")
	r.get(a, "2")
	r.get(b, "1")
	outcome := r.commitBlocks(1, b, set("1", 21), set("2", 22))
	r.mustCommit(a, set("1", 11), set("2", 12))
	wantCode(t, "B's first attempt", outcome(), codes.Aborted)
	if err := r.rollback(b); err != nil {
		t.Error(err)
	}
	retry := r.begin(b)
	if one, two := r.get(retry, "1"), r.get(retry, "2"); one != 11 || two != 12 {
		t.Errorf("B's retry reads %d and %d, want 11 and 12", one, two)
	}
	r.mustCommit(retry, set("1", 21), set("2", 22))
	if c := r.server.Counters(); c.Wounds != 1 {
		t.Errorf("%d transactions were wounded, want 1", c.Wounds)
	}
}

// E-TX-09 (g): while a reader holds its lock and a writer waits, a later read or query
// waits for that writer and sees its data.
func TestContention_ReaderWaitsForWaitingWriter(t *testing.T) {
	later := map[string]func(r *raw, tx []byte) (int64, error){
		"get": func(r *raw, tx []byte) (int64, error) {
			got, err := r.tryGet(tx, "d")
			return got["d"], err
		},
		"query": func(r *raw, tx []byte) (int64, error) {
			got, err := r.tryQuery(tx, 0, 0)
			if err != nil || len(got) != 1 {
				return 0, fmt.Errorf("query found %v: %w", got, err)
			}
			return got[0], nil
		},
	}
	for name, read := range later {
		t.Run(name, func(t *testing.T) {
			r := newRaw(t, Options{})
			r.mustCommit(nil, set("d", 1))
			a, c := r.begin(nil), r.begin(nil)
			r.get(a, "d")
			write := r.commitBlocks(1, nil, set("d", 10))
			lateRead := blocks(r, 2, func() (int64, error) { return read(r, c) })
			r.mustCommit(a)
			if err := write(); err != nil {
				t.Errorf("the waiting write: %v", err)
			}
			if got, err := lateRead(); err != nil || got != 10 {
				t.Errorf("the later read got %d, %v; want 10", got, err)
			}
			r.mustCommit(c)
		})
	}
}

// E-TX-09 (h): transactions on different documents never wait, and those that read a
// common document and write different ones need no retry.
func TestContention_DisjointWritesNeverWait(t *testing.T) {
	r := newRaw(t, Options{})
	r.mustCommit(nil, set("common", 1), set("1", 1), set("2", 2))
	a, b := r.begin(nil), r.begin(nil)
	r.get(a, "common")
	r.get(b, "common")
	r.get(a, "1")
	r.get(b, "2")
	r.mustCommit(b, set("2", 20))
	r.mustCommit(a, set("1", 10))
	r.mustCommit(nil, set("3", 3))
	if c := r.server.Counters(); c.Waits != 0 || c.Wounds != 0 {
		t.Errorf("%d waits and %d wounds, want none", c.Waits, c.Wounds)
	}
}

// E-TX-09 (i): missing documents are locked like existing ones.
func TestContention_MissingDocumentLocks(t *testing.T) {
	r := newRaw(t, Options{})
	a, b := r.begin(nil), r.begin(nil)
	if got := r.get(a, "d"); got != -1 {
		t.Fatalf("d = %d, want missing", got)
	}
	r.get(b, "d")
	outcome := r.commitBlocks(1, b, set("d", 20))
	outside := r.commitBlocks(2, nil, set("d", 30))
	r.mustCommit(a, set("d", 10))
	wantCode(t, "B's commit", outcome(), codes.Aborted)
	if err := outside(); err != nil {
		t.Errorf("outside create: %v", err)
	}
	if got := r.get(nil, "d"); got != 30 {
		t.Errorf("d = %d, want 30", got)
	}
}
