package conformance

import (
	"errors"
	"math"
	"testing"
	"time"

	"cloud.google.com/go/firestore"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/api/iterator"
	"google.golang.org/genproto/googleapis/type/latlng"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
)

func diffData(want, got any) string {
	return cmp.Diff(want, got, protocmp.Transform(), cmpopts.EquateNaNs(), cmpopts.EquateEmpty(),
		cmp.Comparer(func(a, b *firestore.DocumentRef) bool { return a.Path == b.Path }))
}

func TestClient_CreateGetSetDelete(t *testing.T) {
	s := newSuite(t)
	ref := s.coll.Doc("a")

	_, err := ref.Get(s.ctx)
	s.wantCode("get of a missing document", err, codes.NotFound)
	if doc, _ := ref.Get(s.ctx); doc == nil || doc.Exists() || doc.ReadTime.IsZero() {
		t.Errorf("snapshot of a missing document: %+v", doc)
	}

	created, err := ref.Create(s.ctx, fields{"n": 1})
	s.must("create", err)
	_, err = ref.Create(s.ctx, fields{"n": 2})
	s.wantCode("create once more", err, codes.AlreadyExists)

	doc := s.get(ref)
	if !doc.CreateTime.Equal(created.UpdateTime) || !doc.UpdateTime.Equal(created.UpdateTime) || doc.ReadTime.Before(doc.UpdateTime) {
		t.Errorf("created at %v: create %v, update %v, read %v", created.UpdateTime, doc.CreateTime, doc.UpdateTime, doc.ReadTime)
	}

	replaced, err := ref.Set(s.ctx, fields{"m": "x"})
	s.must("set", err)
	s.wantData("set replaces", ref, fields{"m": "x"})
	doc = s.get(ref)
	if !replaced.UpdateTime.After(created.UpdateTime) || !doc.CreateTime.Equal(created.UpdateTime) {
		t.Errorf("set at %v after %v, created %v", replaced.UpdateTime, created.UpdateTime, doc.CreateTime)
	}

	// E-WR-04
	again, err := ref.Set(s.ctx, fields{"m": "x"})
	s.must("set the same", err)
	if !again.UpdateTime.Equal(replaced.UpdateTime) {
		t.Errorf("a write that changes nothing changed the update time from %v to %v", replaced.UpdateTime, again.UpdateTime)
	}

	// E-WR-05
	_, err = ref.Delete(s.ctx)
	s.must("delete", err)
	_, err = ref.Delete(s.ctx)
	s.must("delete once more", err)
	_, err = ref.Create(s.ctx, fields{})
	s.must("create after delete", err)
	if doc = s.get(ref); !doc.CreateTime.After(created.UpdateTime) {
		t.Errorf("recreated at %v, first created at %v", doc.CreateTime, created.UpdateTime)
	}

	added, _, err := s.coll.Add(s.ctx, fields{"n": 3})
	s.must("add", err)
	s.wantData("added", added, fields{"n": int64(3)})
}

func TestClient_EveryTypeSurvives(t *testing.T) {
	s := newSuite(t)
	at := time.Date(2020, 2, 3, 4, 5, 6, 789_123_456, time.UTC)
	stored := fields{
		"nil": nil, "bool": true, "int": int64(math.MinInt64), "float": 1.5, "nan": math.NaN(), "inf": math.Inf(-1),
		"string": "é\U0001f600", "bytes": []byte{0, 255}, "time": at, "geo": &latlng.LatLng{Latitude: -90, Longitude: 180},
		"ref": s.coll.Doc("other"), "array": []any{int64(1), "x", nil, fields{"k": []any{true}}}, "map": fields{"k": fields{"l": int64(1)}},
		"vector": firestore.Vector64{1, 2.5},
	}
	ref := s.set("types", stored)
	stored["time"] = at.Truncate(time.Microsecond) // E-WR-07
	s.wantData("types", ref, stored)

	_, err := ref.Set(s.ctx, fields{"": 1})
	s.wantCode("empty field name", err, codes.InvalidArgument)
}

// E-WR-04: zero and negative zero compare as equal, but are stored as they are written.
func TestClient_ZerosKeepTheirSign(t *testing.T) {
	s := newSuite(t)
	negative := math.Copysign(0, -1)
	ref := s.set("a", fields{"n": negative})
	s.set("a", fields{"n": 0.0})
	if n := s.get(ref).Data()["n"].(float64); math.Signbit(n) {
		t.Errorf("zero over negative zero: read %v", n)
	}
	s.set("a", fields{"n": negative})
	if n := s.get(ref).Data()["n"].(float64); !math.Signbit(n) {
		t.Errorf("negative zero over zero: read %v", n)
	}
}

type purchase struct {
	Customer string    `firestore:"customer"`
	Items    []item    `firestore:"items"`
	Note     *string   `firestore:"note,omitempty"`
	Changed  time.Time `firestore:"changed,serverTimestamp"`
}

