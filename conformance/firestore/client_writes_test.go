//lint:file-ignore SA1019 WriteBatch is deprecated, but BulkWriter, its successor, is not atomic

package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
)

// atomicBatch is how the client writes several documents in one commit without a
// transaction.
func atomicBatch(c *firestore.Client) *firestore.WriteBatch {
	return c.Batch()
}

func TestClient_WriteBatch(t *testing.T) {
	s := newSuite(t)
	s.set("old", fields{"n": 1})
	s.set("gone", fields{})
	results, err := atomicBatch(s.client).
		Create(s.coll.Doc("new"), fields{"n": 1}).
		Set(s.coll.Doc("set"), fields{"n": 2}).
		Update(s.coll.Doc("old"), []firestore.Update{{Path: "n", Value: firestore.Increment(1)}}).
		Delete(s.coll.Doc("gone")).
		Commit(s.ctx)
	s.must("batch", err)
	if len(results) != 4 || !results[0].UpdateTime.Equal(results[1].UpdateTime) || !results[3].UpdateTime.IsZero() {
		t.Errorf("results %+v", results)
	}
	s.wantIDs("after the batch", s.coll.Query, "new", "old", "set")
	s.wantData("updated", s.coll.Doc("old"), fields{"n": int64(2)})

	// E-WR-01: all or nothing
	_, err = atomicBatch(s.client).
		Set(s.coll.Doc("set"), fields{"n": 3}).
		Create(s.coll.Doc("new"), fields{}).
		Commit(s.ctx)
	s.wantCode("failing batch", err, codes.AlreadyExists)
	s.wantData("untouched", s.coll.Doc("set"), fields{"n": int64(2)})
}

// E-WR-08
func TestClient_BulkWriter(t *testing.T) {
	s := newSuite(t)
	s.set("taken", fields{"n": 1})
	writer := s.client.BulkWriter(s.ctx)
	created, err := writer.Create(s.coll.Doc("new"), fields{"n": 1})
	s.must("queue create", err)
	refused, err := writer.Create(s.coll.Doc("taken"), fields{"n": 2})
	s.must("queue create of a taken id", err)
	deleted, err := writer.Delete(s.coll.Doc("nothing"))
	s.must("queue delete", err)
	if _, err := writer.Set(s.coll.Doc("new"), fields{}); err == nil {
		t.Error("one document twice in a bulk writer was accepted")
	}
	writer.End()
	if result, err := created.Results(); err != nil || result.UpdateTime.IsZero() {
		t.Errorf("created: %v, %v", result, err)
	}
	_, err = refused.Results()
	s.wantCode("create of a taken id", err, codes.AlreadyExists)
	_, err = deleted.Results()
	s.must("delete", err)
	s.wantData("taken stays", s.coll.Doc("taken"), fields{"n": int64(1)})
}

func TestClient_Transaction(t *testing.T) {
	s := newSuite(t)
	a, b := s.set("a", fields{"n": 1}), s.set("b", fields{"n": 2})

	s.must("transfer", s.client.RunTransaction(s.ctx, func(_ context.Context, tx *firestore.Transaction) error {
		docs, err := tx.GetAll([]*firestore.DocumentRef{a, b})
		if err != nil {
			return err
		}
		found, err := tx.Documents(s.coll.Where("n", ">", 0)).GetAll()
		if err != nil {
			return err
		}
		if len(docs) != 2 || len(found) != 2 {
			t.Errorf("read %d and found %d documents, want 2", len(docs), len(found))
		}
		if err := tx.Update(a, []firestore.Update{{Path: "n", Value: firestore.Increment(-1)}}); err != nil {
			return err
		}
		if err := tx.Set(b, fields{"n": 3}); err != nil {
			return err
		}
		if err := tx.Create(s.coll.Doc("c"), fields{"n": 0}); err != nil {
			return err
		}
		return tx.Delete(s.coll.Doc("nothing"))
	}))
	s.wantData("a", a, fields{"n": int64(0)})
	s.wantData("b", b, fields{"n": int64(3)})

	errOwn := errors.New("own reason")
	err := s.client.RunTransaction(s.ctx, func(_ context.Context, tx *firestore.Transaction) error {
		if err := tx.Set(a, fields{"n": 99}); err != nil {
			return err
		}
		return errOwn
	})
	if !errors.Is(err, errOwn) {
		t.Errorf("a failing function: %v", err)
	}
	s.wantData("rolled back", a, fields{"n": int64(0)})

	err = s.client.RunTransaction(s.ctx, func(_ context.Context, tx *firestore.Transaction) error {
		return tx.Create(a, fields{})
	})
	s.wantCode("create of a taken id", err, codes.AlreadyExists)

	err = s.client.RunTransaction(s.ctx, func(_ context.Context, tx *firestore.Transaction) error {
		if err := tx.Set(a, fields{}); err != nil {
			return err
		}
		_, err := tx.Get(b)
		return err
	})
	if err == nil {
		t.Error("a read after a write was accepted")
	}
}

// E-TX-03
func TestClient_ReadOnlyTransaction(t *testing.T) {
	s := newSuite(t)
	ref := s.set("a", fields{"n": 1})
	past := s.get(ref)
	s.set("a", fields{"n": 2})
	s.must("read only", s.client.RunTransaction(s.ctx, func(_ context.Context, tx *firestore.Transaction) error {
		doc, err := tx.Get(ref)
		if err == nil && doc.Data()["n"] != int64(2) {
			t.Errorf("read %v", doc.Data())
		}
		return err
	}, firestore.ReadOnly))
	s.must("in the past", s.client.RunTransaction(s.ctx, func(_ context.Context, tx *firestore.Transaction) error {
		doc, err := tx.Get(ref)
		if err == nil && doc.Data()["n"] != int64(1) {
			t.Errorf("read %v of the past", doc.Data())
		}
		return err
	}, firestore.ReadOnly, firestore.TransactionReadTime(past.UpdateTime)))
}

// No increment by concurrent transactions is lost.
func TestClient_TransactionsContend(t *testing.T) {
	s := newSuite(t)
	ref := s.set("counter", fields{"n": 0})
	const workers, rounds = 4, 3
	var g errgroup.Group
	for range workers {
		g.Go(func() error {
			for range rounds {
				err := s.client.RunTransaction(s.ctx, func(_ context.Context, tx *firestore.Transaction) error {
					doc, err := tx.Get(ref)
					if err != nil {
						return err
					}
					return tx.Set(ref, fields{"n": doc.Data()["n"].(int64) + 1})
				}, firestore.MaxAttempts(20))
				if err != nil {
					return fmt.Errorf("increment: %w", err)
				}
			}
			return nil
		})
	}
	s.must("workers", g.Wait())
	s.wantData("counter", ref, fields{"n": int64(workers * rounds)})
}
