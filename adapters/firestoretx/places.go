package firestoretx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/iterator"
	"google.golang.org/genproto/googleapis/type/latlng"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// placeForm is how one kind of place, drone or drone type is stored.
type placeForm[P any] struct {
	kind       domain.PlaceKind
	collection string
	codec      codec[P]
	decode     func(*firestore.DocumentSnapshot) (P, error)
	// moves reports whether a change moves the place away from where drones are sent to. It is nil
	// for kinds that drones are not sent to.
	moves func(s *Store, before, after P) bool
}

var (
	depotForm     = placeForm[domain.Depot]{kind: domain.PlaceDepot, collection: Depots, codec: depotCodec, decode: decodeDepot}
	warehouseForm = placeForm[domain.Warehouse]{kind: domain.PlaceWarehouse, collection: Warehouses, codec: warehouseCodec, decode: warehouseCodec.decode, moves: movesWarehouse}
)

var placeChangeCodec = codec[domain.PlaceChange]{
	text("kind", func(c *domain.PlaceChange) *domain.PlaceKind { return &c.Kind }),
	text("id", func(c *domain.PlaceChange) *string { return &c.ID }),
	text("action", func(c *domain.PlaceChange) *domain.PlaceAction { return &c.Action }),
	texts("fields", func(c *domain.PlaceChange) *[]string { return &c.Fields }),
	instant("changedAt", func(c *domain.PlaceChange) *time.Time { return &c.ChangedAt }),
	text("changedBy", func(c *domain.PlaceChange) *string { return &c.ChangedBy }),
	text("why", func(c *domain.PlaceChange) *string { return &c.Why }),
}

// Change says who changes a place, and why.
type Change struct {
	By, Why string
	// DryRun only tells what would change.
	DryRun bool
}

// ApplyDepot stores a depot and records the change. Fields of other tools stay. An
// unchanged depot is not written.
//
// Cost: 3 RPCs, 1 read, 2 writes; 1 RPC and 1 read if nothing changes.
func (s *Store) ApplyDepot(ctx context.Context, d domain.Depot, c Change) (domain.PlaceChange, error) {
	return applyPlace(ctx, s, depotForm, string(d.ID), d, c)
}

// ApplyWarehouse does for a warehouse what ApplyDepot does for a depot. It refuses to move one that
// active missions still fly to. Moving any other makes decisions from older snapshots expire, as
// deleting it does.
//
// Cost: as ApplyDepot; for a move as DeleteWarehouse.
func (s *Store) ApplyWarehouse(ctx context.Context, w domain.Warehouse, c Change) (domain.PlaceChange, error) {
	return applyPlace(ctx, s, warehouseForm, string(w.ID), w, c)
}

func applyPlace[P any](ctx context.Context, s *Store, form placeForm[P], id string, place P, c Change) (domain.PlaceChange, error) {
	ref := s.doc(form.collection, id)
	done, err := s.changePlace(ctx, c, func(in reading) (done domain.PlaceChange, write func(*txn) error, _ error) {
		snap := in.snaps[0]
		done = domain.PlaceChange{Kind: form.kind, ID: id, Action: domain.PlaceUnchanged}
		if !snap.Exists() {
			done.Action, done.Fields = domain.PlaceCreated, form.codec.described(place, "none -> %s")
			return done, func(t *txn) error { return t.Create(ref, form.codec.encode(place)) }, nil
		}
		before, malformed := form.decode(snap)
		updates, fields := form.codec.updates(before, place), form.codec.differences(before, place)
		if malformed != nil {
			updates = form.codec.all(place)
			fields = append([]string{"malformed before: " + malformed.Error()}, form.codec.described(place, "unreadable -> %s")...)
		}
		if len(updates) > 0 {
			done.Action, done.Fields = domain.PlaceChanged, fields
		}
		update := func(t *txn) error { return t.Update(ref, updates) }
		if form.moves == nil || malformed == nil && !form.moves(s, before, place) {
			return done, update, nil
		}
		if malformed == nil { // else nobody knows where it was: it may be repaired at once
			if err := s.checkUnvisited(in.ask, id); err != nil {
				return done, nil, err
			}
		}
		return done, func(t *txn) error {
			outdate, err := t.outdateDecisions(id)
			if err != nil {
				return err
			}
			return errors.Join(outdate(), update(t))
		}, nil
	}, ref)
	return done, wrap(err, "%s %s", form.kind, id)
}

