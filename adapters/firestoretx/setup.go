package firestoretx

import (
	"context"
	"slices"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// Setup creates depots, warehouses and drones for tests and simulations, without a record. Like
// drones of an earlier version, these drones are not registered. Existing ones keep their state and
// take the given properties.
func (s *Store) Setup(ctx context.Context, depots []domain.Depot, warehouses []domain.Warehouse, drones []domain.Drone) error {
	if len(depots) > 0 {
		defer s.places.keep(nil)
	}
	for _, d := range depots {
		if _, err := s.doc(Depots, string(d.ID)).Set(ctx, depotCodec.encode(d), firestore.MergeAll); err != nil {
			return wrap(err, "depot %s", d.ID)
		}
	}
	for _, w := range warehouses {
		if _, err := s.doc(Warehouses, string(w.ID)).Set(ctx, warehouseCodec.encode(w), firestore.MergeAll); err != nil {
			return wrap(err, "warehouse %s", w.ID)
		}
	}
	for some := range slices.Chunk(drones, 200) { // of a transaction
		if err := s.setupDrones(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) setupDrones(ctx context.Context, drones []domain.Drone) error {
	ids := make([]domain.DroneID, len(drones))
	for i, d := range drones {
		ids[i] = d.ID
	}
	err := s.transact(ctx, nil, func(t *txn) error {
		if err := t.readDrones(ids...); err != nil {
			return err
		}
		for _, d := range drones {
			existing, err := t.drone(d.ID)
			if err != nil {
				return err
			}
			if err := t.write(policy.SetupDrone(existing, d, t.now)); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap(err, "set up drones")
}

// RecordQuietCycles adds n to the area's count of cycles without orders, and replaces the latest of
// them.
//
// Cost: 1 RPC, 1 write.
func (s *Store) RecordQuietCycles(ctx context.Context, latest domain.Cycle, n int) error {
	latest.ID = domain.QuietCycleID(latest.DepotID)
	doc := map[string]any{expireAt: s.expiry(Cycles, s.now())}
	for _, u := range cycleCodec.all(latest) {
		doc[u.FieldPath[0]] = u.Value
	}
	doc[withoutOrders] = firestore.Increment(n) // other optimizers count too
	_, err := s.doc(Cycles, string(latest.ID)).Set(ctx, doc, firestore.MergeAll)
	return wrap(err, "cycles without orders of depot %s", latest.DepotID)
}

// RecordCycle stores one solve cycle for auditors, replacing an earlier record of it.
//
// Cost: 1 RPC, 1 write.
func (s *Store) RecordCycle(ctx context.Context, c domain.Cycle) error {
	doc := cycleCodec.encode(c)
	doc[expireAt] = s.expiry(Cycles, s.now())
	_, err := s.doc(Cycles, string(c.ID)).Set(ctx, doc)
	return wrap(err, "cycle %s", c.ID)
}
