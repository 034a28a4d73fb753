package meter

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of the metrics, with the labels they carry.
var (
	descSettled = prometheus.NewDesc("dronefleet_messages_settled_total",
		"Messages acked or nacked, by kind, outcome and reason.", []string{"kind", "outcome", "reason"}, nil)
	descLatency = prometheus.NewDesc("dronefleet_publish_to_commit_seconds",
		"Time from a message's publication to the commit of its effect.", []string{"kind"}, nil)
	descRPCs = prometheus.NewDesc("dronefleet_firestore_rpcs_total",
		"Firestore calls, by the operation they serve.", []string{"operation", "method"}, nil)
	descFailed = prometheus.NewDesc("dronefleet_firestore_rpcs_failed_total",
		"Firestore calls that ended in an error.", []string{"operation", "method"}, nil)
	descReads = prometheus.NewDesc("dronefleet_firestore_reads_total",
		"Documents read, as Firestore bills them.", []string{"operation"}, nil)
	descWrites = prometheus.NewDesc("dronefleet_firestore_writes_total",
		"Documents written, as Firestore bills them.", []string{"operation"}, nil)
	descCount = prometheus.NewDesc("dronefleet_events_total",
		"Other things that happened, by name.", []string{"name"}, nil)
	descGauge = prometheus.NewDesc("dronefleet_current",
		"Present values, by name.", []string{"name"}, nil)
	descDuration = prometheus.NewDesc("dronefleet_duration_seconds",
		"How long other things took, by name.", []string{"name"}, nil)
)

// Describe implements prometheus.Collector.
func (m *Meter) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descSettled, descLatency, descRPCs, descFailed, descReads, descWrites, descCount, descGauge, descDuration,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Meter) Collect(ch chan<- prometheus.Metric) {
	counter := func(d *prometheus.Desc, v int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	for s, n := range m.Settled() {
		counter(descSettled, n, s.Kind, s.Outcome, s.Reason)
	}
	m.mu.Lock()
	latency, firestore, durations := maps.Clone(m.latency), maps.Clone(m.firestore), maps.Clone(m.durations)
	m.mu.Unlock()
	for kind, h := range latency {
		ch <- constHistogram(descLatency, h, kind)
	}
	for k, c := range firestore {
		counter(descRPCs, c.calls.Load(), k.operation, k.method)
		counter(descFailed, c.failed.Load(), k.operation, k.method)
	}
	for op, f := range m.FirestoreByOperation() {
		counter(descReads, f.Reads, op)
		counter(descWrites, f.Writes, op)
	}
	for name, n := range load(m, m.counts) {
		counter(descCount, n, name)
	}
	for name, v := range load(m, m.gauges) {
		ch <- prometheus.MustNewConstMetric(descGauge, prometheus.GaugeValue, float64(v), name)
	}
	for name, h := range durations {
		ch <- constHistogram(descDuration, h, name)
	}
}

func constHistogram(d *prometheus.Desc, h *Histogram, label string) prometheus.Metric {
	buckets := map[float64]uint64{}
	h.cumulative(func(bound float64, n uint64) { buckets[bound] = n })
	return prometheus.MustNewConstHistogram(d, uint64(h.Count()), h.Sum().Seconds(), buckets, label)
}
