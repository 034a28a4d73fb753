package observe_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/observe"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// page is the metrics of a scrape, by name.
type page map[string]*dto.MetricFamily

func scrape(t *testing.T, m *meter.Meter) page {
	t.Helper()
	families, err := observe.Registry(m).Gather()
	if err != nil {
		t.Fatal(err)
	}
	p := page{}
	for _, f := range families {
		p[f.GetName()] = f
	}
	return p
}

// sum adds up a metric's values, or a histogram's counts, over the series that have the
// labels.
func (p page) sum(name string, labels ...string) float64 {
	var sum float64
series:
	for _, m := range p[name].GetMetric() {
		for i := 0; i < len(labels); i += 2 {
			if label(m, labels[i]) != labels[i+1] {
				continue series
			}
		}
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// F-OBS-01: after a short run every metric is on the page and shows what happened.
func TestMetricsPage_ShowsEveryMetricAfterAShortRun(t *testing.T) {
	f := startFleet(t, to(noop.NewTracerProvider()), 0)
	at := time.Now().Add(-2 * time.Second).Truncate(time.Microsecond)
	f.report(t.Context(), "D1", at, domain.DroneIdle)
	f.awaitDrone("D1", func(d domain.Drone) bool { return d.LastUpdate.Equal(at) })
	f.report(t.Context(), "D1", at, domain.DroneIdle) // stale
	f.order(t.Context(), "O1")
	f.awaitOrder("O1", domain.OrderPending)
	f.order(t.Context(), "O1") // a duplicate
	f.send(t.Context(), "orders", []byte("{poison"), nil, nil)
	f.fly("O1")
	m := f.product.Meter
	emutest.Eventually(t, "a sweep, and nothing held", func() error {
		p := scrape(t, m)
		for name, done := range map[string]bool{
			"sweeps":  p.sum("dronefleet_sweeps_total") > 0,
			"stale":   p.sum("dronefleet_messages_settled_total", "kind", "telemetry", "reason", "STALE_TELEMETRY") > 0,
			"poison":  p.sum("dronefleet_messages_settled_total", "kind", "orders", "outcome", "dead_letter") > 0,
			"backlog": p.sum("dronefleet_backlog_messages") == 0,
			"offset":  p["dronefleet_clock_offset_seconds"] != nil,
			"census":  p.sum("dronefleet_drones") == 1,
		} {
			if !done {
				return &missing{name}
			}
		}
		return nil
	})
	f.stop()

	p := scrape(t, m)
	recorder := httptest.NewRecorder()
	observe.MetricsHandler(m).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, name := range meter.Names() {
		if p[name] == nil || !strings.Contains(recorder.Body.String(), "\n# TYPE "+name+" ") {
			t.Errorf("%s is not on the page", name)
		}
	}
	for _, alive := range [][]string{
		{"dronefleet_messages_settled_total", "kind", "telemetry", "outcome", "applied"},
		{"dronefleet_messages_settled_total", "kind", "orders", "outcome", "applied"},
		{"dronefleet_messages_settled_total", "kind", "decisions", "outcome", "applied"},
		{"dronefleet_firestore_rpcs_total", "operation", "cycle"},
		{"dronefleet_firestore_reads_total", "operation", "decisions"},
		{"dronefleet_firestore_writes_total", "operation", "orders"},
		{"dronefleet_cycles_total", "outcome", "run"},
		{"dronefleet_commands_published_total"},
		{"dronefleet_drones"},
		{"dronefleet_publish_to_commit_seconds", "kind", "telemetry"},
		{"dronefleet_publish_to_commit_seconds", "kind", "telemetry_status"},
		{"dronefleet_publish_to_commit_seconds", "kind", "decisions"},
		{"dronefleet_cycle_seconds"},
		{"dronefleet_lock_wait_seconds", "lock", "cycle"},
		{"dronefleet_lock_wait_seconds", "lock", "sweeper"},
		{"dronefleet_lock_events_total", "type", "acquire", "result", "ok"},
		{"dronefleet_lock_events_total", "type", "release", "result", "ok"},
		{"dronefleet_firestore_writes_per_thousand_messages", "kind", "telemetry"},
	} {
		if p.sum(alive[0], alive[1:]...) <= 0 {
			t.Errorf("%v shows nothing", alive)
		}
	}
	if n := p.sum("dronefleet_lock_held"); n != 0 {
		t.Errorf("%v locks are held after the end", n)
	}
	for _, kind := range []string{"telemetry", "orders", "decisions"} {
		messages := p.sum("dronefleet_messages_settled_total", "kind", kind) - p.sum("dronefleet_messages_settled_total", "kind", kind, "outcome", "nacked")
		for _, what := range []string{"reads", "writes"} {
			got := p.sum("dronefleet_firestore_"+what+"_per_thousand_messages", "kind", kind)
			if want := p.sum("dronefleet_firestore_"+what+"_total", "operation", kind) * 1000 / messages; got != want {
				t.Errorf("a thousand messages of %s cost %v %s, want %v", kind, got, what, want)
			}
		}
	}
}

// missing is the error that something has not been seen yet.
type missing struct{ what string }

func (e *missing) Error() string { return e.what + " not seen yet" }
