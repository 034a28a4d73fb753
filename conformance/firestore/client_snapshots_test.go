package conformance

import (
	"fmt"
	"testing"

	"cloud.google.com/go/firestore"
)

func TestClient_DocumentSnapshots(t *testing.T) {
	s := newSuite(t)
	ref := s.coll.Doc("a")
	it := ref.Snapshots(s.ctx)
	defer it.Stop()
	next := func(what string, want fields) {
		t.Helper()
		doc, err := it.Next()
		s.must(what, err)
		if doc.Exists() != (want != nil) || want != nil && diffData(want, doc.Data()) != "" {
			t.Errorf("%s: exists %t, %v", what, doc.Exists(), doc.Data())
		}
	}
	next("before it exists", nil)
	s.set("a", fields{"n": 1})
	next("created", fields{"n": int64(1)})
	s.set("a", fields{"n": 2})
	next("changed", fields{"n": int64(2)})
	_, err := ref.Delete(s.ctx)
	s.must("delete", err)
	next("deleted", nil)
}

func TestClient_LimitedSnapshots(t *testing.T) {
	s := newSuite(t)
	for i, id := range []string{"a", "b", "c"} {
		s.set(id, fields{"n": i})
	}
	it := s.coll.OrderBy("n", firestore.Desc).Limit(2).Snapshots(s.ctx)
	defer it.Stop()
	next := func(what, want string) {
		t.Helper()
		snapshot, err := it.Next()
		s.must(what, err)
		docs, err := snapshot.Documents.GetAll()
		s.must(what, err)
		if got := fmt.Sprint(idsOf(docs)); got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	next("at first", "[c b]")
	s.set("c", fields{"n": 10})
	next("changed in place", "[c b]")
	s.set("a", fields{"n": 20})
	next("one displaces another", "[a c]")
	_, err := s.coll.Doc("a").Delete(s.ctx)
	s.must("delete", err)
	next("the next moves up", "[c b]")
}

func TestClient_QuerySnapshots(t *testing.T) {
	s := newSuite(t)
	s.set("a", fields{"n": 1})
	s.set("b", fields{"n": 2})
	s.set("outside", fields{"n": -1})
	it := s.coll.Where("n", ">", 0).OrderBy("n", firestore.Asc).Snapshots(s.ctx)
	defer it.Stop()
	next := func(what, want string) {
		t.Helper()
		snapshot, err := it.Next()
		s.must(what, err)
		docs, err := snapshot.Documents.GetAll()
		s.must(what, err)
		got := fmt.Sprint(idsOf(docs), " ")
		for _, change := range snapshot.Changes {
			kind := map[firestore.DocumentChangeKind]string{firestore.DocumentAdded: "+", firestore.DocumentModified: "~", firestore.DocumentRemoved: "-"}[change.Kind]
			got += fmt.Sprintf("%s%s %d->%d;", kind, change.Doc.Ref.ID, change.OldIndex, change.NewIndex)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", what, got, want)
		}
	}
	next("at first", "[a b] +a -1->0;+b -1->1;")
	s.set("c", fields{"n": 1.5})
	next("added", "[a c b] +c -1->1;")
	s.set("outside", fields{"n": -2})
	s.set("a", fields{"n": 9})
	next("moved", "[c b a] ~a 0->2;")
	s.set("b", fields{"n": 0})
	next("left the query", "[c a] -b 1->-1;")
	_, err := s.coll.Doc("c").Delete(s.ctx)
	s.must("delete", err)
	next("deleted", "[a] -c 0->-1;")
}
