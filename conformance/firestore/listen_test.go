package conformance

import (
	"fmt"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"pgregory.net/rapid"
)

// listenedChange is the effect of a commit on a document that a listener follows.
type listenedChange struct {
	id     string
	fields fields // nil: deleted
}

func (c listenedChange) String() string {
	if c.fields == nil {
		return "delete " + c.id
	}
	return fmt.Sprintf("set %s %v", c.id, c.fields)
}

// E-PR-03: listeners on both servers see the same results and changes after every
// commit. Each commit also changes a sentinel that is always the first result, so that
// it causes exactly one snapshot.
func TestRandomSnapshots(t *testing.T) {
	officialAddr, embeddedAddr := official.address(t), startEmbedded(t)
	t.Setenv("FIRESTORE_EMULATOR_HOST", "") // or both clients would go where it points
	change := rapid.Custom(func(rt *rapid.T) listenedChange {
		c := listenedChange{id: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "id")}
		if !rapid.Bool().Draw(rt, "deleted") || rapid.Bool().Draw(rt, "really") {
			c.fields = fields{"n": rapid.SampledFrom([]any{-1, 0, 1, 2, 2.0, 3, "x", nil}).Draw(rt, "n")}
		}
		return c
	})
	commit := rapid.SliceOfNDistinct(change, 0, 3, func(c listenedChange) string { return c.id })
	rapid.Check(t, func(rt *rapid.T) {
		ctx := stepContext(t)
		project := fmt.Sprintf("listen-%d-%d", time.Now().UnixNano(), sequenceCount.Add(1))
		limit := rapid.IntRange(0, 3).Draw(rt, "limit")
		filtered := rapid.Bool().Draw(rt, "filtered")
		commits := rapid.SliceOfN(commit, 3, 12).Draw(rt, "commits")

		sides := map[string]*listenedSide{}
		for name, addr := range map[string]string{"official": officialAddr, "embedded": embeddedAddr} {
			client := projectClient(ctx, rt, addr, project)
			defer func() { _ = client.Close() }()
			q := client.Collection("c").OrderBy("n", firestore.Desc)
			sentinel := func(n int) any { return fields{"k": n} }
			if filtered {
				q = q.Where("n", ">", 0)
				sentinel = func(n int) any { return 1000 + n }
			}
			if limit > 0 {
				q = q.Limit(limit)
			}
			side := &listenedSide{name: name, sentinel: sentinel, client: client, snapshots: q.Snapshots(ctx)}
			defer side.snapshots.Stop()
			sides[name] = side
		}
		report := fmt.Sprintf("filtered %t, limit %d\n", filtered, limit)
		for i, changes := range append([][]listenedChange{nil}, commits...) {
			want, got := sides["official"].next(rt, i, changes), sides["embedded"].next(rt, i, changes)
			report += fmt.Sprintf("%d. %v\n   official: %s\n", i, changes, want)
			if got != want {
				rt.Logf("%s   embedded: %s", report, got)
				rt.Fatal("the listeners differ after the last commit")
			}
		}
	})
}

type listenedSide struct {
	name      string
	sentinel  func(n int) any // a value that sorts last
	client    *firestore.Client
	snapshots *firestore.QuerySnapshotIterator
}

// next commits the changes, except at the beginning, and shows the next snapshot.
func (s *listenedSide) next(rt *rapid.T, n int, changes []listenedChange) string {
	if n > 0 {
		batch := atomicBatch(s.client)
		batch.Set(s.client.Doc("c/sentinel"), fields{"n": s.sentinel(n)})
		for _, c := range changes {
			if c.fields == nil {
				batch.Delete(s.client.Doc("c/" + c.id))
			} else {
				batch.Set(s.client.Doc("c/"+c.id), c.fields)
			}
		}
		if _, err := batch.Commit(rt.Context()); err != nil {
			rt.Fatal(err)
		}
	}
	snapshot, err := s.snapshots.Next()
	if err != nil {
		rt.Fatalf("%s listener after commit %d %v: %v", s.name, n, changes, err)
	}
	docs, err := snapshot.Documents.GetAll()
	if err != nil {
		rt.Fatal(err)
	}
	shown := showSnapshots(docs)
	for _, c := range snapshot.Changes {
		shown += fmt.Sprintf("\n      change %d %s from %d to %d", c.Kind, c.Doc.Ref.ID, c.OldIndex, c.NewIndex)
	}
	return shown
}
