package firestoretx

import (
	"context"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/domain"
)

// depotsAtOnce bounds the concurrent queries for the cycles of depots.
const depotsAtOnce = 16

// Waits reads what the latest complete cycle of each area, PUBLISHED or EMPTY, found about
// waiting orders (F-ORD-05). Malformed documents are listed.
//
// Cost: 1 + D RPCs and 2 D reads for D depots, however many orders wait.
func (s *Store) Waits(ctx context.Context) (waits domain.Waits, malformed []error, err error) {
	depots, err := s.Depots(ctx)
	if err != nil {
		return waits, nil, err
	}
	malformed = depots.Malformed
	var ids []domain.DepotID
	for _, id := range depots.MalformedIDs { // their earlier cycles still count
		ids = append(ids, domain.DepotID(id))
	}
	for _, d := range depots.Items {
		ids = append(ids, d.ID)
	}
	latest := make([]Listing[domain.Cycle], len(ids))
	g, reading := errgroup.WithContext(ctx)
	g.SetLimit(depotsAtOnce)
	for i, id := range ids {
		g.Go(func() (err error) {
			latest[i], err = s.latestCycle(reading, id)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return waits, malformed, err
	}
	cycles := make(map[domain.DepotID]domain.Cycle, len(ids))
	for i, id := range ids {
		malformed = append(malformed, latest[i].Malformed...)
		if len(latest[i].Items) > 0 {
			cycles[id] = latest[i].Items[0]
		}
	}
	return domain.WaitsOf(ids, cycles), malformed, nil
}

// latestCycle reads the last cycle of a depot that came to a plan. Two indexes serve it:
// depotId and startedAt, outcome and startedAt.
//
// Cost: 1 RPC, 1 read.
func (s *Store) latestCycle(ctx context.Context, depot domain.DepotID) (Listing[domain.Cycle], error) {
	planned := []string{string(domain.CyclePublished), string(domain.CycleEmpty)}
	q := s.client.Collection(Cycles).Where("depotId", "==", string(depot)).Where("outcome", "in", planned).
		OrderBy("startedAt", firestore.Desc).Limit(1)
	var listing Listing[domain.Cycle]
	var err error
	listing.Items, listing.Malformed, err = decodeAll(q.Documents(ctx), cycleCodec.decode)
	return listing, wrap(err, "latest cycle of depot %s", depot)
}
