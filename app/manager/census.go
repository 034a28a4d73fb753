package manager

import (
	"context"
	"log/slog"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

const (
	// censusTimeout is how long a census may take.
	censusTimeout = 10 * time.Second
	// censusKept is how long a census is shown, at least four intervals. A single failure, or
	// another sweeper, then leaves no gap, and an outage leaves no old figures.
	censusKept = time.Minute
)

// takeCensus counts drones and orders for the metrics while this manager is the sweeper: when it
// becomes it, and then every interval. If every manager counted, the cost would grow with the square
// of the fleet.
func (m *Manager) takeCensus(ctx context.Context) {
	if m.cfg.CensusInterval < 0 {
		return
	}
	ctx = meter.WithOperation(ctx, "census")
	ticker := time.NewTicker(m.cfg.CensusInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.term.began:
			ticker.Reset(m.cfg.CensusInterval)
		case <-ticker.C:
		}
		if !m.term.lasts() {
			continue
		}
		taking, end := context.WithTimeout(ctx, censusTimeout)
		census, err := m.Store.Census(taking)
		end()
		switch {
		case err == nil:
			m.Meter.Fleet.Stands(m.figures(census), max(censusKept, 4*m.cfg.CensusInterval))
		case ctx.Err() == nil:
			m.Log.WarnContext(ctx, "drones and orders not counted for the metrics; the next census will retry", slog.Any("err", err))
		}
	}
}

// figures are a census as metrics show it, with the ages of orders by the fleet's clock.
func (m *Manager) figures(c firestoretx.Census) meter.Standing {
	s := meter.Standing{Orders: map[string]int64{}, Held: c.Held, Drones: map[string]int64{}, Unregistered: c.Unregistered, Overdue: map[string]int64{}, Waiting: map[string]func() time.Duration{}}
	for status, n := range c.Orders {
		s.Orders[string(status)] = n
	}
	for status, n := range c.Drones {
		s.Drones[string(status)] = n
	}
	for _, p := range domain.Priorities {
		s.Overdue[p.String()] = c.Overdue[p]
		created, waits := c.Waiting[p]
		s.Waiting[p.String()] = func() time.Duration {
			if !waits {
				return 0
			}
			return max(m.clock.Since(created), 0)
		}
	}
	return s
}