// reading is the input of a change of a place.
type reading struct {
	snaps []*firestore.DocumentSnapshot
	ask   ask
	now   time.Time
}

// changePlace applies what judge decides about a place's document and related ones, and records it.
// It first asks judge outside a transaction, which would lock everything that judge reads.
func (s *Store) changePlace(ctx context.Context, c Change, judge func(reading) (domain.PlaceChange, func(*txn) error, error),
	refs ...*firestore.DocumentRef) (done domain.PlaceChange, _ error) {
	snaps, err := s.client.GetAll(ctx, refs)
	if err == nil {
		done, _, err = judge(reading{snaps, asking(ctx), s.now()})
	}
	done.ChangedBy, done.Why = c.By, c.Why
	if err != nil || c.DryRun || done.Action == domain.PlaceUnchanged {
		return done, err
	}
	err = s.transact(By(ctx, c.By), nil, func(t *txn) error {
		snaps, err := t.get(refs...)
		if err != nil {
			return err
		}
		var write func(*txn) error
		done, write, err = judge(reading{snaps, t.ask, t.now})
		if err != nil || done.Action == domain.PlaceUnchanged {
			return err
		}
		return errors.Join(write(t), t.recordPlace(&done, c))
	})
	return done, err
}

// recordPlace records a change of a place, with who made it.
func (t *txn) recordPlace(done *domain.PlaceChange, c Change) error {
	done.ChangedAt, done.ChangedBy, done.Why = t.now, c.By, c.Why
	return t.Create(t.store.client.Collection(PlaceChanges).NewDoc(), placeChangeCodec.encode(*done))
}

func movesWarehouse(s *Store, before, after domain.Warehouse) bool {
	return before.Position.DistanceMetres(after.Position) > s.assignment.StopToleranceMetres
}

// checkUnvisited refuses to move a warehouse that active missions still fly to.
func (s *Store) checkUnvisited(ask ask, id string) error {
	users, err := s.visitors(ask, domain.WarehouseID(id))
	if err != nil {
		return err
	}
	return policy.CheckUnused(domain.PlaceWarehouse, id, users)
}

// differences lists each field that differs, with its old and new value.
func (c codec[T]) differences(before, after T) (fields []string) {
	for _, f := range c {
		if was, is := f.get(&before), f.get(&after); !reflect.DeepEqual(was, is) {
			fields = append(fields, fmt.Sprintf("%s: %s -> %s", f.name, storedText(was), storedText(is)))
		}
	}
	return fields
}

// described lists each given field with its value.
func (c codec[T]) described(v T, format string) (fields []string) {
	for _, f := range c {
		is := f.get(&v)
		if given := reflect.ValueOf(is); given.IsValid() && !given.IsZero() {
			fields = append(fields, fmt.Sprintf("%s: "+format, f.name, storedText(is)))
		}
	}
	return fields
}

