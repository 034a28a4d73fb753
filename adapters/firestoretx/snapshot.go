package firestoretx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/firestore"
	"google.golang.org/api/iterator"

	"github.com/dronefleet/dronefleet/domain"
)

// SnapshotRequest says what a solve cycle wants to see.
type SnapshotRequest struct {
	Depot domain.DepotID
	// At is a past time to read at; zero means now.
	At time.Time
	// MinBattery is the charge, in percent, a drone must exceed.
	MinBattery float64
	// MaxSilence is how long a drone may have been silent.
	MaxSilence time.Duration
	// OnMalformed, if set, is called for each drone, order or warehouse that was left
	// out because its document is malformed.
	OnMalformed func(error)
}

// Snapshot reads, at one read time and without locks, what a cycle of one depot plans
// with: its IDLE drones that have charge, reported recently and are not grounded, the PENDING orders that
// are not held, the warehouses and the depot. A lone depot has all drones; otherwise a
// drone belongs to its home depot. A malformed depot is an error; other malformed
// documents are left out.
//
// Cost: 6 RPCs; a read per document returned.
func (s *Store) Snapshot(ctx context.Context, req SnapshotRequest) (domain.Snapshot, error) {
	opts := []firestore.TransactionOption{firestore.ReadOnly}
	if !req.At.IsZero() {
		opts = append(opts, firestore.TransactionReadTime(req.At.Truncate(time.Microsecond)))
	}
	var malformed []error
	leaveOut := func(err error) bool {
		if err != nil {
			malformed = append(malformed, err)
		}
		return err != nil
	}
	var snap domain.Snapshot
	err := s.client.RunTransaction(ctx, func(_ context.Context, tx *firestore.Transaction) error {
		snap, malformed = domain.Snapshot{}, nil
		var depots int
		err := each(tx.Documents(s.client.Collection(Depots)), func(doc *firestore.DocumentSnapshot) error {
			depots++
			if doc.Ref.ID != string(req.Depot) {
				return nil
			}
			var err error
			snap.ReadTime = doc.ReadTime
			snap.Depot, err = decodeDepot(doc)
			return err
		})
		if err != nil {
			return wrap(err, "depots")
		}
		if snap.Depot.ID == "" {
			return wrap(ErrNotFound, "depot %s", req.Depot)
		}
		idle := s.dronesOf(req.Depot, depots).Where("status", "==", string(domain.DroneIdle))
		err = each(tx.Documents(idle), func(doc *firestore.DocumentSnapshot) error {
			d := decodeDrone(doc)
			silent := snap.ReadTime.Sub(d.SeenAt)
			if leaveOut(d.err) || d.Bound() || d.Grounded || d.Battery <= req.MinBattery || silent > req.MaxSilence {
				return nil
			}
			snap.Drones = append(snap.Drones, d.Drone)
			return nil
		})
		if err != nil {
			return wrap(err, "idle drones")
		}
		pending := s.client.Collection(Orders).Where("status", "==", string(domain.OrderPending)).Where("held", "==", false)
		err = each(tx.Documents(pending), func(doc *firestore.DocumentSnapshot) error {
			if o, err := decodeOrder(doc); !leaveOut(err) {
				snap.Orders = append(snap.Orders, o)
			}
			return nil
		})
		if err != nil {
			return wrap(err, "pending orders")
		}
		err = each(tx.Documents(s.client.Collection(Warehouses)), func(doc *firestore.DocumentSnapshot) error {
			if w, err := decodeWarehouse(doc); !leaveOut(err) {
				snap.Warehouses = append(snap.Warehouses, w)
			}
			return nil
		})
		return wrap(err, "warehouses")
	}, opts...)
	for _, err := range malformed {
		if req.OnMalformed != nil {
			req.OnMalformed(err)
		}
	}
	snap.Time = s.now()
	return snap, wrap(err, "snapshot")
}

// Fleet lists all drones of a depot that reported within maxSilence, whatever their
// status. Malformed documents are left out.
//
// Cost: 2 RPCs; a read per drone and for at most two depots.
func (s *Store) Fleet(ctx context.Context, depot domain.DepotID, maxSilence time.Duration) ([]domain.Drone, error) {
	depots := 0
	err := each(s.client.Collection(Depots).Select().Limit(2).Documents(ctx), func(*firestore.DocumentSnapshot) error {
		depots++
		return nil
	})
	if err != nil {
		return nil, wrap(err, "depots")
	}
	var fleet []domain.Drone
	err = each(s.dronesOf(depot, depots).Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
		if d := decodeDrone(doc); d.err == nil && doc.ReadTime.Sub(d.SeenAt) <= maxSilence {
			fleet = append(fleet, d.Drone)
		}
		return nil
	})
	return fleet, wrap(err, "drones of depot %s", depot)
}

// dronesOf queries a depot's drones: all of them if it is the only depot.
func (s *Store) dronesOf(depot domain.DepotID, depots int) firestore.Query {
	drones := s.client.Collection(Drones).Query
	if depots > 1 {
		drones = drones.Where("homeDepotId", "==", string(depot))
	}
	return drones
}

func decodeWarehouse(snap *firestore.DocumentSnapshot) (domain.Warehouse, error) {
	w, err := warehouseCodec.decode(snap)
	w.ID = domain.WarehouseID(snap.Ref.ID)
	return w, err
}

func decodeDepot(snap *firestore.DocumentSnapshot) (domain.Depot, error) {
	// People write depots; a message cannot name one with an illegal id.
	if err := domain.CheckID(snap.Ref.ID); err != nil {
		return domain.Depot{}, &MalformedError{fmt.Errorf("document %s: its id %w", snap.Ref.Path, err)}
	}
	d, err := depotCodec.decode(snap)
	d.ID = domain.DepotID(snap.Ref.ID)
	return d, err
}

func decodeCycle(snap *firestore.DocumentSnapshot) (domain.Cycle, error) {
	c, err := cycleCodec.decode(snap)
	c.ID = domain.CycleID(snap.Ref.ID)
	return c, err
}

func decodeKnownDrone(snap *firestore.DocumentSnapshot) (domain.Drone, error) {
	d := decodeDrone(snap)
	return d.Drone, d.err
}

// each calls f on every document of a query.
func each(it *firestore.DocumentIterator, f func(*firestore.DocumentSnapshot) error) error {
	defer it.Stop()
	for {
		doc, err := it.Next()
		if errors.Is(err, iterator.Done) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := f(doc); err != nil {
			return err
		}
	}
}

// collect decodes every document of a query. Beside a *MalformedError it returns all
// documents that can be decoded.
func collect[T any](it *firestore.DocumentIterator, decode func(*firestore.DocumentSnapshot) (T, error)) ([]T, error) {
	var list []T
	var malformed []error
	err := each(it, func(doc *firestore.DocumentSnapshot) error {
		v, err := decode(doc)
		if err != nil {
			malformed = append(malformed, err)
			return nil
		}
		list = append(list, v)
		return nil
	})
	if err != nil { // the list is not complete
		return list, err
	}
	return list, some(malformed)
}
