package firestoretx

import (
	"context"
	"sync"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/domain"
)

// HistoryCursor is the time up to which everything is in the history, zero if nothing is, and the
// server's time.
//
// Cost: 1 RPC, 1 read.
func (s *Store) HistoryCursor(ctx context.Context) (through, now time.Time, err error) {
	snaps, err := s.client.GetAll(ctx, []*firestore.DocumentRef{s.doc(Control, controlHistory)})
	if err != nil {
		return through, now, wrap(err, "cursor of the history")
	}
	if snaps[0].Exists() {
		through, _ = snaps[0].Data()[seenAt].(time.Time)
	}
	return through, snaps[0].ReadTime, nil
}

// SaveHistoryCursor stores the cursor.
//
// Cost: 1 RPC, 1 write.
func (s *Store) SaveHistoryCursor(ctx context.Context, through time.Time) error {
	_, err := s.doc(Control, controlHistory).Set(ctx, map[string]any{seenAt: through}, firestore.MergeAll)
	return wrap(err, "cursor of the history")
}

// HistorySink receives what happened in a period, a page at a time and each kind in no particular order. An
// error ends the reading. Calls do not overlap.
type HistorySink struct {
	Events    func([]CommittedEvent) error
	Decisions func([]domain.LedgerEntry) error
	Refusals  func([]domain.Refusal) error
	Malformed func(error) // a document that cannot be decoded and is left out
}

// historyPage bounds the documents of a page.
const historyPage = 500

// ReadHistory reads the events, decisions and refusals from one time until another.
//
// Cost: 3 RPCs, and 1 for each 500 documents; a read for each document, at least one for each query.
func (s *Store) ReadHistory(ctx context.Context, from, until time.Time, to HistorySink) error {
	reading, ctx := errgroup.WithContext(ctx)
	var one sync.Mutex
	reading.Go(func() error {
		q := during(s.ofShards(s.client.Collection(Events).Query), "time", from, until)
		return pages(ctx, &one, q, decodeCommitted, to.Events, to.Malformed)
	})
	reading.Go(func() error {
		q := during(s.client.Collection(Decisions).Query, "appliedAt", from, until)
		return pages(ctx, &one, q, ledgerCodec.decode, to.Decisions, to.Malformed)
	})
	reading.Go(func() error {
		q := during(s.client.Collection(Refusals).Query, "refusedAt", from, until)
		return pages(ctx, &one, q, refusalCodec.decode, to.Refusals, to.Malformed)
	})
	return wrap(reading.Wait(), "history from %s to %s", from.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339))
}

func during(q firestore.Query, when string, from, until time.Time) firestore.Query {
	return q.Where(when, ">=", from).Where(when, "<", until).OrderBy(when, firestore.Asc)
}

// pages calls page with the documents of a query, some at a time.
func pages[T any](ctx context.Context, one *sync.Mutex, q firestore.Query, decode func(*firestore.DocumentSnapshot) (T, error), page func([]T) error, malformed func(error)) error {
	for q = q.Limit(historyPage); ; {
		docs, err := q.Documents(ctx).GetAll()
		if err != nil || len(docs) == 0 {
			return err
		}
		if err := onePage(one, docs, decode, page, malformed); err != nil || len(docs) < historyPage {
			return err
		}
		q = q.StartAfter(docs[len(docs)-1])
	}
}

func onePage[T any](one *sync.Mutex, docs []*firestore.DocumentSnapshot, decode func(*firestore.DocumentSnapshot) (T, error), page func([]T) error, malformed func(error)) error {
	one.Lock()
	defer one.Unlock()
	var items []T
	for _, doc := range docs {
		if v, err := decode(doc); err != nil {
			malformed(err)
		} else {
			items = append(items, v)
		}
	}
	return page(items)
}
