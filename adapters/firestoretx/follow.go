package firestoretx

import (
	"context"
	"slices"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
)

// Sight is what a follower learns at one moment: documents as they are now, and the ids of those
// that no longer match.
type Sight[T any] struct {
	// Whole says that Now has every document: the first sight after a start.
	Whole bool
	Now   []T
	Gone  []string
	// Malformed are the errors of documents left out of Now, and MalformedIDs their ids.
	Malformed    []error
	MalformedIDs []string
	ReadTime     time.Time
}

// follow calls seen with the documents of a query and then with each change, in commit
// order, until ctx ends or the server ends the listener. It never returns nil. The client
// keeps the documents in memory.
//
// Cost of each Follow method: 1 RPC; a read per document, and one per change.
func follow[T any](ctx context.Context, q firestore.Query, decode func(*firestore.DocumentSnapshot) (T, error), seen func(Sight[T])) error {
	it := q.Snapshots(ctx)
	defer it.Stop()
	for whole := true; ; whole = false {
		snap, err := it.Next()
		if err != nil {
			return err
		}
		sight := Sight[T]{Whole: whole, ReadTime: snap.ReadTime}
		for _, c := range snap.Changes {
			if c.Kind == firestore.DocumentRemoved {
				sight.Gone = append(sight.Gone, c.Doc.Ref.ID)
				continue
			}
			v, err := decode(c.Doc)
			if err != nil {
				sight.Malformed, sight.MalformedIDs = append(sight.Malformed, err), append(sight.MalformedIDs, c.Doc.Ref.ID)
				continue
			}
			sight.Now = append(sight.Now, v)
		}
		seen(sight)
	}
}

// DepotsFollowed is how many depots a Follow method takes: as many as a query of open orders may name.
const DepotsFollowed = 7

// FollowOpenOrders follows the orders that are neither delivered nor cancelled: those that some depots
// plan, or all if none is named.
func (s *Store) FollowOpenOrders(ctx context.Context, depots []domain.DepotID, seen func(Sight[domain.Order])) error {
	return wrap(follow(ctx, ofDepots(s.openOrders(), "planningDepotId", depots), orderCodec.decode, seen), "follow open orders")
}

// ofDepots narrows a query to documents whose field names one of some depots, if any are named.
func ofDepots(q firestore.Query, field string, depots []domain.DepotID) firestore.Query {
	switch len(depots) {
	case 0:
		return q
	case 1:
		return q.Where(field, "==", depots[0])
	}
	return q.Where(field, "in", depots)
}

// FollowDrones follows the drones whose home is one of the depots.
func (s *Store) FollowDrones(ctx context.Context, depots []domain.DepotID, seen func(Sight[domain.Drone])) error {
	return wrap(follow(ctx, s.dronesOf(depots), decodeKnownDrone, seen), "follow drones")
}

func (s *Store) openOrders() firestore.Query {
	open := slices.DeleteFunc(slices.Clone(domain.OrderStatuses), domain.OrderStatus.Final)
	return s.client.Collection(Orders).Where("status", "in", open)
}

// FollowActiveMissions follows the missions that have not ended: those of drones whose home is one of
// the depots, or all if none is named.
func (s *Store) FollowActiveMissions(ctx context.Context, depots []domain.DepotID, seen func(Sight[domain.Mission])) error {
	q := ofDepots(s.where(Missions, "status", string(domain.MissionActive)), homeOfMission, depots)
	return wrap(follow(ctx, q, missionCodec.decode, seen), "follow active missions")
}

// FollowCycles follows the n cycles that began last: those of areas that some depots name, or all if
// none is named.
func (s *Store) FollowCycles(ctx context.Context, depots []domain.DepotID, n int, seen func(Sight[domain.Cycle])) error {
	q := ofDepots(s.client.Collection(Cycles).Query, "depotId", depots).OrderBy("startedAt", firestore.Desc).Limit(n)
	return wrap(follow(ctx, q, cycleCodec.decode, seen), "follow cycles")
}

// FollowDecisions follows the decisions judged after since. The set only grows: restart it
// now and then.
func (s *Store) FollowDecisions(ctx context.Context, since time.Time, seen func(Sight[domain.LedgerEntry])) error {
	q := s.client.Collection(Decisions).Where("appliedAt", ">", since)
	return wrap(follow(ctx, q, ledgerCodec.decode, seen), "follow decisions")
}

// FollowAlertAcks follows the n latest acknowledgements of alerts.
func (s *Store) FollowAlertAcks(ctx context.Context, n int, seen func(Sight[domain.AlertAck])) error {
	q := s.client.Collection(AlertAcks).OrderBy("at", firestore.Desc).Limit(n)
	return wrap(follow(ctx, q, alertAckCodec.decode, seen), "follow acknowledgements")
}

// FollowRefusedOrders follows the n latest orders that were refused on their way.
func (s *Store) FollowRefusedOrders(ctx context.Context, n int, seen func(Sight[domain.Refusal])) error {
	q := s.client.Collection(Refusals).Where("topic", "==", "orders").OrderBy("refusedAt", firestore.Desc).Limit(n)
	return wrap(follow(ctx, q, refusalCodec.decode, seen), "follow refused orders")
}

// FollowDepots follows the depots.
func (s *Store) FollowDepots(ctx context.Context, seen func(Sight[domain.Depot])) error {
	return wrap(follow(ctx, s.client.Collection(Depots).Query, decodeDepot, seen), "follow depots")
}

// FollowWarehouses follows the warehouses.
func (s *Store) FollowWarehouses(ctx context.Context, seen func(Sight[domain.Warehouse])) error {
	return wrap(follow(ctx, s.client.Collection(Warehouses).Query, warehouseCodec.decode, seen), "follow warehouses")
}

// FollowEvents follows the events after since, by the clocks of the State Managers that wrote them.
// The set only grows, so restart it now and then.
func (s *Store) FollowEvents(ctx context.Context, since time.Time, seen func(Sight[domain.Event])) error {
	q := s.ofShards(s.client.Collection(Events).Where("time", ">", since))
	return wrap(follow(ctx, q, eventCodec.decode, seen), "follow events")
}

// DronesOf reads drones by id; those that do not exist are left out. A *MalformedError
// comes beside the others.
//
// Cost: 1 RPC, a read per id.
func (s *Store) DronesOf(ctx context.Context, ids []domain.DroneID) ([]domain.Drone, error) {
	return many(ctx, s, Drones, ids, decodeKnownDrone)
}

// OrdersOf reads orders as DronesOf does drones.
func (s *Store) OrdersOf(ctx context.Context, ids []domain.OrderID) ([]domain.Order, error) {
	return many(ctx, s, Orders, ids, orderCodec.decode)
}

// MissionsOf reads missions as DronesOf does drones.
func (s *Store) MissionsOf(ctx context.Context, ids []domain.MissionID) ([]domain.Mission, error) {
	return many(ctx, s, Missions, ids, missionCodec.decode)
}
