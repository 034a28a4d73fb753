package firestoretx

import (
	"context"
	"slices"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// AssignMission judges a decision and, if it is accepted, creates or amends the mission.
// One transaction writes ledger entry, mission, drone, orders, events and the highest
// fence. The first to commit wins, whichever cycle began first.
//
// The entry is the decision's line in the ledger, from now or from an earlier delivery. The error
// is a *policy.Rejection (DECISION_CONFLICT) if another decision took the id, otherwise a failure
// of the store.
//
// Cost for n orders: 3 RPCs; at most 3 + n reads, 2(3 + n) + 1 writes, and a read for each
// warehouse on the route. A fence that is not the highest applied, as in a cycle's first decision,
// adds 1 RPC and 2 reads; a decision without a depot adds 1 RPC and 1 read. An amendment adds 1
// read, and 1 RPC and n reads to take n orders away. A decision without orders, or one that lands
// at no depot known from the last 10 s, adds 1 RPC and a read of each depot.
func (s *Store) AssignMission(ctx context.Context, d domain.Decision, via policy.Delivery) (domain.LedgerEntry, error) {
	var verdict policy.Verdict
	var depots []domain.Depot
	if policy.Lands(d.Route) {
		depots = s.knownDepots(ctx)
	}
	err := s.transactFenced(ctx, func(t *fencedTxn) error {
		state, err := t.readDecisionState(d, depots)
		if err != nil {
			return err
		}
		if verdict, err = s.assignment.AssignMission(state, d, via, t.now); err != nil || verdict.Replay {
			return err
		}
		entry := ledgerCodec.encode(verdict.Entry)
		entry[expireAt] = s.expiry(Decisions, t.now)
		if err := t.Create(s.doc(Decisions, string(d.ID)), entry); err != nil {
			return err
		}
		if verdict.Fence != "" {
			if err := t.writeFence(verdict); err != nil {
				return err
			}
		}
		return t.write(verdict.Change)
	})
	if err != nil {
		return domain.LedgerEntry{}, wrap(err, "decision %s", d.ID)
	}
	return verdict.Entry, nil
}

// readDecisionState reads everything that a decision is judged by. It takes one round trip, except
// for the first decision of a cycle. known are the depots from an earlier reading.
func (t *fencedTxn) readDecisionState(d domain.Decision, known []domain.Depot) (policy.DecisionState, error) {
	s := t.store
	ledger, control, drone := s.doc(Decisions, string(d.ID)), s.doc(Control, controlID(d.DepotID)), s.doc(Drones, string(d.DroneID))
	warehouses := pickupWarehouses(d.Route)
	read := slices.Concat([]*firestore.DocumentRef{ledger, control, drone}, refs(s, Orders, d.OrderIDs), refs(s, Warehouses, warehouses))
	if d.Amends() {
		read = append(read, s.doc(Missions, string(d.AmendsMissionID)))
	}
	snaps, err := t.get(read...)
	if err != nil {
		return policy.DecisionState{}, err
	}
	var state policy.DecisionState
	if snaps[0].Exists() {
		entry, err := ledgerCodec.decode(snaps[0])
		if err != nil {
			return state, err
		}
		state.Ledger = &entry
	}
	fence, err := decodeFence(snaps[1])
	if err != nil {
		return state, err
	}
	state.Fences = policy.Fences{d.DepotID: fence}
	if state.WarehousesChanged, err = decodeDeletions(snaps[1]); err != nil {
		return state, err
	}
	t.drones[d.DroneID] = decodeDrone(snaps[2])
	if state.Drone, err = t.drone(d.DroneID); err != nil {
		return state, err
	}
	state.OrdersWritten = make(map[domain.OrderID]time.Time, len(d.OrderIDs))
	orders, rest := snaps[3:3+len(d.OrderIDs)], snaps[3+len(d.OrderIDs):]
	for _, snap := range orders {
		if err := t.addOrder(snap); err != nil {
			return state, err
		}
		state.OrdersWritten[domain.OrderID(snap.Ref.ID)] = snap.UpdateTime
	}
	state.Warehouses = make(map[domain.WarehouseID]domain.Warehouse, len(warehouses))
	for _, snap := range rest[:len(warehouses)] {
		if w, err := warehouseCodec.decode(snap); snap.Exists() && err == nil {
			state.Warehouses[w.ID] = w
		}
	}
	if d.Amends() {
		if state.Mission, err = t.addAmended(snaps[len(snaps)-1]); err != nil {
			return state, err
		}
	}
	state.Orders = t.orders
	state.Depots = known
	if s.assignment.NeedsDepots(state, d, known) {
		depots, err := readDepots(t.Documents(s.client.Collection(Depots)), "")
		if err != nil {
			return state, err
		}
		state.Depots = depots.known
	}
	return state, t.readFences(&state, d)
}

// pickupWarehouses are the warehouses that a route's pickups name, each once.
func pickupWarehouses(route []domain.Waypoint) (ids []domain.WarehouseID) {
	for _, stop := range route {
		if id := stop.WarehouseID; stop.Type == domain.WaypointWarehousePickup && id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// addAmended reads the mission that a decision amends, and those of its orders that the decision
// does not list. It returns nil if the mission does not exist.
func (t *txn) addAmended(snap *firestore.DocumentSnapshot) (*domain.Mission, error) {
	if !snap.Exists() {
		return nil, nil
	}
	m, err := missionCodec.decode(snap)
	if err != nil {
		return nil, err
	}
	t.missions[m.ID] = m
	var rest []domain.OrderID
	for _, id := range m.OrderIDs {
		if _, known := t.orders[id]; !known {
			rest = append(rest, id)
		}
	}
	return &m, t.readOrders(rest...)
}
