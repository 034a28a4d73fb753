package manager

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

const (
	// intervalsWithoutCycle is how many intervals a depot may be without a cycle.
	intervalsWithoutCycle = 3
	// depotsNamed is how many depots an error names.
	depotsNamed = 10
)

// DepotsWatch returns a function that says which depots have had no cycle for three
// intervals while orders wait, as the manager last saw, nil if none (F-OPT-06). It is
// nil if the manager watches no depots. Calling it costs nothing; watching costs what
// Store.IdleDepots does, once in every interval.
func (m *Manager) DepotsWatch() func() error {
	if m.cfg.CycleInterval <= 0 {
		return nil
	}
	return m.idleDepots
}

func (m *Manager) idleDepots() error {
	idle := m.idle.Load()
	if idle == nil || len(*idle) == 0 {
		return nil
	}
	ids := textOf(*idle)
	more := ""
	if n := len(ids) - depotsNamed; n > 0 {
		ids, more = ids[:depotsNamed], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("no cycle for %s while orders wait, at depot %s%s; read the logs of the optimizers, and see with \"statemanager locks list\" who holds the lock optimizer:cycle:DEPOT",
		intervalsWithoutCycle*m.cfg.CycleInterval, strings.Join(ids, ", "), more)
}

func textOf(ids []domain.DepotID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	return texts
}

// watchDepots looks in every interval for depots without cycles. It waits before the first
// look for as long as a depot may be without one, because the fleet may just have started.
func (m *Manager) watchDepots(ctx context.Context) {
	ctx = meter.WithOperation(ctx, "depots")
	began := m.clock.Now()
	// Simulated time does not make cycles faster: they take the machine as long.
	interval := time.Duration(float64(m.cfg.CycleInterval) * m.clock.Speed)
	ticker := m.clock.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.Chan():
		}
		if since := m.clock.Now().Add(-intervalsWithoutCycle * interval); !since.Before(began) {
			m.lookForIdleDepots(ctx, since)
		}
	}
}

// lookForIdleDepots notes the depots that have had no cycle since. If the store does not
// answer, the last result stands.
func (m *Manager) lookForIdleDepots(ctx context.Context, since time.Time) {
	idle, err := m.Store.IdleDepots(ctx, since)
	if err != nil {
		if ctx.Err() == nil {
			m.Log.WarnContext(ctx, "search for depots without cycles failed; retrying in the next interval", slog.Any("err", err))
		}
		return
	}
	var before []domain.DepotID
	if last := m.idle.Load(); last != nil {
		before = *last
	}
	m.Meter.SetIdleDepots(textOf(idle))
	for _, id := range idle {
		if !slices.Contains(before, id) {
			m.Log.WarnContext(ctx, "depot has no cycles while orders wait", slog.String("depot_id", string(id)), slog.Time("since", since))
		}
	}
	for _, id := range before {
		if !slices.Contains(idle, id) {
			m.Log.InfoContext(ctx, "depot has cycles again, or no order waits", slog.String("depot_id", string(id)))
		}
	}
	m.idle.Store(&idle) // last: whoever sees it finds the log and the metrics
}
