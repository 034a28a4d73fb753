package httpapi

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/dronefleet/dronefleet/internal/meter"
)

// metricsHandler answers GET /metrics: what the process counted, and the Go
// runtime.
//
// Cost: no RPC.
func metricsHandler(m *meter.Meter) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(m, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}
