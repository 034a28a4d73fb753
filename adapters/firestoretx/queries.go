package firestoretx

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"cloud.google.com/go/firestore"
	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
)

// Page bounds a listing: at most Limit entities with ids after After.
type Page struct {
	Limit int // 0 means all
	After string
}

func (p Page) of(q firestore.Query) firestore.Query {
	q = q.OrderBy(firestore.DocumentID, firestore.Asc)
	if p.After != "" {
		q = q.StartAfter(p.After)
	}
	if p.Limit > 0 {
		q = q.Limit(p.Limit)
	}
	return q
}

// where narrows a collection to documents whose field equals value; an empty value
// matches all.
func (s *Store) where(collection, field, value string) firestore.Query {
	q := s.client.Collection(collection).Query
	if value != "" {
		q = q.Where(field, "==", value)
	}
	return q
}

// Drones lists drones by id; status may be empty.
func (s *Store) Drones(ctx context.Context, status domain.DroneStatus, page Page) ([]domain.Drone, error) {
	list, err := collect(page.of(s.where(Drones, "status", string(status))).Documents(ctx), decodeKnownDrone)
	return list, wrap(err, "drones")
}

// Orders lists orders by id; status may be empty.
func (s *Store) Orders(ctx context.Context, status domain.OrderStatus, page Page) ([]domain.Order, error) {
	list, err := collect(page.of(s.where(Orders, "status", string(status))).Documents(ctx), orderCodec.decode)
	return list, wrap(err, "orders")
}

// OrderCounts counts the orders of each status. The statuses are counted one after the
// other, so an order that changes meanwhile may count twice or not at all.
func (s *Store) OrderCounts(ctx context.Context) (map[domain.OrderStatus]int64, error) {
	return counts(ctx, s, Orders, "status", domain.OrderStatuses)
}

// DecisionCounts counts the decisions of each outcome.
func (s *Store) DecisionCounts(ctx context.Context) (map[domain.Outcome]int64, error) {
	return counts(ctx, s, Decisions, "outcome", []domain.Outcome{domain.OutcomeApplied, domain.OutcomeRejected})
}

// counts counts the documents of a collection whose field has each of the values.
func counts[T ~string](ctx context.Context, s *Store, collection, field string, values []T) (map[T]int64, error) {
	byValue := make(map[T]int64, len(values))
	for _, value := range values {
		n, err := count(ctx, s.where(collection, field, string(value)))
		if err != nil {
			return nil, wrap(err, "count %s %s", value, collection)
		}
		byValue[value] = n
	}
	return byValue, nil
}

// count counts the documents of a query.
//
// Cost: 1 RPC; a read, and one more for each 1,000 documents.
func count(ctx context.Context, q firestore.Query) (int64, error) {
	return counted(ctx, q.NewAggregationQuery())
}

// countIn is count in a transaction.
func countIn(ctx context.Context, tx *firestore.Transaction, q firestore.Query) (int64, error) {
	return counted(ctx, q.NewAggregationQuery().Transaction(tx))
}

func counted(ctx context.Context, q *firestore.AggregationQuery) (int64, error) {
	result, err := q.WithCount("n").Get(ctx)
	if err != nil {
		return 0, err
	}
	n, _ := result["n"].(*firestorepb.Value)
	return n.GetIntegerValue(), nil
}

// Missions lists missions by id; status may be empty.
func (s *Store) Missions(ctx context.Context, status domain.MissionStatus, page Page) ([]domain.Mission, error) {
	list, err := collect(page.of(s.where(Missions, "status", string(status))).Documents(ctx), missionCodec.decode)
	return list, wrap(err, "missions")
}

// LedgerInCommitOrder lists the whole ledger, first committed first.
func (s *Store) LedgerInCommitOrder(ctx context.Context) ([]domain.LedgerEntry, error) {
	type row struct {
		entry domain.LedgerEntry
		snap  *firestore.DocumentSnapshot
	}
	rows, err := collect(s.client.Collection(Decisions).Documents(ctx), func(doc *firestore.DocumentSnapshot) (row, error) {
		entry, err := ledgerCodec.decode(doc)
		return row{entry, doc}, err
	})
	if err != nil {
		return nil, wrap(err, "decisions")
	}
	slices.SortFunc(rows, func(a, b row) int { return a.snap.CreateTime.Compare(b.snap.CreateTime) })
	entries := make([]domain.LedgerEntry, len(rows))
	for i, r := range rows {
		entries[i] = r.entry
	}
	return entries, nil
}

