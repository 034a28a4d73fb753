package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/firestore"
	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
)

// cities fills the collection.
func cities(s suite) {
	for id, data := range map[string]fields{
		"bern":     {"country": "ch", "size": 134, "rivers": []string{"aare"}},
		"basel":    {"country": "ch", "size": 173, "rivers": []string{"rhein", "birs"}},
		"berlin":   {"country": "de", "size": 3700, "rivers": []string{"spree", "havel"}},
		"koeln":    {"country": "de", "size": 1080, "rivers": []string{"rhein"}},
		"wien":     {"country": "at", "size": 1900, "rivers": []string{"donau"}},
		"atlantis": {"size": nil},
	} {
		s.set(id, data)
	}
}

func TestClient_Where(t *testing.T) {
	s := newSuite(t)
	cities(s)
	q := s.coll.Query
	s.wantIDs("==", q.Where("country", "==", "ch"), "basel", "bern")
	s.wantIDs("<", q.Where("size", "<", 1080), "bern", "basel")
	s.wantIDs(">=", q.Where("size", ">=", 1080), "koeln", "wien", "berlin")
	s.wantIDs("!=", q.Where("country", "!=", "de"), "wien", "basel", "bern")
	s.wantIDs("!= nil", q.Where("size", "!=", nil), "bern", "basel", "koeln", "wien", "berlin")
	s.wantIDs("== nil", q.Where("size", "==", nil), "atlantis")
	s.wantIDs("in", q.Where("country", "in", []string{"at", "de"}), "berlin", "koeln", "wien")
	s.wantIDs("not-in", q.Where("country", "not-in", []string{"at", "de"}), "basel", "bern")
	s.wantIDs("array-contains", q.Where("rivers", "array-contains", "rhein"), "basel", "koeln")
	s.wantIDs("array-contains-any", q.Where("rivers", "array-contains-any", []string{"aare", "donau"}), "bern", "wien")
	s.wantIDs("and", q.Where("country", "==", "de").Where("size", ">", 2000), "berlin")
	s.wantIDs("or", q.WhereEntity(firestore.OrFilter{Filters: []firestore.EntityFilter{
		firestore.PropertyFilter{Path: "country", Operator: "==", Value: "at"},
		firestore.AndFilter{Filters: []firestore.EntityFilter{
			firestore.PropertyFilter{Path: "country", Operator: "==", Value: "ch"},
			firestore.PropertyFilter{Path: "size", Operator: "==", Value: 134},
		}},
	}}), "bern", "wien")
	s.wantIDs("name", q.Where(firestore.DocumentID, ">", s.coll.Doc("berlin")), "bern", "koeln", "wien")
	s.wantIDs("names", q.Where(firestore.DocumentID, "in", []*firestore.DocumentRef{s.coll.Doc("wien"), s.coll.Doc("bern"), s.coll.Doc("nowhere")}), "bern", "wien")

	_, err := q.Where("country", "in", []string{}).Documents(s.ctx).GetAll()
	s.wantCode("in nothing", err, codes.InvalidArgument)
}

func TestClient_OrderAndCursors(t *testing.T) {
	s := newSuite(t)
	cities(s)
	// LimitToLast reverses the orders that a query shares with the query it was made
	// from, so every use needs a new query.
	bySize := func() firestore.Query { return s.coll.OrderBy("size", firestore.Asc).Where("size", ">", 0) }
	s.wantIDs("ascending", bySize(), "bern", "basel", "koeln", "wien", "berlin")
	s.wantIDs("descending", s.coll.OrderBy("size", firestore.Desc), "berlin", "wien", "koeln", "basel", "bern", "atlantis")
	s.wantIDs("two keys", s.coll.OrderBy("country", firestore.Desc).OrderBy("size", firestore.Asc), "koeln", "berlin", "bern", "basel", "wien")
	s.wantIDs("limit and offset", bySize().Offset(1).Limit(2), "basel", "koeln")
	s.wantIDs("limit to last", bySize().LimitToLast(2), "wien", "berlin")
	s.wantIDs("start at", bySize().StartAt(1080), "koeln", "wien", "berlin")
	s.wantIDs("start after", bySize().StartAfter(1080), "wien", "berlin")
	s.wantIDs("end at", bySize().EndAt(173), "bern", "basel")
	s.wantIDs("end before", bySize().EndBefore(173), "bern")

	pivot := s.get(s.coll.Doc("koeln"))
	s.wantIDs("start at a document", bySize().StartAt(pivot), "koeln", "wien", "berlin")
	s.wantIDs("start after a document", s.coll.OrderBy("country", firestore.Asc).StartAfter(s.get(s.coll.Doc("basel"))), "bern", "berlin", "koeln")
	s.wantIDs("end before a document", bySize().EndBefore(pivot), "bern", "basel")
	s.wantIDs("a document in name order", s.coll.Query.StartAfter(pivot), "wien")
	s.wantIDs("by id", s.coll.OrderBy(firestore.DocumentID, firestore.Asc).StartAt("bern").EndAt("koeln"), "bern", "koeln")
}

