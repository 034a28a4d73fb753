package observe

import (
	"context"
	"encoding/hex"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dronefleet/dronefleet/internal/meter"
)

// Registry returns a registry of the process's metrics and the Go runtime's.
func Registry(m *meter.Meter) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return registry
}

// MetricsHandler answers a Prometheus scrape in the text format or, with exemplars, in
// OpenMetrics.
func MetricsHandler(m *meter.Meter) http.Handler {
	return promhttp.HandlerFor(Registry(m), promhttp.HandlerOpts{EnableOpenMetrics: true})
}

// producer converts a registry's metrics to OpenTelemetry.
func producer(g prometheus.Gatherer) metric.Producer {
	return decodedExemplars{bridge.NewMetricProducer(bridge.WithGatherer(g))}
}

// decodedExemplars fixes the bridge's exemplars: it passes on a trace id as hexadecimal
// text where OTLP wants 16 bytes, and a collector rejects the whole batch for that.
type decodedExemplars struct{ metric.Producer }

func (p decodedExemplars) Produce(ctx context.Context) ([]metricdata.ScopeMetrics, error) {
	scopes, err := p.Producer.Produce(ctx)
	for _, s := range scopes {
		for _, m := range s.Metrics {
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok {
				continue
			}
			for _, point := range h.DataPoints {
				for i := range point.Exemplars {
					e := &point.Exemplars[i]
					e.TraceID, e.SpanID = decodedID(e.TraceID, 16), decodedID(e.SpanID, 8)
				}
			}
		}
	}
	return scopes, err
}

// decodedID returns an id of size bytes, given as bytes or in hexadecimal; nil if it is
// neither.
func decodedID(id []byte, size int) []byte {
	if len(id) == size {
		return id
	}
	decoded := make([]byte, size)
	if n, err := hex.Decode(decoded, id[:min(len(id), 2*size)]); err != nil || n != size {
		return nil
	}
	return decoded
}
