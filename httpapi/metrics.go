package httpapi

import (
	"net/http"

	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/observe"
)

// metricsHandler answers GET /metrics: what the process counted, and the Go
// runtime.
//
// Cost: no RPC.
func metricsHandler(m *meter.Meter) http.Handler { return observe.MetricsHandler(m) }
