package firestoreemu

import (
	"context"
	"slices"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/locks"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/query"
)

// readSet is what an optimistic transaction has read, to be compared with the
// newest state when it commits (E-TX-16). Documents are immutable, so the same
// pointer is the same version.
type readSet struct {
	documents map[string]*pb.Document // nil: was missing
	queries   []queryResult
}

type queryResult struct {
	plan *query.Plan
	docs []*pb.Document
}

// noteDocument records a document that was read.
func (v *view) noteDocument(name string, doc *pb.Document) {
	v.noteVersion(name)
	if v.tx == nil || v.tx.mode != optimistic {
		return
	}
	v.tx.mu.Lock()
	defer v.tx.mu.Unlock()
	if v.tx.read.documents == nil {
		v.tx.read.documents = map[string]*pb.Document{}
	}
	v.tx.read.documents[name] = doc
}

// noteQuery records the results of a query.
func (v *view) noteQuery(plan *query.Plan, docs []*pb.Document) {
	for _, doc := range docs {
		v.noteVersion(doc.GetName())
	}
	if v.tx == nil || v.tx.mode != optimistic {
		return
	}
	v.tx.mu.Lock()
	defer v.tx.mu.Unlock()
	v.tx.read.queries = append(v.tx.read.queries, queryResult{plan, slices.Clone(docs)})
}

// confirm locks everything that an optimistic transaction has read, and fails if
// any of it has changed since. It stays unchanged while owner holds the locks.
func (d *database) confirm(ctx context.Context, owner *locks.Owner, tx *transaction) error {
	tx.mu.Lock()
	read := tx.read
	tx.mu.Unlock()
	names := make([]string, 0, len(read.documents))
	for name := range read.documents {
		names = append(names, name)
	}
	if err := d.locks.Share(ctx, owner, names); err != nil {
		return lockStatus(err)
	}
	for _, q := range read.queries {
		if _, err := d.locks.ShareRange(ctx, owner, &scan{plan: q.plan}); err != nil {
			return lockStatus(err)
		}
	}
	now := d.store.Now()
	defer now.Close()
	for name, doc := range read.documents {
		if now.Get(name) != doc {
			return errContention
		}
	}
	for _, q := range read.queries {
		if !slices.Equal(evaluate(q.plan, now, true), q.docs) {
			return errContention
		}
	}
	return nil
}

// commitOptimistic commits if nothing that the transaction read has changed.
func (d *database) commitOptimistic(ctx context.Context, tx *transaction, writes []write, arrival time.Time) (*pb.CommitResponse, error) {
	owner := locks.NewOwner(0)
	defer d.locks.End(owner)
	if err := d.confirm(ctx, owner, tx); err != nil {
		return nil, err
	}
	return d.commit(ctx, tx, owner, writes, arrival)
}
