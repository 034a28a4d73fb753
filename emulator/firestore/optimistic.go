package firestoreemu

import (
	"context"
	"slices"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/locks"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/query"
)

// findings are what an optimistic transaction has read, to be compared with the
// newest state when it commits (E-TX-16). Documents are immutable, so the same
// pointer is the same version.
type findings struct {
	documents map[string]*pb.Document // nil: was missing
	queries   []finding
}

type finding struct {
	plan *query.Plan
	docs []*pb.Document
}

// noteDocument remembers a document that was read.
func (v *view) noteDocument(name string, doc *pb.Document) {
	v.noteVersion(name)
	if v.tx == nil || v.tx.mode != optimistic {
		return
	}
	v.tx.mu.Lock()
	defer v.tx.mu.Unlock()
	if v.tx.found.documents == nil {
		v.tx.found.documents = map[string]*pb.Document{}
	}
	v.tx.found.documents[name] = doc
}

// noteQuery remembers a query's results.
func (v *view) noteQuery(plan *query.Plan, docs []*pb.Document) {
	for _, doc := range docs {
		v.noteVersion(doc.GetName())
	}
	if v.tx == nil || v.tx.mode != optimistic {
		return
	}
	v.tx.mu.Lock()
	defer v.tx.mu.Unlock()
	v.tx.found.queries = append(v.tx.found.queries, finding{plan, slices.Clone(docs)})
}

// confirm locks for owner everything an optimistic transaction has read, and
// fails if any of it has changed since. While the locks last it stays true.
func (d *database) confirm(ctx context.Context, owner *locks.Owner, tx *transaction) error {
	tx.mu.Lock()
	found := tx.found
	tx.mu.Unlock()
	names := make([]string, 0, len(found.documents))
	for name := range found.documents {
		names = append(names, name)
	}
	if err := d.locks.Share(ctx, owner, names); err != nil {
		return lockStatus(err)
	}
	for _, q := range found.queries {
		if _, err := d.locks.ShareRange(ctx, owner, &scan{plan: q.plan}); err != nil {
			return lockStatus(err)
		}
	}
	now := d.store.Now()
	defer now.Close()
	for name, doc := range found.documents {
		if now.Get(name) != doc {
			return errContention
		}
	}
	for _, q := range found.queries {
		if !slices.Equal(evaluate(q.plan, now, true), q.docs) {
			return errContention
		}
	}
	return nil
}

// commitOptimistic commits if nothing the transaction has read has changed.
func (d *database) commitOptimistic(ctx context.Context, tx *transaction, writes []write, arrival time.Time) (*pb.CommitResponse, error) {
	owner := locks.NewOwner(0)
	defer d.locks.End(owner)
	if err := d.confirm(ctx, owner, tx); err != nil {
		return nil, err
	}
	return d.commit(ctx, tx, owner, writes, arrival)
}
