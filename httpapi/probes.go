package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/dronefleet/dronefleet/internal/identity"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/observe"
)

// probeEndpoints say how the process is.
func (a *API) probeEndpoints() []endpoint {
	probes := []endpoint{
		{method: get, path: healthPath, summary: "Say that the process answers.", answer: writes(a.health)},
		{method: get, path: "/readyz", summary: "Check what the process depends on; 503 if it is not ready.", answer: answer{do: a.readyz, shape: jsonOf[Readiness]}},
	}
	metrics := func(role identity.Role, answer answer) endpoint {
		return endpoint{method: get, path: "/metrics", role: role, summary: "Metrics for Prometheus.", parameters: []parameter{anyParameter}, answer: answer}
	}
	switch a.access.Metrics {
	case MetricsOff:
		return probes
	case MetricsViewer:
		return append(probes, metrics(identity.Viewer, metricsOf(a.meter)))
	case MetricsOpen:
		return append(probes, metrics("", metricsOf(a.meter)))
	case MetricsLocal:
	}
	return append(probes, metrics("", localOnly(metricsOf(a.meter))))
}

// readyz says whether the process can work: Firestore and Pub/Sub answer and the clocks agree, an
// optimizer's cycles end, and every depot has cycles while orders wait (F-OPT-06). It answers 503
// if not, or if the process is stopping. A slow backlog or lock is only a warning: a restart does
// not make a slow process faster.
//
// Cost: 5 RPCs to Firestore, 5 reads, and one RPC to Pub/Sub for each subscription
// or topic checked, at most once a second.
func (a *API) readyz(ctx context.Context, _ *request) (any, error) {
	readiness := a.ready.now(ctx)
	if readiness.Status == CheckFailing {
		return reply{status: http.StatusServiceUnavailable, body: readiness}, nil
	}
	return readiness, nil
}

type health struct {
	Status string `json:"status"`
}

// health says that the process answers requests, and nothing more.
//
// Cost: no RPC.
func (a *API) health(context.Context, *request) (health, error) {
	return health{CheckOK}, nil
}

// localOnly answers callers on this machine, except a proxy in the same pod, whose headers name
// the client that it forwards for.
func localOnly(a answer) answer {
	return answer{do: func(ctx context.Context, r *request) (any, error) {
		forwarded := slices.ContainsFunc([]string{"X-Forwarded-For", "Forwarded", "Via", "X-Real-Ip"}, func(name string) bool { return r.Header.Get(name) != "" })
		if !parseAddress(r.RemoteAddr).IsLoopback() || forwarded {
			return nil, problem(http.StatusForbidden, "the metrics are for collectors on the same machine; see --metrics-access")
		}
		return a.do(ctx, r)
	}, shape: a.shape}
}

// metricsOf answers GET /metrics: what the process counted, and the Go runtime.
//
// Cost: no RPC.
func metricsOf(m *meter.Meter) answer {
	h := observe.MetricsHandler(m)
	return writesA("text/plain", schema{"type": "string"}, func(context.Context, *request) (any, error) { return h, nil })
}
