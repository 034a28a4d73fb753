package devrun

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// status keeps the user informed: one redrawn line on a terminal, a line every
// five seconds elsewhere, and one warning if the machine falls behind.
type status struct {
	out      io.Writer
	terminal bool
	meter    *meter.Meter
	store    *firestoretx.Store
	now      func() time.Time
	began    time.Time // simulated
	speed    float64
	pace     func() PaceReport
}

const (
	redrawEvery = 500 * time.Millisecond
	printEvery  = 5 * time.Second
)

// run prints until ctx ends.
func (s status) run(ctx context.Context) {
	every := printEvery
	if s.terminal {
		every = redrawEvery
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var last int64
	lastAt := time.Now()
	started, warned := lastAt, false
	var orders map[domain.OrderStatus]int64
	var counting pacer
	for {
		select {
		case <-ctx.Done():
			fmt.Fprint(s.out, clearing(s.terminal))
			return
		case <-ticker.C:
		}
		if pace := s.pace(); pace.Behind && !warned && time.Since(started) > paceGrace {
			warned = true
			fmt.Fprintf(s.out, "%s%6s  %s\n", clearing(s.terminal), s.now().Sub(s.began).Truncate(time.Second), pace.warning())
		}
		applied := s.applied(pubsubio.TopicTelemetry)
		rate := float64(applied-last) / time.Since(lastAt).Seconds()
		last, lastAt = applied, time.Now()
		if began := time.Now(); counting.due(began) {
			counts, err := s.store.OrderCounts(meter.WithOperation(ctx, "status"))
			if err != nil {
				continue // the run is ending, or the next look succeeds
			}
			orders = counts
			counting.did(began, time.Now())
		}
		line := fmt.Sprintf("%6s  telemetry %.0f/s  orders: %d pending, %d assigned, %d aboard, %d delivered  missions: %d (%d refused)  cycles: %d  p99 %.0f ms",
			s.now().Sub(s.began).Truncate(time.Second), rate,
			orders[domain.OrderPending], orders[domain.OrderAssigned], orders[domain.OrderInDelivery], orders[domain.OrderDelivered],
			s.applied(pubsubio.TopicDecisions), s.rejected(pubsubio.TopicDecisions), s.meter.Cycles.Count(meter.CycleRun),
			millis(s.meter.Latency(pubsubio.TopicTelemetry).Quantile(0.99))/s.speed)
		if s.terminal {
			fmt.Fprint(s.out, clearing(true)+unwrapped(line))
		} else {
			fmt.Fprintln(s.out, line)
		}
	}
}

// pacer keeps what takes ever longer to a share of the time: the embedded server
// counts a hundred thousand orders in half a second, which is how often the line is
// redrawn. The zero value is ready to use.
type pacer struct{ next time.Time }

// leastPause is how many times as long as it took the next must wait.
const leastPause = 20

func (p *pacer) due(now time.Time) bool { return !now.Before(p.next) }

func (p *pacer) did(began, ended time.Time) { p.next = ended.Add(leastPause * ended.Sub(began)) }

// unwrapped is a line that a terminal too narrow for it cuts off: clearing takes
// away one row.
func unwrapped(line string) string { return "\x1b[?7l" + line + "\x1b[?7h" }

// clearing is what takes away the line that a terminal shows.
func clearing(terminal bool) string {
	if terminal {
		return "\r\x1b[K"
	}
	return ""
}

func (s status) applied(kind string) int64 {
	return s.meter.Settled()[meter.Settlement{Kind: kind, Outcome: meter.Applied}]
}

func (s status) rejected(kind string) int64 {
	var n int64
	for k, v := range s.meter.Settled() {
		if k.Kind == kind && k.Outcome == meter.Rejected {
			n += v
		}
	}
	return n
}