type item struct {
	Name  string  `firestore:"name"`
	Price float64 `firestore:"price"`
}

func TestClient_Structs(t *testing.T) {
	s := newSuite(t)
	stored := purchase{Customer: "ann", Items: []item{{"bolt", 0.5}, {"nut", 1}}}
	ref := s.coll.Doc("order")
	result, err := ref.Create(s.ctx, &stored)
	s.must("create", err)

	var got purchase
	s.must("decode", s.get(ref).DataTo(&got))
	if lag := result.UpdateTime.Sub(got.Changed); got.Changed.IsZero() || lag < 0 || lag > suitePatience {
		t.Errorf("server timestamp %v, committed %v", got.Changed, result.UpdateTime)
	}
	got.Changed = stored.Changed
	if diff := cmp.Diff(stored, got); diff != "" {
		t.Error(diff)
	}
	if name, err := s.get(ref).DataAt("customer"); err != nil || name != "ann" {
		t.Errorf("DataAt: %v, %v", name, err)
	}
}

// E-WR-02
func TestClient_MergeAndUpdate(t *testing.T) {
	s := newSuite(t)
	ref := s.set("a", fields{"keep": 1, "m": fields{"x": 1, "y": 2}, "odd.name": 1})

	_, err := ref.Set(s.ctx, fields{"m": fields{"x": 9}, "new": true}, firestore.MergeAll)
	s.must("merge all", err)
	s.wantData("merge all", ref, fields{"keep": int64(1), "m": fields{"x": int64(9), "y": int64(2)}, "odd.name": int64(1), "new": true})

	_, err = ref.Set(s.ctx, fields{"m": fields{"z": 3}, "keep": 7}, firestore.Merge([]string{"m"}))
	s.must("merge one path", err)
	s.wantData("merge one path", ref, fields{"keep": int64(1), "m": fields{"z": int64(3)}, "odd.name": int64(1), "new": true})

	_, err = ref.Update(s.ctx, []firestore.Update{
		{Path: "m.deep.er", Value: "v"},
		{Path: "new", Value: firestore.Delete},
		{FieldPath: firestore.FieldPath{"odd.name"}, Value: firestore.Increment(1)},
	})
	s.must("update", err)
	s.wantData("update", ref, fields{"keep": int64(1), "m": fields{"z": int64(3), "deep": fields{"er": "v"}}, "odd.name": int64(2)})

	_, err = s.coll.Doc("missing").Update(s.ctx, []firestore.Update{{Path: "a", Value: 1}})
	s.wantCode("update of a missing document", err, codes.NotFound)
	_, err = s.coll.Doc("made").Set(s.ctx, fields{"m": fields{"x": 1}}, firestore.MergeAll)
	s.must("merge makes the document", err)
	s.wantData("merge makes the document", s.coll.Doc("made"), fields{"m": fields{"x": int64(1)}})
}

// A vector is encoded as a map but has no fields.
func TestClient_VectorsHaveNoFields(t *testing.T) {
	s := newSuite(t)
	ref := s.set("a", fields{"v": firestore.Vector64{1}})
	s.wantIDs("equal inside", s.coll.Where("v.value", "==", []float64{1}))
	s.wantIDs("anything inside", s.coll.Where("v.value", "!=", nil))

	_, err := ref.Update(s.ctx, []firestore.Update{{Path: "v.value", Value: firestore.Delete}})
	s.must("delete inside", err)
	s.wantData("delete inside", ref, fields{"v": firestore.Vector64{1}})

	_, err = ref.Set(s.ctx, fields{"v": fields{"k": "x"}}, firestore.MergeAll)
	s.must("set inside", err)
	s.wantData("set inside", ref, fields{"v": fields{"k": "x"}})
}

// E-WR-03
func TestClient_Preconditions(t *testing.T) {
	s := newSuite(t)
	ref := s.coll.Doc("a")
	first, err := ref.Set(s.ctx, fields{"n": 1})
	s.must("set", err)
	update := []firestore.Update{{Path: "n", Value: 2}}

	_, err = ref.Update(s.ctx, update, firestore.LastUpdateTime(first.UpdateTime.Add(-time.Second)))
	s.wantCode("update at another time", err, codes.FailedPrecondition)
	second, err := ref.Update(s.ctx, update, firestore.LastUpdateTime(first.UpdateTime))
	s.must("update at the right time", err)
	_, err = ref.Delete(s.ctx, firestore.LastUpdateTime(first.UpdateTime))
	s.wantCode("delete at the old time", err, codes.FailedPrecondition)
	_, err = ref.Delete(s.ctx, firestore.LastUpdateTime(second.UpdateTime))
	s.must("delete at the right time", err)
	_, err = ref.Delete(s.ctx, firestore.Exists)
	s.wantCode("delete that must exist", err, codes.NotFound)
}

