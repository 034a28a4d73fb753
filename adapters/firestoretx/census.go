package firestoretx

import (
	"context"
	"slices"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/domain"
)

// Census is how the fleet stands.
type Census struct {
	Orders map[domain.OrderStatus]int64 // those that are not over
	Held   int64                        // pending orders that wait for an operator
	Drones map[domain.DroneStatus]int64
	// Waiting is when the oldest order that waits for a drone was created, by priority;
	// absent if none does.
	Waiting map[domain.Priority]time.Time
}

// censusAtOnce bounds the concurrent queries of a census.
const censusAtOnce = 4

// Census counts drones and open orders by status. Each count is of its own moment: an order
// that changes meanwhile may count twice or not at all. Orders that are over are not
// counted; their number only grows.
//
// Cost: 17 RPCs; 17 reads, and one for each 1,000 drones and open orders.
func (s *Store) Census(ctx context.Context) (Census, error) {
	open := slices.DeleteFunc(slices.Clone(domain.OrderStatuses), domain.OrderStatus.Final)
	pending := s.where(Orders, "status", string(domain.OrderPending))
	orders, drones := make([]int64, len(open)), make([]int64, len(domain.DroneStatuses))
	waiting := make([]time.Time, len(domain.Priorities))
	var c Census
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(censusAtOnce)
	for i, status := range open {
		g.Go(func() (err error) { orders[i], err = count(ctx, s.where(Orders, "status", string(status))); return err })
	}
	g.Go(func() (err error) { c.Held, err = count(ctx, pending.Where("held", "==", true)); return err })
	for i, status := range domain.DroneStatuses {
		g.Go(func() (err error) { drones[i], err = count(ctx, s.where(Drones, "status", string(status))); return err })
	}
	for i, priority := range domain.Priorities {
		g.Go(func() (err error) {
			waiting[i], err = oldest(ctx, pending.Where("held", "==", false).Where("priority", "==", priority.String()))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return Census{}, wrap(err, "census")
	}
	c.Orders, c.Drones, c.Waiting = make(map[domain.OrderStatus]int64), make(map[domain.DroneStatus]int64), make(map[domain.Priority]time.Time)
	for i, status := range open {
		c.Orders[status] = orders[i]
	}
	for i, status := range domain.DroneStatuses {
		c.Drones[status] = drones[i]
	}
	for i, priority := range domain.Priorities {
		if !waiting[i].IsZero() {
			c.Waiting[priority] = waiting[i]
		}
	}
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