// AllEvents lists every event there is, in no particular order.
func (s *Store) AllEvents(ctx context.Context) ([]domain.Event, error) {
	list, err := collect(s.client.Collection(Events).Documents(ctx), eventCodec.decode)
	return list, wrap(err, "events")
}

// EventsOf lists the events in which field ("droneId", "orderId", "missionId",
// "decisionId" or "cycleId") is id, oldest first.
func (s *Store) EventsOf(ctx context.Context, field, id string) (Listing[domain.Event], error) {
	events, err := list(ctx, s, Events, Page{}, eventCodec.decode, equal(field, id))
	slices.SortFunc(events.Items, func(a, b domain.Event) int {
		// Events of one commit share its time.
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.Entity, b.Entity), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Revision, b.Revision))
	})
	return events, wrap(err, "%s %s", field, id)
}

// Depots lists the depots.
//
// Cost: 1 RPC; a read per depot.
func (s *Store) Depots(ctx context.Context) (Listing[domain.Depot], error) {
	return list(ctx, s, Depots, Page{}, decodeDepot)
}

// Warehouses lists the warehouses.
func (s *Store) Warehouses(ctx context.Context) ([]domain.Warehouse, error) {
	list, err := collect(s.client.Collection(Warehouses).Documents(ctx), warehouseCodec.decode)
	return list, wrap(err, "warehouses")
}

// Drone, Order, Mission, LedgerEntry and Cycle read one entity; the error wraps
// ErrNotFound if there is none.

// Drone reads a drone.
func (s *Store) Drone(ctx context.Context, id domain.DroneID) (domain.Drone, error) {
	return one(ctx, s.doc(Drones, string(id)), decodeKnownDrone)
}

// Order reads an order.
func (s *Store) Order(ctx context.Context, id domain.OrderID) (domain.Order, error) {
	return one(ctx, s.doc(Orders, string(id)), orderCodec.decode)
}

// Mission reads a mission.
func (s *Store) Mission(ctx context.Context, id domain.MissionID) (domain.Mission, error) {
	return one(ctx, s.doc(Missions, string(id)), missionCodec.decode)
}

// LedgerEntry reads a decision's line in the ledger.
func (s *Store) LedgerEntry(ctx context.Context, id domain.DecisionID) (domain.LedgerEntry, error) {
	return one(ctx, s.doc(Decisions, string(id)), ledgerCodec.decode)
}

// Cycle reads a solve cycle.
func (s *Store) Cycle(ctx context.Context, id domain.CycleID) (domain.Cycle, error) {
	return one(ctx, s.doc(Cycles, string(id)), cycleCodec.decode)
}

// ErrNotFound says that the store has no such entity.
var ErrNotFound = errors.New("not found")

func one[T any](ctx context.Context, ref *firestore.DocumentRef, decode func(*firestore.DocumentSnapshot) (T, error)) (T, error) {
	var none T
	if domain.CheckDocumentID(ref.ID) != nil { // another document names one that cannot be
		return none, wrap(ErrNotFound, "%s %q", ref.Parent.ID, ref.ID)
	}
	snap, err := ref.Get(ctx)
	if status.Code(err) == codes.NotFound {
		return none, wrap(ErrNotFound, "%s %s", ref.Parent.ID, ref.ID)
	}
	if err != nil {
		return none, wrap(err, "%s %s", ref.Parent.ID, ref.ID)
	}
	return decode(snap)
}

// many reads entities by id in one call and leaves out those that do not exist. It also leaves out
// ids that no document can have, for which Firestore would refuse the whole call.
func many[ID ~string, T any](ctx context.Context, s *Store, collection string, ids []ID, decode func(*firestore.DocumentSnapshot) (T, error)) ([]T, error) {
	ids = slices.DeleteFunc(slices.Clone(ids), func(id ID) bool { return domain.CheckDocumentID(string(id)) != nil })
	if len(ids) == 0 {
		return nil, nil
	}
	snaps, err := s.client.GetAll(ctx, refs(s, collection, ids))
	if err != nil {
		return nil, wrap(err, "%s", collection)
	}
	var list []T
	var malformed []error
	for _, snap := range snaps {
		if !snap.Exists() {
			continue
		}
		v, err := decode(snap)
		if err != nil {
			malformed = append(malformed, err)
			continue
		}
		list = append(list, v)
	}
	return list, some(malformed)
}
