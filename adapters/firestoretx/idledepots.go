package firestoretx

import (
	"context"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
)

// waitingLooked is how many orders IdleDepots reads to find one that waits. It reads the
// newest of those old enough: the oldest may be held for an operator.
const waitingLooked = 10

// IdleDepots lists the depots whose orders wait but for which no cycle that began after
// since came to a plan (F-OPT-06). The orders must have been pending before since. Failed
// cycles do not count; malformed depots are not listed.
//
// Cost: 1 RPC and at most 10 reads if no order has waited that long; else 3 RPCs and a read
// for each depot and each recent cycle, 2 RPCs and no depot with FollowPlaces. For each depot without such cycles 1 RPC and up to
// 10 reads more.
func (s *Store) IdleDepots(ctx context.Context, since time.Time) ([]domain.DepotID, error) {
	old := s.ofShards(s.where(Orders, "status", string(domain.OrderPending))).
		Where("createdAt", "<", since).OrderBy("createdAt", firestore.Desc).Limit(waitingLooked)
	waits, err := s.anyWaits(ctx, old, since)
	if err != nil || !waits {
		return nil, wrap(err, "orders that wait")
	}
	depots, err := s.KnownDepots(ctx)
	if err != nil {
		return nil, err
	}
	planned := map[domain.DepotID]bool{}
	recent := s.client.Collection(Cycles).Where("startedAt", ">", since).Select("depotId", "depotIds", "outcome")
	err = each(recent.Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
		depot, _ := doc.Data()["depotId"].(string)
		area, _ := doc.Data()["depotIds"].([]any)
		outcome, _ := doc.Data()["outcome"].(string)
		switch domain.CycleOutcome(outcome) {
		case domain.CyclePublishing, domain.CyclePublished, domain.CycleEmpty:
			planned[domain.DepotID(depot)] = true
			for _, id := range area {
				depot, _ := id.(string)
				planned[domain.DepotID(depot)] = true
			}
		case domain.CycleLeaseLost, domain.CycleAborted, domain.CycleFailed:
		}
		return nil
	})
	if err != nil {
		return nil, wrap(err, "recent cycles")
	}
	var idle []domain.DepotID
	for _, d := range depots.Items {
		if planned[d.ID] {
			continue
		}
		waits, err := s.anyWaits(ctx, s.waitingFor([]domain.DepotID{d.ID}).Limit(waitingLooked), since)
		if err != nil {
			return nil, wrap(err, "orders of depot %s", d.ID)
		}
		if waits {
			idle = append(idle, d.ID)
		}
	}
	return idle, nil
}

// anyWaits reports whether one of the orders has waited for a drone from before since, and
// for its present depot.
func (s *Store) anyWaits(ctx context.Context, q firestore.Query, since time.Time) (waits bool, _ error) {
	err := each(q.Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
		o, err := orderCodec.decode(doc)
		waits = waits || err == nil && !o.Held && o.PendingSince.Before(since) && o.PlanningSince.Before(since)
		return nil
	})
	return waits, err
}
