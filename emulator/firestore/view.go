package firestoreemu

import (
	"context"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/locks"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/query"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
)

// view is what one read RPC sees. Plain reads, reads at a read_time and read-only
// transactions have a snapshot from the start and never lock (E-ST-04). A
// read-write transaction first locks what it is about to read and then takes the
// newest snapshot.
type view struct {
	db       *database
	tx       *transaction // nil outside transactions
	created  []byte       // id of the transaction that this RPC began, to be sent first
	snapshot *store.Snapshot
	shared   bool             // the snapshot belongs to the transaction
	began    int64            // µs; 0 if an older state was requested
	saw      map[string]int64 // versions by document, if a history is recorded
}

// selector holds the consistency selector of any read request.
type selector struct {
	transaction    []byte
	newTransaction *pb.TransactionOptions
	readTime       *timestamppb.Timestamp
}

// consistency is what all generated read requests have in common.
type consistency interface {
	GetTransaction() []byte
	GetReadTime() *timestamppb.Timestamp
}

// selectorOf returns the consistency selector of a request.
func selectorOf(req consistency) selector {
	s := selector{transaction: req.GetTransaction(), readTime: req.GetReadTime()}
	if r, ok := req.(interface {
		GetNewTransaction() *pb.TransactionOptions
	}); ok {
		s.newTransaction = r.GetNewTransaction()
	}
	return s
}

// open returns the view that a selector requests. The caller must close it.
func (d *database) open(s selector) (*view, error) {
	v := &view{db: d, began: d.server.opts.Clock.Now().UnixMicro()}
	var err error
	switch {
	case s.newTransaction != nil:
		begun, err := d.transactions.beginWith(d.store, s.newTransaction)
		if err != nil {
			return nil, err
		}
		v.created = begun.id
		v.tx, err = d.transactions.find(begun.id)
		if err != nil {
			return nil, err
		}
	case len(s.transaction) > 0:
		if v.tx, err = d.transactions.find(s.transaction); err != nil {
			return nil, err
		}
	case s.readTime != nil:
		v.began = 0
		v.snapshot, err = snapshotAt(d.store, s.readTime)
		return v, err
	default:
		v.snapshot = d.store.Now()
		return v, nil
	}
	if v.tx.mode != readWrite {
		v.shared = true
		if v.snapshot, err = v.tx.fixSnapshot(d.store); err != nil {
			d.transactions.release(v.tx)
			return nil, err
		}
	}
	return v, nil
}

// fixSnapshot returns the snapshot of a read-only or optimistic transaction,
// fixed at its first read (E-TX-03, E-TX-16). It fails if the transaction has ended
// meanwhile, because nothing would close the snapshot.
func (tx *transaction) fixSnapshot(db *store.DB) (*store.Snapshot, error) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	switch {
	case tx.closed:
		return nil, errExpired
	case tx.snapshot == nil:
		tx.snapshot = db.Now()
	}
	return tx.snapshot, nil
}

// locking reports whether reads of this view take locks.
func (v *view) locking() bool { return v.tx != nil && v.tx.mode == readWrite }

// readNames prepares reading the named documents.
func (v *view) readNames(ctx context.Context, names []string) error {
	if !v.locking() {
		return nil
	}
	if v.db.server.opts.unlockedReads {
		v.snapshot = v.db.store.Now()
		return nil
	}
	if err := v.db.locks.Share(ctx, v.tx.owner, names); err != nil {
		return lockStatus(err)
	}
	v.snapshot = v.db.store.Now()
	return nil
}

// readScan prepares running a query. Until the transaction ends no other commit can
// change what the query sees, so the results need no locks of their own.
func (v *view) readScan(ctx context.Context, plan *query.Plan) (*locks.HeldRange, error) {
	if !v.locking() {
		return nil, nil
	}
	held, err := v.db.locks.ShareRange(ctx, v.tx.owner, &scan{plan: plan})
	if err != nil {
		return nil, lockStatus(err)
	}
	v.snapshot = v.db.store.Now()
	return held, nil
}

// verify returns an error if the transaction lost its locks meanwhile. What was
// read must then not be returned (E-TX-11).
func (v *view) verify() error {
	if !v.locking() {
		return nil
	}
	return lockStatus(v.db.locks.Err(v.tx.owner))
}

func (v *view) readTime() *timestamppb.Timestamp { return store.Timestamp(v.snapshot.Time) }

func (v *view) close() {
	v.keepHistory()
	if v.snapshot != nil && !v.shared {
		v.snapshot.Close()
	}
	if v.tx != nil {
		v.db.transactions.release(v.tx)
	}
}

// scan is the range lock of a query (E-TX-05).
type scan struct {
	plan *query.Plan
	// last is the last result of a query that reached its limit. Documents that sort
	// after it are not in the range.
	last *pb.Document
}

// Touches reports whether the document was or becomes part of the range.
func (s *scan) Touches(c locks.Change) bool {
	return s.covers(c.Before) || s.covers(c.After)
}

func (s *scan) covers(doc *pb.Document) bool {
	return doc != nil && s.plan.Matches(doc) && (s.last == nil || s.plan.Compare(doc, s.last) <= 0)
}
