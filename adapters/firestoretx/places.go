package firestoretx

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/genproto/googleapis/type/latlng"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// placeForm is how one kind of place is stored.
type placeForm[P domain.Place] struct {
	kind       domain.PlaceKind
	collection string
	codec      codec[P]
	decode     func(*firestore.DocumentSnapshot) (P, error)
}

var (
	depotForm     = placeForm[domain.Depot]{domain.PlaceDepot, Depots, depotCodec, decodeDepot}
	warehouseForm = placeForm[domain.Warehouse]{domain.PlaceWarehouse, Warehouses, warehouseCodec, decodeWarehouse}
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

// ApplyDepot makes a depot's document say what d says, and records the change. Fields of
// other tools stay. A depot that is as d says stays as it is, without a record.
//
// Cost: 3 RPCs, 1 read, 2 writes; 1 RPC and 1 read if there is nothing to write.
func (s *Store) ApplyDepot(ctx context.Context, d domain.Depot, c Change) (domain.PlaceChange, error) {
	return applyPlace(ctx, s, depotForm, string(d.ID), d, c)
}

// ApplyWarehouse does for a warehouse what ApplyDepot does for a depot.
//
// Cost: as ApplyDepot.
func (s *Store) ApplyWarehouse(ctx context.Context, w domain.Warehouse, c Change) (domain.PlaceChange, error) {
	return applyPlace(ctx, s, warehouseForm, string(w.ID), w, c)
}

func applyPlace[P domain.Place](ctx context.Context, s *Store, form placeForm[P], id string, place P, c Change) (domain.PlaceChange, error) {
	ref := s.doc(form.collection, id)
	change := func(snap *firestore.DocumentSnapshot) (domain.PlaceChange, []firestore.Update) {
		done := domain.PlaceChange{Kind: form.kind, ID: id, Action: domain.PlaceUnchanged, ChangedBy: c.By, Why: c.Why}
		if !snap.Exists() {
			var nothing P
			done.Action, done.Fields = domain.PlaceCreated, form.codec.differences(nothing, place)
			return done, nil
		}
		before, err := form.decode(snap)
		if err != nil {
			done.Action, done.Fields = domain.PlaceChanged, append([]string{"malformed before: " + err.Error()}, form.codec.differences(before, place)...)
			return done, form.codec.all(place)
		}
		updates := form.codec.updates(before, place)
		if len(updates) > 0 {
			done.Action, done.Fields = domain.PlaceChanged, form.codec.differences(before, place)
		}
		return done, updates
	}
	snap, err := s.read(ctx, ref)
	if err != nil {
		return domain.PlaceChange{}, err
	}
	done, _ := change(snap)
	if c.DryRun || done.Action == domain.PlaceUnchanged {
		return done, nil
	}
	err = s.transact(ctx, nil, func(t *txn) error {
		snaps, err := t.get(ref)
		if err != nil {
			return err
		}
		var updates []firestore.Update
		done, updates = change(snaps[0])
		switch done.Action {
		case domain.PlaceUnchanged:
			return nil
		case domain.PlaceCreated:
			err = t.Create(ref, form.codec.encode(place))
		case domain.PlaceChanged, domain.PlaceDeleted:
			err = t.Update(ref, updates)
		}
		return errors.Join(err, t.recordPlaceChange(&done))
	})
	return done, wrap(err, "%s %s", form.kind, id)
}

// read reads a document that may be missing.
func (s *Store) read(ctx context.Context, ref *firestore.DocumentRef) (*firestore.DocumentSnapshot, error) {
	snaps, err := s.client.GetAll(ctx, []*firestore.DocumentRef{ref})
	if err != nil {
		return nil, wrap(err, "%s %s", ref.Parent.ID, ref.ID)
	}
	return snaps[0], nil
}

func (t *txn) recordPlaceChange(c *domain.PlaceChange) error {
	c.ChangedAt = t.now
	return t.Create(t.store.client.Collection(PlaceChanges).NewDoc(), placeChangeCodec.encode(*c))
}

// differences says for each field that differs what it was and what it becomes.
func (c codec[T]) differences(before, after T) (fields []string) {
	for _, f := range c {
		if was, is := f.get(&before), f.get(&after); !reflect.DeepEqual(was, is) {
			fields = append(fields, fmt.Sprintf("%s: %s -> %s", f.name, storedText(was), storedText(is)))
		}
	}
	return fields
}

// storedText is a stored value for people.
func storedText(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case *latlng.LatLng:
		return fmt.Sprintf("%.6f,%.6f", v.GetLatitude(), v.GetLongitude())
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// DeleteDepot deletes a depot that nothing refers to, and records it. A drone refers to
// its home; every open order needs the only depot there is. The references are read
// before the depot is deleted: one that is made in the same moment is not seen.
//
// Cost: 7 RPCs, 2 writes; up to 24 reads.
func (s *Store) DeleteDepot(ctx context.Context, id domain.DepotID, c Change) (domain.PlaceChange, error) {
	return deletePlace(ctx, s, depotForm, string(id), c, func(ctx context.Context) (users []string, err error) {
		users, err = s.named(ctx, "drone", s.where(Drones, "homeDepotId", string(id)))
		if err != nil || len(users) > policy.MaxUsersNamed {
			return users, err
		}
		depots, err := s.named(ctx, "depot", s.client.Collection(Depots).Query)
		if err != nil || len(depots) > 1 {
			return users, err
		}
		var open []string
		for _, status := range domain.OrderStatuses {
			if !status.Final() {
				open = append(open, string(status))
			}
		}
		orders, err := s.named(ctx, "order", s.client.Collection(Orders).Where("status", "in", open))
		return append(users, orders...), err
	})
}

// DeleteWarehouse deletes a warehouse that no active mission visits, and records it. The
// missions are read before, as in DeleteDepot.
//
// Cost: 5 RPCs, 2 writes; 2 reads, and one for each active mission.
func (s *Store) DeleteWarehouse(ctx context.Context, id domain.WarehouseID, c Change) (domain.PlaceChange, error) {
	return deletePlace(ctx, s, warehouseForm, string(id), c, func(ctx context.Context) (users []string, err error) {
		missions, err := s.Missions(ctx, domain.MissionActive, Page{})
		if malformed := (*MalformedError)(nil); err != nil && !errors.As(err, &malformed) {
			return nil, err
		}
		for _, m := range missions {
			for _, stop := range m.Route {
				if stop.WarehouseID == id {
					users = append(users, fmt.Sprintf("mission %s (order %s, drone %s)", m.ID, stop.OrderID, m.DroneID))
				}
			}
		}
		return users, nil
	})
}

func deletePlace[P domain.Place](ctx context.Context, s *Store, form placeForm[P], id string, c Change, usersOf func(context.Context) ([]string, error)) (domain.PlaceChange, error) {
	done := domain.PlaceChange{Kind: form.kind, ID: id, Action: domain.PlaceDeleted, ChangedBy: c.By, Why: c.Why}
	ref := s.doc(form.collection, id)
	users, err := usersOf(ctx)
	if err == nil {
		err = policy.DeletePlace(form.kind, id, users)
	}
	if err != nil {
		return domain.PlaceChange{}, wrap(err, "%s", form.kind)
	}
	remove := func(snap *firestore.DocumentSnapshot) error {
		if !snap.Exists() {
			return &policy.Rejection{Reason: policy.ReasonNotFound, Subject: id, Detail: "no such " + string(form.kind)}
		}
		var nothing P
		if before, err := form.decode(snap); err == nil {
			done.Fields = form.codec.differences(before, nothing)
		}
		return nil
	}
	if c.DryRun {
		snap, err := s.read(ctx, ref)
		if err == nil {
			err = remove(snap)
		}
		return done, wrap(err, "%s", form.kind)
	}
	err = s.transact(ctx, nil, func(t *txn) error {
		snaps, err := t.get(ref)
		if err == nil {
			err = remove(snaps[0])
		}
		if err != nil {
			return err
		}
		return errors.Join(t.Delete(ref), t.recordPlaceChange(&done))
	})
	return done, wrap(err, "%s", form.kind)
}

// named names the first documents of a query, one more than a refusal names.
func (s *Store) named(ctx context.Context, kind string, q firestore.Query) (names []string, err error) {
	err = each(q.Select().Limit(policy.MaxUsersNamed+1).Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
		names = append(names, kind+" "+doc.Ref.ID)
		return nil
	})
	return names, wrap(err, "%ss", kind)
}

// ListDepots lists depots.
func (s *Store) ListDepots(ctx context.Context, page Page) (Listing[domain.Depot], error) {
	return list(ctx, s, Depots, page, decodeDepot)
}

// ListWarehouses lists warehouses.
func (s *Store) ListWarehouses(ctx context.Context, page Page) (Listing[domain.Warehouse], error) {
	return list(ctx, s, Warehouses, page, decodeWarehouse)
}

// PlaceChanges lists the changes of depots and warehouses, in no particular order.
func (s *Store) PlaceChanges(ctx context.Context) ([]domain.PlaceChange, error) {
	list, err := collect(s.client.Collection(PlaceChanges).Documents(ctx), placeChangeCodec.decode)
	return list, wrap(err, "changes of places")
}
