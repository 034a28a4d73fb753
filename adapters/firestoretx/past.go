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

// Now is the time by the store's clock, which simulations replace.
func (s *Store) Now() time.Time { return s.now() }

// PastAt reads the fleet as it was at a time, or at the beginning of that minute if it is over an
// hour ago. The error wraps ErrNotKept if Firestore no longer knows.
//
// Cost: 9 RPCs; a read per document returned.
func (s *Store) PastAt(ctx context.Context, at time.Time) (Past, error) {
	p := Past{ReadTime: at.Truncate(time.Microsecond)}
	if s.now().Sub(at) >= everyMoment {
		p.ReadTime = at.Truncate(time.Minute)
	}
	recent := p.ReadTime.Add(-pastRecent)
	err := s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		p = Past{ReadTime: p.ReadTime}
		return errors.Join(
			readAll(tx, s.client.Collection(Drones).Query, decodeKnownDrone, &p.Drones, &p.Malformed),
			readAll(tx, s.openOrders(), orderCodec.decode, &p.Orders, &p.Malformed),
			readAll(tx, s.where(Missions, "status", string(domain.MissionActive)), missionCodec.decode, &p.Missions, &p.Malformed),
			readAll(tx, s.client.Collection(Depots).Query, decodeDepot, &p.Depots, &p.Malformed),
			readAll(tx, s.client.Collection(Warehouses).Query, warehouseCodec.decode, &p.Warehouses, &p.Malformed),
			readAll(tx, s.client.Collection(Cycles).Where("startedAt", ">", recent).OrderBy("startedAt", firestore.Desc).Limit(pastCycles), cycleCodec.decode, &p.Cycles, &p.Malformed),
			readAll(tx, s.client.Collection(Decisions).Where("appliedAt", ">", recent), ledgerCodec.decode, &p.Decisions, &p.Malformed),
		)
	}, firestore.ReadOnly, firestore.TransactionReadTime(p.ReadTime))
	if st, ok := statusOf(err); ok && (st.Code() == codes.FailedPrecondition || st.Code() == codes.InvalidArgument) {
		err = fmt.Errorf("%w (%s)", ErrNotKept, st.Message())
	}
	return p, wrap(err, "state at %s", p.ReadTime.UTC().Format(time.RFC3339))
}

// readAll appends the documents of a query to list, and those that cannot be decoded to
// malformed.
func readAll[T any](tx *firestore.Transaction, q firestore.Query, decode func(*firestore.DocumentSnapshot) (T, error), list *[]T, malformed *[]error) error {
	some, bad, err := decodeAll(tx.Documents(q), decode)
	*list, *malformed = append(*list, some...), append(*malformed, bad...)
	return err
}