// storedText is a stored value for people.
func storedText(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case time.Time:
		return v.Format(time.RFC3339Nano)
	case []any:
		parts := make([]string, len(v))
		for i, entry := range v {
			parts[i] = storedText(entry)
		}
		return "[" + strings.Join(parts, " ") + "]"
	case map[string]any:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, name+": "+storedText(v[name]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case *latlng.LatLng:
		return fmt.Sprintf("%.6f,%.6f", v.GetLatitude(), v.GetLongitude())
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// ask runs a query, inside or outside a transaction.
type ask func(firestore.Query) *firestore.DocumentIterator

// DeleteDepot deletes a depot that nothing refers to, and records it. Drones refer to their home;
// open orders need the last depot. The transaction reads the references. A new reference is either
// seen or names a depot that no longer exists, as ApplyDrone notices. A later order waits, as in a
// fleet without a depot.
//
// Cost: 10 RPCs, 2 writes; up to 48 reads.
func (s *Store) DeleteDepot(ctx context.Context, id domain.DepotID, c Change) (domain.PlaceChange, error) {
	usersOf := func(ask ask) ([]string, error) {
		users, err := dronesInService(ask, s.where(Drones, "homeDepotId", string(id)))
		if err != nil || len(users) > policy.MaxUsersNamed {
			return users, err
		}
		depots, err := named("depot", ask, s.client.Collection(Depots).Query)
		if err != nil || len(depots) > 1 {
			return users, err
		}
		orders, err := named("order", ask, s.openOrders())
		return append(users, orders...), err
	}
	return deletePlace(ctx, s, depotForm, string(id), c, usersOf, nothingElse)
}

// DeleteWarehouse deletes a warehouse that no active mission visits, and records it. The
// transaction reads the missions. It also marks the documents that decisions read, so that
// decisions from a snapshot with the warehouse expire.
//
// Cost: 8 RPCs; 3 writes and 1 for each depot; 3 reads, and 2 for each active mission and each
// depot.
func (s *Store) DeleteWarehouse(ctx context.Context, id domain.WarehouseID, c Change) (domain.PlaceChange, error) {
	return deletePlace(ctx, s, warehouseForm, string(id), c, func(ask ask) ([]string, error) { return s.visitors(ask, id) }, (*txn).outdateDecisions)
}

// visitors names the active missions that have yet to visit a warehouse, by their route
// or by an amendment that their drone has not named.
func (s *Store) visitors(ask ask, id domain.WarehouseID) (names []string, err error) {
	err = each(ask(s.where(Missions, "status", string(domain.MissionActive))), func(doc *firestore.DocumentSnapshot) error {
		m, err := missionCodec.decode(doc)
		if err != nil {
			return nil // its route is not known; lists of missions name it
		}
		for _, stop := range m.StopsAhead() {
			if name := fmt.Sprintf("mission %s (order %s, drone %s)", m.ID, stop.OrderID, m.DroneID); stop.WarehouseID == id && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return nil
	})
	return names, wrap(err, "active missions")
}

// nothingElse is what deletePlace writes beside the deletion of most places.
func nothingElse(*txn, string) (func() error, error) { return func() error { return nil }, nil }

// deletePlace deletes a place that has no users. alsoWrite reads what it needs and returns
// the function that writes it.
func deletePlace[P any](ctx context.Context, s *Store, form placeForm[P], id string, c Change, usersOf func(ask) ([]string, error),
	alsoWrite func(*txn, string) (func() error, error)) (domain.PlaceChange, error) {
	ref := s.doc(form.collection, id)
	done, err := s.changePlace(ctx, c, func(in reading) (done domain.PlaceChange, write func(*txn) error, _ error) {
		snap := in.snaps[0]
		done = domain.PlaceChange{Kind: form.kind, ID: id, Action: domain.PlaceDeleted}
		users, err := usersOf(in.ask)
		if err == nil {
			err = policy.CheckUnused(form.kind, id, users)
		}
		if err != nil {
			return done, nil, err
		}
		if !snap.Exists() {
			return done, nil, &policy.Rejection{Reason: policy.ReasonNotFound, Subject: id, Detail: "no such " + string(form.kind)}
		}
		if before, err := form.decode(snap); err == nil {
			done.Fields = form.codec.described(before, "%s -> none")
		}
		return done, func(t *txn) error {
			more, err := alsoWrite(t, id)
			if err != nil {
				return err
			}
			return errors.Join(more(), t.Delete(ref))
		}, nil
	}, ref)
	return done, wrap(err, "%s", form.kind)
}

// named names the first documents of a query, one more than a refusal names.
func named(kind string, ask ask, q firestore.Query) (names []string, err error) {
	err = each(ask(q.Select().Limit(policy.MaxUsersNamed+1)), func(doc *firestore.DocumentSnapshot) error {
		names = append(names, kind+" "+doc.Ref.ID)
		return nil
	})
	return names, wrap(err, "%ss", kind)
}

// dronesInService names the first drones of a query that are not retired, one more than a
// refusal names.
func dronesInService(ask ask, q firestore.Query) (names []string, err error) {
	err = each(ask(q.Select("retiredAt")), func(doc *firestore.DocumentSnapshot) error {
		if !isRetired(doc) {
			names = append(names, "drone "+doc.Ref.ID)
		}
		if len(names) > policy.MaxUsersNamed {
			return iterator.Done
		}
		return nil
	})
	if errors.Is(err, iterator.Done) {
		err = nil
	}
	return names, wrap(err, "drones")
}

// isRetired reports whether a drone's document says that the drone is retired.
func isRetired(drone *firestore.DocumentSnapshot) bool {
	_, retired := drone.Data()["retiredAt"]
	return retired
}

// ListDepots lists depots.
func (s *Store) ListDepots(ctx context.Context, page Page) (Listing[domain.Depot], error) {
	return list(ctx, s, Depots, page, decodeDepot)
}

// ListWarehouses lists warehouses.
func (s *Store) ListWarehouses(ctx context.Context, page Page) (Listing[domain.Warehouse], error) {
	return list(ctx, s, Warehouses, page, warehouseCodec.decode)
}

// Depot reads a depot; the error wraps ErrNotFound if there is none.
//
// Cost: 1 RPC, 1 read.
func (s *Store) Depot(ctx context.Context, id domain.DepotID) (domain.Depot, error) {
	return one(ctx, s.doc(Depots, string(id)), decodeDepot)
}

// Warehouse does for a warehouse what Depot does for a depot.
//
// Cost: as Depot.
func (s *Store) Warehouse(ctx context.Context, id domain.WarehouseID) (domain.Warehouse, error) {
	return one(ctx, s.doc(Warehouses, string(id)), warehouseCodec.decode)
}

// ChangesOf lists the changes of one place, oldest first.
//
// Cost: 1 RPC; a read per change.
func (s *Store) ChangesOf(ctx context.Context, kind domain.PlaceKind, id string) (Listing[domain.PlaceChange], error) {
	changes, err := list(ctx, s, PlaceChanges, Page{}, placeChangeCodec.decode, equal("kind", string(kind)), equal("id", id))
	slices.SortStableFunc(changes.Items, func(a, b domain.PlaceChange) int { return a.ChangedAt.Compare(b.ChangedAt) })
	return changes, wrap(err, "changes of %s %s", kind, id)
}

// DepotUsers are the first drones that live at a depot, one more than a refusal names.
//
// Cost: 1 RPC; a read per drone.
func (s *Store) DepotUsers(ctx context.Context, id domain.DepotID) ([]string, error) {
	return dronesInService(asking(ctx), s.where(Drones, "homeDepotId", string(id)))
}

// WarehouseUsers are the active missions that visit a warehouse.
//
// Cost: 1 RPC; a read per active mission.
func (s *Store) WarehouseUsers(ctx context.Context, id domain.WarehouseID) ([]string, error) {
	return s.visitors(asking(ctx), id)
}

// ask runs queries in the transaction.
func (t *txn) ask(q firestore.Query) *firestore.DocumentIterator { return t.Documents(q) }

// asking runs queries outside transactions.
func asking(ctx context.Context) ask {
	return func(q firestore.Query) *firestore.DocumentIterator { return q.Documents(ctx) }
}

// PlaceChanges lists the changes of depots and warehouses, in no particular order.
func (s *Store) PlaceChanges(ctx context.Context) ([]domain.PlaceChange, error) {
	list, err := collect(s.client.Collection(PlaceChanges).Documents(ctx), placeChangeCodec.decode)
	return list, wrap(err, "changes of places")
}
