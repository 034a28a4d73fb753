package firestoretx

import (
	"context"
	"errors"
	"slices"

	"cloud.google.com/go/firestore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/domain"
)

// Listing is one page of a collection, ordered by id. Malformed lists the documents that
// cannot be decoded. A page may be short and still not be the last.
//
// Cost of each List method: 1 RPC; a read per entity and one more.
type Listing[T any] struct {
	Items        []T
	Malformed    []error
	MalformedIDs []string // the ids of the documents in Malformed
	Next         string   // After of the next page; empty on the last
}

// condition narrows a listing unless its value is empty.
type condition struct {
	field, operator string
	value           any
}

func equal(field string, value any) condition { return condition{field, "==", value} }

func list[T any](ctx context.Context, s *Store, collection string, page Page, decode func(*firestore.DocumentSnapshot) (T, error), conditions ...condition) (Listing[T], error) {
	return listUntil(ctx, s, collection, page, decode, func(T) bool { return false }, conditions...)
}

// errFull ends a page early.
var errFull = errors.New("the page is full")

// listUntil is list with a page that also ends after the first entity for which full is true. It
// retries once if the connection breaks, as Google's emulator does when a large page ends early.
func listUntil[T any](ctx context.Context, s *Store, collection string, page Page, decode func(*firestore.DocumentSnapshot) (T, error), full func(T) bool, conditions ...condition) (Listing[T], error) {
	listing, err := readPage(ctx, s, collection, page, decode, full, conditions)
	if status.Code(err) == codes.Unavailable {
		listing, err = readPage(ctx, s, collection, page, decode, full, conditions)
	}
	return listing, err
}

func readPage[T any](ctx context.Context, s *Store, collection string, page Page, decode func(*firestore.DocumentSnapshot) (T, error), full func(T) bool, conditions []condition) (Listing[T], error) {
	q := s.client.Collection(collection).Query
	for _, c := range conditions {
		if c.value != "" {
			q = q.Where(c.field, c.operator, c.value)
		}
	}
	// One more than asked for tells whether there is another page.
	ask := page
	if ask.Limit > 0 {
		ask.Limit++
	}
	var (
		listing Listing[T]
		last    string
		seen    int
		ended   bool
	)
	err := each(ask.of(q).Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
		if seen++; ended || page.Limit > 0 && seen > page.Limit {
			listing.Next = last
			return errFull
		}
		last = doc.Ref.ID
		v, err := decode(doc)
		if err != nil {
			listing.Malformed = append(listing.Malformed, err)
			listing.MalformedIDs = append(listing.MalformedIDs, doc.Ref.ID)
			return nil
		}
		listing.Items = append(listing.Items, v)
		ended = full(v)
		return nil
	})
	if errors.Is(err, errFull) {
		err = nil
	}
	return listing, wrap(err, "%s", collection)
}

// DroneFilter narrows a listing of drones; zero fields match all.
type DroneFilter struct {
	Status domain.DroneStatus
	Legacy bool // only those of an earlier version, which knew no registry
}

// ListDrones lists drones. A listing of legacy drones reads all drones until the page is full,
// because no query finds them.
func (s *Store) ListDrones(ctx context.Context, f DroneFilter, page Page) (Listing[domain.Drone], error) {
	status := equal("status", string(f.Status))
	if !f.Legacy {
		return list(ctx, s, Drones, page, decodeKnownDrone, status)
	}
	found := 0
	l, err := listUntil(ctx, s, Drones, Page{After: page.After}, decodeKnownDrone, func(d domain.Drone) bool {
		if d.Legacy() {
			found++
		}
		return found == page.Limit && page.Limit > 0
	}, status)
	l.Items = slices.DeleteFunc(l.Items, func(d domain.Drone) bool { return !d.Legacy() })
	return l, err
}

// OrderFilter narrows a listing of orders; zero fields match all.
type OrderFilter struct {
	Status      domain.OrderStatus
	Held        bool // only those held for an operator
	RequesterID string
}

// ListOrders lists orders.
func (s *Store) ListOrders(ctx context.Context, f OrderFilter, page Page) (Listing[domain.Order], error) {
	conditions := []condition{equal("status", string(f.Status)), equal("requesterId", f.RequesterID)}
	if f.Held {
		conditions = append(conditions, equal("held", true))
	}
	return list(ctx, s, Orders, page, orderCodec.decode, conditions...)
}

// ListMissions lists missions; status may be empty.
func (s *Store) ListMissions(ctx context.Context, status domain.MissionStatus, page Page) (Listing[domain.Mission], error) {
	return list(ctx, s, Missions, page, missionCodec.decode, equal("status", string(status)))
}

// LedgerFilter narrows a listing of the ledger; zero fields match all.
type LedgerFilter struct {
	Outcome domain.Outcome
	Reason  string
	Drone   domain.DroneID
	Cycle   domain.CycleID
	Order   domain.OrderID // among those the decision is about
}

// ListLedger lists decisions with their outcomes.
func (s *Store) ListLedger(ctx context.Context, f LedgerFilter, page Page) (Listing[domain.LedgerEntry], error) {
	conditions := []condition{
		equal("outcome", string(f.Outcome)), equal("reason", f.Reason),
		equal("droneId", string(f.Drone)), equal("cycleId", string(f.Cycle)),
	}
	if f.Order != "" {
		conditions = append(conditions, condition{"orderIds", "array-contains", string(f.Order)})
	}
	return list(ctx, s, Decisions, page, ledgerCodec.decode, conditions...)
}

// maxCyclesBytes is the approximate size at which a page of cycles ends. Each cycle lists all
// waiting orders: with thousands of these, a thousand cycles would take 700 MB.
const maxCyclesBytes = 8 << 20

// ListCycles lists solve cycles; outcome may be empty. A page ends early where cycles
// list many orders.
func (s *Store) ListCycles(ctx context.Context, outcome domain.CycleOutcome, page Page) (Listing[domain.Cycle], error) {
	room := maxCyclesBytes
	full := func(c domain.Cycle) bool {
		for _, u := range c.Unserved {
			room -= len(u.OrderID) + len(u.Reason)
		}
		for _, what := range c.LeftOut {
			room -= len(what)
		}
		return room <= 0
	}
	return listUntil(ctx, s, Cycles, page, cycleCodec.decode, full, equal("outcome", string(outcome)))
}