// E-WR-06
func TestClient_Transforms(t *testing.T) {
	s := newSuite(t)
	ref := s.set("a", fields{"n": 1, "f": 1.5, "tags": []string{"x", "y"}, "max": 5, "min": 5, "text": "t"})
	_, err := ref.Update(s.ctx, []firestore.Update{
		{Path: "n", Value: firestore.Increment(2)},
		{Path: "f", Value: firestore.Increment(1)},
		{Path: "tags", Value: firestore.ArrayUnion("y", "z")},
		{Path: "max", Value: firestore.FieldTransformMaximum(7)},
		{Path: "min", Value: firestore.FieldTransformMinimum(7)},
		{Path: "text", Value: firestore.Increment(1)},
		{Path: "fresh", Value: firestore.ArrayUnion(1)},
	})
	s.must("update", err)
	s.wantData("transforms", ref, fields{"n": int64(3), "f": 2.5, "tags": []any{"x", "y", "z"}, "max": int64(7), "min": int64(5), "text": int64(1), "fresh": []any{int64(1)}})

	_, err = ref.Set(s.ctx, fields{"tags": firestore.ArrayRemove("x", "z"), "n": firestore.Increment(-3)}, firestore.MergeAll)
	s.must("merge", err)
	s.wantData("merged transforms", ref, fields{"n": int64(0), "f": 2.5, "tags": []any{"y"}, "max": int64(7), "min": int64(5), "text": int64(1), "fresh": []any{int64(1)}})

	made := s.coll.Doc("made")
	result, err := made.Create(s.ctx, fields{"at": firestore.ServerTimestamp, "n": firestore.Increment(1)})
	s.must("create", err)
	at := s.get(made).Data()["at"].(time.Time)
	if at.After(result.UpdateTime) || at.Nanosecond()%int(time.Millisecond) != 0 {
		t.Errorf("request time %v of a commit at %v", at, result.UpdateTime)
	}
}

func TestClient_GetAll(t *testing.T) {
	s := newSuite(t)
	a, b := s.set("a", fields{"n": 1}), s.set("b", fields{"n": 2})
	missing := s.coll.Doc("missing")
	docs, err := s.client.GetAll(s.ctx, []*firestore.DocumentRef{b, missing, a, b})
	s.must("get all", err)
	want := []struct {
		id     string
		exists bool
	}{{"b", true}, {"missing", false}, {"a", true}, {"b", true}}
	for i, doc := range docs {
		if doc.Ref.ID != want[i].id || doc.Exists() != want[i].exists || !doc.ReadTime.Equal(docs[0].ReadTime) {
			t.Errorf("document %d: %s exists %t read %v", i, doc.Ref.ID, doc.Exists(), doc.ReadTime)
		}
	}
}

// E-ST-05
func TestClient_ReadTime(t *testing.T) {
	s := newSuite(t)
	ref := s.coll.Doc("a")
	first, err := ref.Set(s.ctx, fields{"n": 1})
	s.must("set", err)
	s.set("a", fields{"n": 2})
	s.set("b", fields{"n": 1})

	doc, err := s.client.Doc("c/a").WithReadOptions(firestore.ReadTime(first.UpdateTime)).Get(s.ctx)
	s.must("get of the past", err)
	if doc.Data()["n"] != int64(1) || !doc.ReadTime.Equal(first.UpdateTime) {
		t.Errorf("at %v: %v read at %v", first.UpdateTime, doc.Data(), doc.ReadTime)
	}
	all := s.client.Collection("c").Query
	s.wantIDs("query of the past", *all.WithReadOptions(firestore.ReadTime(first.UpdateTime)), "a")
}

func TestClient_Listing(t *testing.T) {
	s := newSuite(t)
	s.set("a", fields{})
	_, err := s.coll.Doc("ghost").Collection("sub").Doc("x").Set(s.ctx, fields{})
	s.must("set below a missing document", err)
	_, err = s.client.Doc("d/1/e/2").Set(s.ctx, fields{})
	s.must("set", err)

	refs, err := s.coll.DocumentRefs(s.ctx).GetAll()
	s.must("document refs", err)
	var got []string
	for _, ref := range refs {
		got = append(got, ref.ID)
	}
	if diff := cmp.Diff([]string{"a", "ghost"}, got); diff != "" {
		t.Errorf("documents, including missing ones: %s", diff)
	}
	for what, it := range map[string]*firestore.CollectionIterator{
		"c d": s.client.Collections(s.ctx), "sub": s.coll.Doc("ghost").Collections(s.ctx), "": s.coll.Doc("a").Collections(s.ctx),
	} {
		joined := ""
		for {
			coll, err := it.Next()
			if errors.Is(err, iterator.Done) {
				break
			}
			s.must("collections", err)
			if joined != "" {
				joined += " "
			}
			joined += coll.ID
		}
		if joined != what {
			t.Errorf("collections %q, want %q", joined, what)
		}
	}
}
