package firestoretx

import (
	"context"
	"slices"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/domain"
)

// RemarkableEvents lists events of a period, the newest first: what people did, what a sweep found
// (late orders, silent drones, failed missions), and drones that reported a fault. Each of the two
// kinds of queries returns at most that many events.
//
// Cost: 2 RPCs, 4 where events are sharded; a read per event.
func (s *Store) RemarkableEvents(ctx context.Context, from, to time.Time, most int) (Listing[domain.Event], error) {
	var found Listing[domain.Event]
	events := s.client.Collection(Events)
	for _, q := range []firestore.Query{
		events.Where("cause", "in", []domain.Cause{domain.CauseOperator, domain.CauseSweeper}),
		events.Where("entity", "==", string(domain.EntityDrone)).Where("to", "in", []domain.DroneStatus{domain.DroneProblem, domain.DroneEmergency}),
	} {
		q = q.Where("time", ">=", from).Where("time", "<", to).OrderBy("time", firestore.Desc).Limit(most)
		for _, part := range s.ofSome(q, 2) {
			some, malformed, err := decodeAll(part.Documents(ctx), eventCodec.decode)
			if err != nil {
				return found, wrap(err, "events from %s to %s", from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
			}
			found.Items, found.Malformed = append(found.Items, some...), append(found.Malformed, malformed...)
		}
	}
	slices.SortFunc(found.Items, func(a, b domain.Event) int { return b.Time.Compare(a.Time) })
	return found, nil
}
