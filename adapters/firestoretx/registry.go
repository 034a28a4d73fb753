package firestoretx

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

var droneTypeForm = placeForm[domain.DroneType]{kind: domain.PlaceDroneType, collection: DroneTypes, codec: droneTypeCodec, decode: droneTypeCodec.decode}

// ApplyDrone registers a drone, or changes its registration, and records it. Its home and its
// type must exist, and no other drone that is not retired has its serial number: the
// transaction queries for one. A retired drone is in service again. The drone's document
// holds its properties and those of its type. An unchanged drone is not written.
//
// Cost: 5 RPCs, 6 reads, at most 3 writes; 1 RPC and 3 reads if nothing changes.
func (s *Store) ApplyDrone(ctx context.Context, reg domain.DroneRegistration, c Change) (domain.PlaceChange, error) {
	refs := []*firestore.DocumentRef{s.doc(Drones, string(reg.ID)), s.doc(Depots, string(reg.HomeDepotID))}
	if reg.TypeID != "" {
		refs = append(refs, s.doc(DroneTypes, string(reg.TypeID)))
	}
	done, err := s.changePlace(ctx, c, func(in reading) (domain.PlaceChange, func(*txn) error, error) {
		none := domain.PlaceChange{Kind: domain.PlaceDrone, ID: string(reg.ID), Action: domain.PlaceUnchanged}
		before := decodeDrone(in.snaps[0])
		if before.err != nil {
			return none, nil, before.err
		}
		if !in.snaps[1].Exists() {
			return none, nil, &policy.Rejection{Reason: policy.ReasonDepotUnknown, Subject: string(reg.ID), Detail: fmt.Sprintf("home depot %s does not exist; apply it first", reg.HomeDepotID)}
		}
		var droneType *domain.DroneType
		if reg.TypeID != "" {
			if !in.snaps[2].Exists() {
				return none, nil, &policy.Rejection{Reason: policy.ReasonDroneTypeUnknown, Subject: string(reg.ID), Detail: fmt.Sprintf("type %s does not exist; apply it first", reg.TypeID)}
			}
			t, err := droneTypeCodec.decode(in.snaps[2])
			if err != nil {
				return none, nil, err
			}
			droneType = &t
		}
		if err := s.checkSerialNumber(in.ask, reg, before); err != nil {
			return none, nil, err
		}
		change, err := policy.Register(before.known(), reg, droneType, c.By, c.Why, in.now)
		if err != nil {
			return none, nil, err
		}
		done, write := registryChange(before, change)
		return done, write, nil
	}, refs...)
	return done, wrap(err, "drone %s", reg.ID)
}

// known is the drone; nil if its document does not exist.
func (d droneDoc) known() *domain.Drone {
	if !d.exists {
		return nil
	}
	return &d.Drone
}

// registryChange is the record of a change of a drone's registration, and what writes it.
func registryChange(before droneDoc, change policy.Change) (domain.PlaceChange, func(*txn) error) {
	done := domain.PlaceChange{Kind: domain.PlaceDrone, Action: domain.PlaceUnchanged}
	if change.Drone == nil {
		return done, nil
	}
	after := *change.Drone
	done.ID = string(after.ID)
	switch {
	case !before.exists:
		done.Action, done.Fields = domain.PlaceCreated, registryCodec.described(after, "none -> %s")
	case len(droneCodec.updates(before.Drone, after)) > 0:
		done.Action, done.Fields = domain.PlaceChanged, registryCodec.differences(before.Drone, after)
	}
	return done, func(t *txn) error {
		t.drones[after.ID] = before
		return t.write(change)
	}
}

// checkSerialNumber refuses a serial number that another drone in service has. Nothing is
// asked for a number that the drone in service has already.
func (s *Store) checkSerialNumber(ask ask, reg domain.DroneRegistration, before droneDoc) error {
	if reg.SerialNumber == "" || before.SerialNumber == reg.SerialNumber && !before.Retired() {
		return nil
	}
	names, err := dronesInService(ask, s.where(Drones, "serialNumber", reg.SerialNumber))
	if err != nil {
		return err
	}
	own := "drone " + string(reg.ID)
	names = slices.DeleteFunc(names, func(name string) bool { return name == own })
	if len(names) == 0 {
		return nil
	}
	return &policy.Rejection{Reason: policy.ReasonSerialNumberTaken, Subject: string(reg.ID), Detail: fmt.Sprintf("serialNumber %s is that of %s; correct one of them, or retire the other drone first", reg.SerialNumber, names[0])}
}

