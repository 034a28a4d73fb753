package webhooks_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/app/webhooks"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/emutest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// F-INT-07: over restarts and crashes of senders, of which two compete, each event is sent at least
// once and the messages about one order arrive in order, although the receiver fails now and then.
func TestSender_LosesNothingOverRestarts(t *testing.T) {
	const steps = 5
	events, restarts := longtest.Size(t, "events", 500, 10_000), longtest.Size(t, "restarts", 4, 20)
	f := newFleet(t)
	target := receive(t, func(http.ResponseWriter, taken) int {
		if rand.IntN(50) == 0 {
			return http.StatusInternalServerError
		}
		return http.StatusNoContent
	})
	f.apply(hook("W", target.URL))

	done := make(chan struct{})
	var senders sync.WaitGroup
	var restarted atomic.Int32
	for range 2 {
		senders.Go(func() {
			for n := 0; ; n++ {
				last := n >= restarts/2
				if f.crash(n%2 == 0, last, done); last {
					return
				}
				restarted.Add(1)
			}
		})
	}
	want := map[string]bool{}
	status := []domain.OrderStatus{"", domain.OrderPending, domain.OrderAssigned, domain.OrderPending, domain.OrderAssigned, domain.OrderInDelivery}
	for first := 0; first < events/steps; first += 100 {
		for step := 1; step <= steps; step++ {
			// The events are spread over the restarts.
			part := restarts * (first*steps + 100*(step-1)) / events
			emutest.Eventually(t, "restarts", func() error {
				if n := int(restarted.Load()); n < part {
					return fmt.Errorf("%d of %d", n, part)
				}
				return nil
			})
			var ids []string
			f.do(f.clients.Firestore.RunTransaction(t.Context(), func(_ context.Context, tx *firestore.Transaction) error {
				ids = nil // of the attempt that commits
				for order := first; order < min(first+100, events/steps); order++ {
					id, err := event(tx, f.clients.Firestore.Collection("events"), fmt.Sprint("O", order), step, status[step-1], status[step])
					if err != nil {
						return err
					}
					ids = append(ids, id)
				}
				return nil
			}))
			for _, id := range ids {
				want[id] = true
			}
		}
	}
	emutest.Eventually(t, "every event", func() error {
		seen := map[string]bool{}
		for _, m := range target.got() {
			seen[m.id] = true
		}
		if len(seen) < len(want) {
			return fmt.Errorf("%d of %d", len(seen), len(want))
		}
		return nil
	})
	close(done)
	senders.Wait()

	got := target.got()
	revision, seen := map[string]int64{}, map[string]bool{}
	for _, m := range got {
		if seen[m.id] {
			continue // again
		}
		seen[m.id] = true
		if !want[m.id] {
			t.Errorf("event %s is not known", m.id)
		}
		if m.Data.Revision != revision[m.Data.OrderID]+1 {
			t.Errorf("order %s: revision %d came after %d", m.Data.OrderID, m.Data.Revision, revision[m.Data.OrderID])
		}
		revision[m.Data.OrderID] = m.Data.Revision
	}
	if n := target.most.Load(); n > 10 { // of two processes, one of which may not know yet that it lost the lock
		t.Errorf("%d requests at once", n)
	}
	t.Logf("%d events, %d restarts: %d messages taken, %d of them again", len(want), restarted.Load(), len(got), len(got)-len(seen))
}

// crashed is how long the lock of a sender that crashes stays held. A busy machine must be able to
// extend it in a third of that.
const crashed = 3 * time.Second

// crash runs a sender for a while, or until done is closed if it is the last. A hard crash cuts its
// connection first, so that it cannot release its lock.
func (f *fleet) crash(hard, last bool, done <-chan struct{}) {
	clients, err := connect.Open(f.t.Context(), f.hosts, meter.New())
	if err != nil {
		f.t.Error(err)
		return
	}
	ctx, stop := context.WithCancel(f.t.Context())
	var running sync.WaitGroup
	cfg := f.config(clients)
	cfg.LockOptions = []lock.Option{lock.WithTTL(crashed)}
	running.Go(func() { webhooks.New(cfg).Run(ctx) })
	life := time.Duration(200+rand.IntN(400)) * time.Millisecond
	if last {
		life = time.Hour
	}
	select {
	case <-done:
	case <-time.After(life):
	}
	if hard && !last {
		_ = clients.Close()
	}
	stop()
	running.Wait()
	if !hard || last {
		_ = clients.Close()
	}
}
