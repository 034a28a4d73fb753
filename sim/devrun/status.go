package devrun

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
)

// status keeps the user informed: a table of one row that is redrawn on a
// terminal, a line every five seconds elsewhere, and one warning if the machine
// falls behind.
type status struct {
	console *console
	meter   *meter.Meter
	store   *firestoretx.Store
	now     func() time.Time
	began   time.Time // simulated
	speed   float64
	pace    func() PaceSummary
}

const (
	redrawEvery = 500 * time.Millisecond
	printEvery  = 5 * time.Second
	// latencyOver is the time whose reports the status shows the latency of. Over the
	// whole run, a slow start would hide the rest.
	latencyOver = 30 * time.Second
)

// run prints until ctx ends.
func (s status) run(ctx context.Context) {
	every := printEvery
	if s.console.terminal {
		every = redrawEvery
	}
	var counts storeCounts
	var counting sync.WaitGroup
	counting.Go(func() { countStore(ctx, s.store, &counts) })
	defer counting.Wait()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	latency := latestOf{histogram: s.meter.Latency(pubsubio.TopicTelemetry), over: latencyOver}
	var last int64
	lastAt := time.Now()
	started, warned := lastAt, false
	for {
		select {
		case <-ctx.Done():
			s.console.show()
			return
		case <-ticker.C:
		}
		if pace := s.pace(); pace.Behind && !warned && time.Since(started) > paceGrace {
			warned = true
			s.console.print(8, fmt.Sprintf("%6s  %s", s.elapsed(), pace.warning()))
		}
		applied := s.meter.Settled()[meter.Settlement{Kind: pubsubio.TopicTelemetry, Outcome: meter.Applied}]
		row := statusRow{
			elapsed: s.elapsed(), reportsPerSecond: float64(applied-last) / time.Since(lastAt).Seconds(),
			storeCounts: counts.copy(), cycles: s.meter.Cycles.Count(meter.CycleRun),
			p99: time.Duration(float64(latency.look(time.Now()).Quantile(0.99)) / s.speed),
		}
		last, lastAt = applied, time.Now()
		if s.console.terminal {
			s.console.show(row.table(time.Now())...)
		} else {
			s.console.print(8, row.line(time.Now()))
		}
	}
}

func (s status) elapsed() time.Duration { return s.now().Sub(s.began).Truncate(time.Second) }

// latestOf returns what a histogram has recorded lately.
type latestOf struct {
	histogram *meter.Histogram
	over      time.Duration
	looks     []look
}

// look is what the histogram had recorded at a time.
type look struct {
	at       time.Time
	recorded *meter.Histogram
}

// look returns what was recorded since the latest look that is at least as old as over, or
// since the start if there is none.
func (l *latestOf) look(now time.Time) *meter.Histogram {
	for len(l.looks) > 1 && now.Sub(l.looks[1].at) >= l.over {
		l.looks = l.looks[1:]
	}
	earlier := &meter.Histogram{}
	if len(l.looks) > 0 && now.Sub(l.looks[0].at) >= l.over {
		earlier = l.looks[0].recorded
	}
	recorded := l.histogram.Since(&meter.Histogram{})
	l.looks = append(l.looks, look{now, recorded})
	return recorded.Since(earlier)
}

// countStore keeps the counts up to date until ctx ends. Counting takes longer the
// more there is to count, so it waits ten times as long as it took.
func countStore(ctx context.Context, store *firestoretx.Store, counts *storeCounts) {
	ctx = meter.WithOperation(ctx, "status")
	for {
		began := time.Now()
		orders, err := store.OrderCounts(ctx)
		var decisions map[domain.Outcome]int64
		if err == nil {
			decisions, err = store.DecisionCounts(ctx)
		}
		if err == nil { // else the counts grow old, and the status says so
			counts.set(orders, decisions, time.Now())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(countPause(time.Since(began))):
		}
	}
}

// countPause is how long counting pauses after it took some time.
func countPause(took time.Duration) time.Duration { return max(redrawEvery, 10*took) }

// storeCounts is what the store held at some time.
type storeCounts struct {
	mu        sync.Mutex
	orders    map[domain.OrderStatus]int64
	decisions map[domain.Outcome]int64
	at        time.Time // zero: nothing was counted yet
}

func (c *storeCounts) set(orders map[domain.OrderStatus]int64, decisions map[domain.Outcome]int64, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders, c.decisions, c.at = orders, decisions, at
}

func (c *storeCounts) copy() *storeCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &storeCounts{orders: c.orders, decisions: c.decisions, at: c.at}
}

// oldCounts is the age from which the status says how old its counts are.
const oldCounts = 3 * time.Second

// age says how old the counts are; empty while they are fresh.
func (c *storeCounts) age(now time.Time) string {
	switch old := now.Sub(c.at); {
	case c.at.IsZero():
		return "counts: not known yet"
	case old >= oldCounts:
		return fmt.Sprintf("counts: %s old", old.Truncate(time.Second))
	}
	return ""
}

// statusRow is one look at the run.
type statusRow struct {
	*storeCounts
	elapsed          time.Duration // simulated
	reportsPerSecond float64       // machine time
	cycles           int64
	p99              time.Duration // machine time, over latencyOver
}

// line is the row for a log.
func (r statusRow) line(now time.Time) string {
	text := fmt.Sprintf("%6s  telemetry %.0f/s  orders: %d pending, %d assigned, %d aboard, %d delivered  decisions: %d applied, %d refused  cycles: %d  p99 %.0f ms",
		r.elapsed, r.reportsPerSecond,
		r.orders[domain.OrderPending], r.orders[domain.OrderAssigned], r.orders[domain.OrderInDelivery], r.orders[domain.OrderDelivered],
		r.decisions[domain.OutcomeApplied], r.decisions[domain.OutcomeRejected], r.cycles, millis(r.p99))
	if age := r.age(now); age != "" {
		text += "  (" + age + ")"
	}
	return text
}

// table is the row under its header, in 79 columns, and the age of old counts.
func (r statusRow) table(now time.Time) []string {
	rows := []string{
		"    TIME  PENDING ASSIGNED ABOARD DELIVERED DECISIONS REFUSED  REPORTS/S P99 ms",
		fmt.Sprintf("%8s  %7d %8d %6d %9d %9d %7d  %9.0f %6.0f", r.elapsed,
			r.orders[domain.OrderPending], r.orders[domain.OrderAssigned], r.orders[domain.OrderInDelivery], r.orders[domain.OrderDelivered],
			r.decisions[domain.OutcomeApplied], r.decisions[domain.OutcomeRejected], r.reportsPerSecond, millis(r.p99)),
	}
	if age := r.age(now); age != "" {
		rows = append(rows, "          "+age)
	}
	return rows
}
