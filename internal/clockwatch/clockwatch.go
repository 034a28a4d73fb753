package clockwatch

import (
	"context"
	"log/slog"
	"time"

	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
)

// clockInterval is how often a process measures its clock. A readiness request measures
// it too.
const clockInterval = time.Minute

// Watch measures the local clock against Firestore's at once and then every minute until
// ctx ends. It calls measured, if not nil, with each reading.
//
// Cost: 5 RPCs and 5 reads a minute.
func Watch(ctx context.Context, locks lock.Store, m *meter.Meter, log *slog.Logger, measured func(lock.ClockReport)) {
	ctx = meter.WithOperation(ctx, "clock")
	ticker := time.NewTicker(clockInterval)
	defer ticker.Stop()
	for {
		reading, err := locks.CheckClock(ctx)
		switch {
		case err == nil:
			m.ClockOffset.Set(reading.Offset)
			if measured != nil {
				measured(reading)
			}
			if reading.Level != lock.ClockOK {
				log.WarnContext(ctx, "the local clock is off; synchronise it (NTP)", slog.Duration("offset", reading.Offset))
			}
		case ctx.Err() == nil:
			log.WarnContext(ctx, "clock not measured; retrying in a minute", slog.Any("err", err))
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}
