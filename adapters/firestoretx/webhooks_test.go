package firestoretx

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/deploy"
	"github.com/dronefleet/dronefleet/domain"
	firestoreemu "github.com/dronefleet/dronefleet/emulator/firestore"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// F-INT-07: the events of orders are followed with production's indexes, those of others are not read,
// and what was committed until the time that comes with a sight has been seen. The same holds for
// sharded events.
func TestFollowOrderEvents_SeesEveryEventOfOrders(t *testing.T) {
	for name, fleet := range map[string]struct {
		indexes []byte
		sharded bool
	}{"default": {deploy.FirestoreIndexes, false}, "sharded": {deploy.ShardedFirestoreIndexes, true}} {
		t.Run(name, func(t *testing.T) {
			emutest.ServeFirestore(t, firestoreemu.Options{Indexes: fleet.indexes})
			s := New(emutest.Clients(t).Firestore, Config{Sharded: fleet.sharded})
			began := time.Now()
			add := func(kind domain.EntityKind, n int) {
				t.Helper()
				for i := range n {
					e := domain.Event{Entity: kind, ID: fmt.Sprint("O", i), Revision: 1, To: "PENDING", Time: time.Now(), OrderID: domain.OrderID(fmt.Sprint("O", i))}
					if _, _, err := s.client.Collection(Events).Add(t.Context(), s.encodeEvent(e)); err != nil {
						t.Fatal(err)
					}
				}
			}
			add(domain.EntityOrder, 30)
			add(domain.EntityMission, 30)
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			seen, more, last := map[string]time.Time{}, false, time.Time{}
			err := s.FollowOrderEvents(ctx, began.Add(-time.Minute), func(sight Sight[CommittedEvent], through time.Time) {
				for _, e := range sight.Now {
					if e.CommittedAt.Before(began) || e.CommittedAt.Before(last) && !sight.Whole {
						t.Errorf("event %s of %s is seen after %s", e.DocumentID, e.CommittedAt, last)
					}
					if e.Entity != domain.EntityOrder {
						t.Errorf("an event of a %s is read", e.Entity)
					}
					seen[e.DocumentID] = e.CommittedAt
				}
				last = through
				if len(seen) == 30 && !more {
					more = true
					add(domain.EntityOrder, 5)
				}
				if len(seen) == 35 {
					stop()
				}
			})
			if len(seen) != 35 || !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("%d events, %v", len(seen), err)
			}
		})
	}
}
