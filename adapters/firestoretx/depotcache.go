package firestoretx

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/dronefleet/dronefleet/domain"
)

const (
	// depotsRemembered is how long one reading of the depots serves. The sweeper finds another
	// depot for an order given to one that was just deleted.
	depotsRemembered = 10 * time.Second
	// depotsTimeout is how long one reading of the depots may take.
	depotsTimeout = 10 * time.Second
)

// depotCache holds the depots that can plan orders. Concurrent callers share one reading.
type depotCache struct {
	reading singleflight.Group

	mu     sync.Mutex
	depots []domain.Depot
	readAt time.Time // machine time
}

// fresh are the depots read lately; none if they must be read.
func (c *depotCache) fresh() []domain.Depot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.readAt) > depotsRemembered {
		return nil
	}
	return c.depots
}

func (c *depotCache) keep(depots []domain.Depot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.depots, c.readAt = depots, time.Now()
}

// knownDepots are the depots as of at most depotsRemembered ago; none if they cannot be
// read.
func (s *Store) knownDepots(ctx context.Context) []domain.Depot {
	depots, err := s.planningDepots(ctx)
	if err != nil {
		return nil // the transaction reads them, and fails if it cannot
	}
	return depots
}

// planningDepots are the depots that can plan orders, at most depotsRemembered old. An
// empty answer is not cached.
func (s *Store) planningDepots(ctx context.Context) ([]domain.Depot, error) {
	if depots := s.depots.fresh(); len(depots) > 0 {
		return depots, nil
	}
	read := s.depots.reading.DoChan("", func() (any, error) {
		// Others wait for it, so it does not end with the caller that began it.
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), depotsTimeout)
		defer cancel()
		listing, err := s.Depots(shared)
		if err == nil {
			s.depots.keep(listing.Items)
		}
		return listing.Items, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-read:
		return r.Val.([]domain.Depot), r.Err
	}
}