// RetireDrone takes a drone out of service and records it. It is refused while the drone is
// bound or an open order is pinned to it. Its document stays.
//
// Cost: 5 RPCs, 2 reads and one for each order pinned to it, 3 writes.
func (s *Store) RetireDrone(ctx context.Context, id domain.DroneID, c Change) (domain.PlaceChange, error) {
	return s.changeRegistered(ctx, id, domain.PlaceDeleted, c, func(before droneDoc, in reading) (policy.Change, error) {
		var users []string
		err := each(in.ask(s.where(Orders, "pinnedDroneId", string(id)).Select("status")), func(doc *firestore.DocumentSnapshot) error {
			if status, _ := doc.Data()["status"].(string); !domain.OrderStatus(status).Final() {
				users = append(users, "order "+doc.Ref.ID)
			}
			return nil
		})
		if err != nil {
			return policy.Change{}, wrap(err, "orders pinned to it")
		}
		return policy.Retire(before.known(), id, users, c.Why, in.now)
	}, nil)
}

// MaintainDrone records that an item of a drone was maintained: the next limits count from
// now.
//
// Cost: 4 RPCs, 2 reads, at most 4 writes.
func (s *Store) MaintainDrone(ctx context.Context, id domain.DroneID, item string, c Change) (domain.PlaceChange, error) {
	return s.changeRegistered(ctx, id, domain.PlaceChanged, c, func(before droneDoc, in reading) (policy.Change, error) {
		return policy.Maintain(before.known(), id, item, c.Why, in.now)
	}, func(t *txn, d domain.Drone) error {
		return t.Create(s.client.Collection(Maintenance).NewDoc(), maintenanceCodec.encode(domain.MaintenanceRecord{
			DroneID: id, Item: item, FlightSeconds: d.FlightSeconds, Landings: d.Landings, BatteryHealth: d.BatteryHealth, At: t.now, By: c.By, Why: c.Why,
		}))
	})
}

// changeRegistered changes the registration of a known drone. record, if not nil, writes
// more.
func (s *Store) changeRegistered(ctx context.Context, id domain.DroneID, action domain.PlaceAction, c Change,
	decide func(droneDoc, reading) (policy.Change, error), record func(*txn, domain.Drone) error) (domain.PlaceChange, error) {
	done, err := s.changePlace(ctx, c, func(in reading) (domain.PlaceChange, func(*txn) error, error) {
		none := domain.PlaceChange{Kind: domain.PlaceDrone, ID: string(id), Action: domain.PlaceUnchanged}
		before := decodeDrone(in.snaps[0])
		if before.err != nil {
			return none, nil, before.err
		}
		change, err := decide(before, in)
		if err != nil || change.Drone == nil {
			return none, nil, err
		}
		done, write := registryChange(before, change)
		done.Action = action
		return done, func(t *txn) error {
			if record != nil {
				if err := record(t, *change.Drone); err != nil {
					return err
				}
			}
			return write(t)
		}, nil
	}, s.doc(Drones, string(id)))
	return done, wrap(err, "drone %s", id)
}

// ApplyDroneType stores a type of drones and records it, and then rewrites its drones with
// its properties, 200 in a transaction. It is refused, and nothing is written, if a drone
// would lack what it needs. What fails partway is completed when it is applied again. The
// answer says how many drones change.
//
// Cost: as ApplyDepot; 2 RPCs and 2 reads for each drone of the type; for each drone that
// changes a read and 2 writes, and 3 RPCs for each 200.
func (s *Store) ApplyDroneType(ctx context.Context, t domain.DroneType, c Change) (domain.PlaceChange, error) {
	outdated, err := s.outdatedDrones(ctx, t)
	if err != nil {
		return domain.PlaceChange{Kind: domain.PlaceDroneType, ID: string(t.ID), Action: domain.PlaceUnchanged}, wrap(err, "drone type %s", t.ID)
	}
	done, err := applyPlace(ctx, s, droneTypeForm, string(t.ID), t, c)
	if err != nil {
		return done, err
	}
	if !c.DryRun { // again: drones may have come meanwhile
		if outdated, err = s.outdatedDrones(ctx, t); err != nil {
			return done, wrap(err, "drone type %s", t.ID)
		}
	}
	if len(outdated) > 0 && done.Action == domain.PlaceUnchanged {
		done.Action = domain.PlaceChanged
	}
	if c.DryRun {
		done.Drones = len(outdated)
		return done, nil
	}
	for some := range slices.Chunk(outdated, 200) {
		n, err := s.retype(ctx, t.ID, some, c)
		done.Drones += n
		if err != nil {
			return done, wrap(err, "drone type %s: %d of %d drones rewritten; apply it again", t.ID, done.Drones, len(outdated))
		}
	}
	return done, nil
}

