package meter

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var _ prometheus.Collector = (*Meter)(nil)

// Describe implements prometheus.Collector.
func (m *Meter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range all {
		ch <- d.prometheus
	}
}

// Collect implements prometheus.Collector. Metrics without labels are always present,
// those with labels once they have a value.
func (m *Meter) Collect(ch chan<- prometheus.Metric) {
	m.collectMessages(collector{ch})
	m.collectFirestore(collector{ch})
	m.collectCycles(collector{ch})
	m.collectLocks(collector{ch})
	m.Fleet.collect(collector{ch})
	m.MQTT.collect(collector{ch})
	m.Link.collect(collector{ch})
}

// collector sends metrics to a scrape.
type collector struct{ ch chan<- prometheus.Metric }

func (c collector) count(d desc, n int64, labels ...string) {
	c.ch <- prometheus.MustNewConstMetric(d.prometheus, prometheus.CounterValue, float64(n), labels...)
}

func (c collector) value(d desc, v float64, labels ...string) {
	c.ch <- prometheus.MustNewConstMetric(d.prometheus, prometheus.GaugeValue, v, labels...)
}

// durations sends a histogram with the exemplars of its buckets.
func (c collector) durations(d desc, h *Histogram, b bounds, labels ...string) {
	buckets := map[float64]uint64{}
	h.cumulative(b, func(bound float64, n uint64) { buckets[bound] = n })
	metric := prometheus.MustNewConstHistogram(d.prometheus, uint64(h.Count()), h.Sum().Seconds(), buckets, labels...)
	if exemplars := h.traced(); len(exemplars) > 0 {
		metric = prometheus.MustNewMetricWithExemplars(metric, exemplars...)
	}
	c.ch <- metric
}

func (m *Meter) collectMessages(c collector) {
	for s, n := range m.Settled() {
		c.count(settledTotal, n, s.Kind, s.Outcome, s.Reason)
	}
	for kind, h := range m.latencies() {
		c.durations(publishToCommitSeconds, h, shortBuckets, kind)
	}
	for kind, b := range m.Backlogs() {
		c.value(backlogAgeSeconds, b.Age().Seconds(), kind)
		c.value(backlogMessages, float64(b.Messages()), kind)
	}
	c.count(sweepsTotal, m.Sweeps.Value())
	c.count(sweepsSkippedTotal, m.SweepsSkipped.Value())
	c.count(dueCorrectedTotal, m.DueCorrected.Value())
	c.count(commandsPublishedTotal, m.CommandsPublished.Value())
	c.count(outboxOverflowTotal, m.OutboxOverflow.Value())
	c.count(pickedUpAgainTotal, m.PickedUpAgain.Value())
	c.count(refusalsTotal, m.RefusalsRecorded.Value(), "recorded")
	c.count(refusalsTotal, m.RefusalsCounted.Value(), "counted")
	c.count(refusalsTotal, m.RefusalsLost.Value(), "lost")
	c.count(liveReportsTotal, m.LiveReports.Value())
	c.count(liveReportsBytesTotal, m.LiveReportsBytes.Value())
	for collection, n := range load(m, m.collectionWrites) {
		c.count(collectionWritesTotal, n, collection)
	}
	if n := m.IndexShards.Load(); n > 0 {
		c.value(indexShards, float64(n))
	}
	for collection, n := range load(m, m.rampHeld) {
		c.count(rampHeldTotal, n, collection)
	}
	for table, n := range load(m, m.historyRows) {
		c.count(historyRowsTotal, n, table)
	}
	if behind, publishes := m.HistoryBehind.Last(); publishes {
		c.value(historyBehindSeconds, behind.Seconds())
	}
	for _, budget := range budgets {
		c.count(httpLimitedTotal, m.Limited(budget).Value(), budget)
	}
	for _, outcome := range webhookOutcomes {
		c.count(webhookAttemptsTotal, m.WebhookAttempts(outcome).Value(), outcome)
	}
	for webhook, since := range m.waitingWebhooks() {
		age := 0.0
		if !since.IsZero() {
			age = max(0, time.Since(since).Seconds())
		}
		c.value(webhookOldestSeconds, age, webhook)
	}
}

func (m *Meter) collectFirestore(c collector) {
	for k, n := range m.rpcs() {
		c.count(rpcsTotal, n.calls.Value(), k.operation, k.method)
		c.count(rpcsFailedTotal, n.failed.Value(), k.operation, k.method)
	}
	retries := m.CommitRetries()
	for operation, f := range m.FirestoreByOperation() {
		c.count(readsTotal, f.Reads, operation)
		c.count(writesTotal, f.Writes, operation)
		retries[operation] += 0 // a rate needs the count before the first retry
	}
	for operation, n := range retries {
		c.count(commitRetriesTotal, n, operation)
	}
	for kind, cost := range m.CostPerThousand() {
		c.value(readsPerThousand, cost.Reads, kind)
		c.value(writesPerThousand, cost.Writes, kind)
	}
	if offset, measured := m.ClockOffset.Last(); measured {
		c.value(clockOffsetSeconds, offset.Seconds())
	}
}

func (m *Meter) collectCycles(c collector) {
	for _, outcome := range []string{CycleRun, CycleSkipped, CycleFailed, CycleClockWrong} {
		c.count(cyclesTotal, m.Cycles.Count(outcome), outcome)
	}
	c.count(cyclesRememberedTotal, m.Cycles.Remembered.Value())
	c.count(plansRefusedTotal, m.Cycles.PlansRefused.Value())
	c.count(amendmentsTotal, m.Cycles.Amended.Value())
	c.count(exchangedTotal, m.Cycles.Exchanged.Value())
	c.count(handOversTotal, m.Cycles.HandedOver.Value())
	c.count(standbyTotal, m.Cycles.Standby.Value())
	c.durations(cycleSeconds, &m.Cycles.Took, shortBuckets)
	c.durations(cycleWaitSeconds, &m.Cycles.Waited, shortBuckets)
	for priority, n := range m.Cycles.Unserved() {
		c.value(ordersUnserved, float64(n), priority)
	}
	for depot, idle := range m.idleDepots() {
		c.value(depotWithoutCycles, idle, depot)
	}
}

func (m *Meter) collectLocks(c collector) {
	for name, l := range m.Locks() {
		c.durations(lockWaitSeconds, &l.Wait, shortBuckets, name)
		held := 0.0
		if l.Held() {
			held = 1
		}
		c.value(lockHeld, held, name)
	}
	for e, n := range load(m, m.lockEvents) {
		c.count(lockEventsTotal, n, e.Type, e.Result, e.Reason)
	}
	c.count(lockEventsDroppedTotal, m.LockEventsDropped.Value())
}
