package firestoretx

import (
	"context"
	"sync"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/domain"
)

// Census counts the drones and open orders of the fleet.
type Census struct {
	Orders map[domain.OrderStatus]int64 // open ones
	Held   int64                        // pending orders that wait for an operator
	Drones map[domain.DroneStatus]int64
	// Unregistered counts the drones that reported but are not registered.
	Unregistered int64
	// Overdue counts the open orders that are past their deadline, by priority.
	Overdue map[domain.Priority]int64
	// Waiting is when the oldest order that waits for a drone was created, by priority. A priority
	// without such orders is absent.
	Waiting map[domain.Priority]time.Time
}

// censusAtOnce bounds the concurrent queries of a census.
const censusAtOnce = 4

// Census counts drones and open orders by status. The counts are not of one moment: an order that
// changes meanwhile may count twice or not at all. Closed orders are not counted, because their
// number only grows.
//
// Cost: 21 RPCs; 21 reads, and one for each 1,000 drones and open orders.
func (s *Store) Census(ctx context.Context) (Census, error) {
	c := Census{Orders: make(map[domain.OrderStatus]int64), Drones: make(map[domain.DroneStatus]int64), Overdue: make(map[domain.Priority]int64), Waiting: make(map[domain.Priority]time.Time)}
	var mu sync.Mutex // of c
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(censusAtOnce)
	counting := func(q firestore.Query, note func(int64)) {
		g.Go(func() error {
			n, err := count(ctx, q)
			mu.Lock()
			defer mu.Unlock()
			note(n)
			return err
		})
	}
	pending := s.where(Orders, "status", string(domain.OrderPending))
	for _, status := range domain.OrderStatuses {
		if !status.Final() {
			counting(s.where(Orders, "status", string(status)), func(n int64) { c.Orders[status] = n })
		}
	}
	counting(pending.Where("held", "==", true), func(n int64) { c.Held = n })
	for _, status := range domain.DroneStatuses {
		counting(s.where(Drones, "status", string(status)), func(n int64) { c.Drones[status] = n })
	}
	counting(s.unregistered(), func(n int64) { c.Unregistered = n })
	for _, priority := range domain.Priorities {
		counting(s.openOrders().Where("late", "==", true).Where("priority", "==", priority.String()), func(n int64) { c.Overdue[priority] = n })
		g.Go(func() error {
			created, err := oldest(ctx, s.ofShards(pending).Where("held", "==", false).Where("priority", "==", priority.String()))
			if !created.IsZero() {
				mu.Lock()
				defer mu.Unlock()
				c.Waiting[priority] = created
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Census{}, wrap(err, "census")
	}
	s.strangers.keep(c.Unregistered)
	return c, nil
}

// oldest is when the oldest of the orders was created; the zero time if there is none.
func oldest(ctx context.Context, orders firestore.Query) (created time.Time, err error) {
	err = each(orders.OrderBy("createdAt", firestore.Asc).Limit(1).Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
		created, _ = doc.Data()["createdAt"].(time.Time) // a malformed one is named elsewhere
		return nil
	})
	return created, err
}