// outdatedDrones are the drones in service whose documents differ from what their type
// makes of them.
func (s *Store) outdatedDrones(ctx context.Context, t domain.DroneType) (ids []domain.DroneID, err error) {
	err = each(s.where(Drones, "typeId", string(t.ID)).Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
		d := decodeDrone(doc)
		if d.err != nil {
			return d.err
		}
		done, _, err := s.retyped(d, t, Change{})
		if err == nil && done.Action != domain.PlaceUnchanged {
			ids = append(ids, d.ID)
		}
		return err
	})
	return ids, err
}

// retyped is what a type makes of a drone.
func (s *Store) retyped(d droneDoc, t domain.DroneType, c Change) (domain.PlaceChange, func(*txn) error, error) {
	if !d.exists || d.Retired() || d.TypeID != t.ID {
		return domain.PlaceChange{Action: domain.PlaceUnchanged}, nil, nil
	}
	change, err := policy.Register(&d.Drone, d.Registration(), &t, c.By, c.Why, s.now())
	if err != nil {
		return domain.PlaceChange{}, nil, err
	}
	done, write := registryChange(d, change)
	return done, write, nil
}

// retype rewrites drones with what their type says in the transaction.
func (s *Store) retype(ctx context.Context, id domain.DroneTypeID, ids []domain.DroneID, c Change) (n int, _ error) {
	err := s.transact(By(ctx, c.By), nil, func(tx *txn) error {
		n = 0
		types, err := tx.get(s.doc(DroneTypes, string(id)))
		if err != nil || !types[0].Exists() { // deleted meanwhile, with no drone left
			return err
		}
		t, err := droneTypeCodec.decode(types[0])
		if err != nil {
			return err
		}
		if err := tx.readDrones(ids...); err != nil {
			return err
		}
		for _, id := range ids {
			d := tx.drones[id]
			if d.err != nil {
				return d.err
			}
			done, write, err := s.retyped(d, t, c)
			if err != nil {
				return err
			}
			if done.Action == domain.PlaceUnchanged {
				continue
			}
			n++
			if err := errors.Join(write(tx), tx.recordPlace(&done, c)); err != nil {
				return err
			}
		}
		return nil
	})
	return n, err
}

// DeleteDroneType deletes a type that no drone in service has, and records it.
//
// Cost: 5 RPCs, 2 writes; 4 reads and at least 1 for each drone of it.
func (s *Store) DeleteDroneType(ctx context.Context, id domain.DroneTypeID, c Change) (domain.PlaceChange, error) {
	return deletePlace(ctx, s, droneTypeForm, string(id), c, func(ask ask) ([]string, error) {
		return dronesInService(ask, s.where(Drones, "typeId", string(id)))
	}, nothingElse)
}

// ListDroneTypes lists types of drones.
func (s *Store) ListDroneTypes(ctx context.Context, page Page) (Listing[domain.DroneType], error) {
	return list(ctx, s, DroneTypes, page, droneTypeCodec.decode)
}

// DroneType reads a type of drones; the error wraps ErrNotFound if there is none.
//
// Cost: 1 RPC, 1 read.
func (s *Store) DroneType(ctx context.Context, id domain.DroneTypeID) (domain.DroneType, error) {
	return one(ctx, s.doc(DroneTypes, string(id)), droneTypeCodec.decode)
}

// MaintenanceOf lists the maintenance of a drone, oldest first.
//
// Cost: 1 RPC; a read for each.
func (s *Store) MaintenanceOf(ctx context.Context, id domain.DroneID) (Listing[domain.MaintenanceRecord], error) {
	records, err := list(ctx, s, Maintenance, Page{}, maintenanceCodec.decode, equal("droneId", string(id)))
	slices.SortStableFunc(records.Items, func(a, b domain.MaintenanceRecord) int { return a.At.Compare(b.At) })
	return records, wrap(err, "maintenance of drone %s", id)
}
