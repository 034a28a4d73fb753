package firestoretx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"

	"github.com/dronefleet/dronefleet/domain"
)

// Past is the fleet as it was at one moment: all drones and places, the open orders, the
// active missions, and the cycles and decisions of the ten minutes before.
type Past struct {
	ReadTime   time.Time
	Drones     []domain.Drone
	Orders     []domain.Order
	Missions   []domain.Mission
	Depots     []domain.Depot
	Warehouses []domain.Warehouse
	Cycles     []domain.Cycle // the latest ones, at most pastCycles
	Decisions  []domain.LedgerEntry
	Malformed  []error // documents left out
}

// ErrNotKept says that Firestore cannot read at a time: it is in the future, or its
// versions are deleted.
var ErrNotKept = errors.New("no state is kept for this time; Firestore keeps an hour, and seven days with point-in-time recovery")

// everyMoment is how long Firestore keeps every version. Older versions exist for whole
// minutes, with point-in-time recovery.
const everyMoment = time.Hour

const (
	// pastRecent is how far cycles and decisions go back from the moment.
	pastRecent = 10 * time.Minute
	// pastCycles bounds the cycles of the past: each may list thousands of orders.
	pastCycles = 120
)

// recentCycles are the cycles and decisions that a reading of the past includes.
type recentCycles struct {
	since time.Time
	most  int
}

// Now is the time by the store's clock, which simulations replace.
func (s *Store) Now() time.Time { return s.now() }

// PastAt reads the fleet as it was at a time, or at the beginning of that minute if it is over an
// hour ago. The error wraps ErrNotKept if Firestore no longer knows.
//
// Cost: 9 RPCs; a read per document returned.
func (s *Store) PastAt(ctx context.Context, at time.Time) (Past, error) {
	at = s.keptAt(at)
	return s.past(ctx, at, &recentCycles{at.Add(-pastRecent), pastCycles})
}

// PastSince is PastAt with the cycles and decisions since ten minutes before another time.
//
// Cost: that of PastAt.
func (s *Store) PastSince(ctx context.Context, since, at time.Time) (Past, error) {
	return s.past(ctx, s.keptAt(at), &recentCycles{since.Add(-pastRecent), 2 * pastCycles})
}

// MovedAt is PastAt without what seldom changes: drones, open orders and active missions alone.
//
// Cost: 5 RPCs; a read per document returned.
func (s *Store) MovedAt(ctx context.Context, at time.Time) (Past, error) {
	return s.past(ctx, s.keptAt(at), nil)
}

// keptAt is the time at or before another one that Firestore may still know.
func (s *Store) keptAt(at time.Time) time.Time {
	if s.now().Sub(at) >= everyMoment {
		return at.Truncate(time.Minute)
	}
	return at.Truncate(time.Microsecond)
}

// past reads the fleet as it was: without recent only what moves.
func (s *Store) past(ctx context.Context, at time.Time, recent *recentCycles) (p Past, err error) {
	err = s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		p = Past{ReadTime: at}
		err := errors.Join(
			readAll(tx, s.client.Collection(Drones).Query, decodeKnownDrone, &p.Drones, &p.Malformed),
			readAll(tx, s.openOrders(), orderCodec.decode, &p.Orders, &p.Malformed),
			readAll(tx, s.where(Missions, "status", string(domain.MissionActive)), missionCodec.decode, &p.Missions, &p.Malformed),
		)
		if recent == nil || err != nil {
			return err
		}
		return errors.Join(
			readAll(tx, s.client.Collection(Depots).Query, decodeDepot, &p.Depots, &p.Malformed),
			readAll(tx, s.client.Collection(Warehouses).Query, warehouseCodec.decode, &p.Warehouses, &p.Malformed),
			readAll(tx, s.client.Collection(Cycles).Where("startedAt", ">", recent.since).OrderBy("startedAt", firestore.Desc).Limit(recent.most), cycleCodec.decode, &p.Cycles, &p.Malformed),
			readAll(tx, s.client.Collection(Decisions).Where("appliedAt", ">", recent.since), ledgerCodec.decode, &p.Decisions, &p.Malformed),
		)
	}, firestore.ReadOnly, firestore.TransactionReadTime(at))
	if st, ok := statusOf(err); ok && (st.Code() == codes.FailedPrecondition || st.Code() == codes.InvalidArgument) {
		err = fmt.Errorf("%w (%s)", ErrNotKept, st.Message())
	}
	return p, wrap(err, "state at %s", at.UTC().Format(time.RFC3339))
}

// readAll appends the documents of a query to list, and those that cannot be decoded to
// malformed.
func readAll[T any](tx *firestore.Transaction, q firestore.Query, decode func(*firestore.DocumentSnapshot) (T, error), list *[]T, malformed *[]error) error {
	some, bad, err := decodeAll(tx.Documents(q), decode)
	*list, *malformed = append(*list, some...), append(*malformed, bad...)
	return err
}