func TestClient_Iterator(t *testing.T) {
	s := newSuite(t)
	writer := s.client.BulkWriter(s.ctx)
	for i := range 250 {
		_, err := writer.Create(s.coll.Doc(fmt.Sprintf("%03d", i)), fields{"n": i})
		s.must("queue", err)
	}
	writer.End()

	it := s.coll.OrderBy("n", firestore.Asc).Documents(s.ctx)
	defer it.Stop()
	for i := range 250 {
		doc, err := it.Next()
		if err != nil || doc.Data()["n"] != int64(i) {
			t.Fatalf("document %d: %v, %v", i, doc, err)
		}
	}
	if _, err := it.Next(); !errors.Is(err, iterator.Done) {
		t.Errorf("after the last: %v", err)
	}

	stopped := s.coll.Documents(s.ctx)
	_, err := stopped.Next()
	s.must("first of a stopped iterator", err)
	stopped.Stop()
	if _, err := stopped.Next(); !errors.Is(err, iterator.Done) {
		t.Errorf("after Stop: %v", err)
	}
	if docs, err := s.client.Collection("empty").Documents(s.ctx).GetAll(); err != nil || len(docs) != 0 {
		t.Errorf("an empty collection: %v, %v", docs, err)
	}
}

func TestClient_SelectAndSerialize(t *testing.T) {
	s := newSuite(t)
	cities(s)
	docs, err := s.coll.Select("country", "nothing").Where("size", "==", 134).Documents(s.ctx).GetAll()
	s.must("select", err)
	if len(docs) != 1 || diffData(fields{"country": "ch"}, docs[0].Data()) != "" {
		t.Errorf("selected %v", docs[0].Data())
	}
	docs, err = s.coll.Select().Limit(1).Documents(s.ctx).GetAll()
	s.must("select nothing", err)
	if len(docs) != 1 || len(docs[0].Data()) != 0 || docs[0].UpdateTime.IsZero() {
		t.Errorf("selected nothing: %v", docs[0])
	}
	bytes, err := s.coll.Where("country", "==", "ch").OrderBy("size", firestore.Desc).Serialize()
	s.must("serialize", err)
	q, err := s.coll.Deserialize(bytes)
	s.must("deserialize", err)
	s.wantIDs("deserialized", q, "basel", "bern")
}

func TestClient_CollectionGroup(t *testing.T) {
	s := newSuite(t)
	for _, path := range []string{"c/a/log/1", "c/b/log/2", "log/3", "c/a/logs/4"} {
		_, err := s.client.Doc(path).Set(s.ctx, fields{"n": path[len(path)-1:]})
		s.must(path, err)
	}
	group := s.client.CollectionGroup("log")
	s.wantIDs("group", group.Query, "1", "2", "3")
	s.wantIDs("filtered group", group.Where("n", ">", "1"), "2", "3")
	s.wantIDs("group from a document", group.OrderBy(firestore.DocumentID, firestore.Asc).StartAfter(s.client.Doc("c/b/log/2")), "3")

	queries, err := group.GetPartitionedQueries(s.ctx, 3)
	if err != nil && strings.Contains(err.Error(), codes.Unimplemented.String()) {
		t.Skip("this server has no PartitionQuery: ", err)
	}
	s.must("partitions", err)
	var parts []string
	for _, q := range queries {
		parts = append(parts, s.ids(q)...)
	}
	if fmt.Sprint(parts) != "[1 2 3]" {
		t.Errorf("partitions hold %v", parts)
	}
}

// E-QY-07
func TestClient_Aggregation(t *testing.T) {
	s := newSuite(t)
	cities(s)
	q := s.coll.Where("country", "==", "de")
	result, err := q.NewAggregationQuery().WithCount("n").WithSum("size", "sum").WithAvg("size", "avg").Get(s.ctx)
	s.must("aggregate", err)
	n, sum, avg := result["n"].(*pb.Value), result["sum"].(*pb.Value), result["avg"].(*pb.Value)
	if n.GetIntegerValue() != 2 || sum.GetIntegerValue() != 4780 || avg.GetDoubleValue() != 2390 {
		t.Errorf("count %v, sum %v, average %v", n, sum, avg)
	}
	none := s.coll.Where("country", "==", "xx")
	result, err = none.NewAggregationQuery().WithSum("size", "sum").WithAvg("size", "avg").Get(s.ctx)
	s.must("aggregate nothing", err)
	if _, isNull := result["avg"].(*pb.Value).GetValueType().(*pb.Value_NullValue); !isNull || result["sum"].(*pb.Value).GetIntegerValue() != 0 {
		t.Errorf("over nothing: %v", result)
	}
	s.must("in a transaction", s.client.RunTransaction(s.ctx, func(_ context.Context, tx *firestore.Transaction) error {
		inside, err := q.NewAggregationQuery().Transaction(tx).WithCount("n").Get(s.ctx)
		if err == nil && inside["n"].(*pb.Value).GetIntegerValue() != 2 {
			t.Errorf("count in a transaction: %v", inside)
		}
		return err
	}))
}
