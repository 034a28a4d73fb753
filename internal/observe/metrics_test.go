package observe

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/dronefleet/dronefleet/internal/meter"
)

const exampleTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

func traced() *meter.Meter {
	m := meter.New()
	m.Latency("orders").RecordTraced(3*time.Millisecond, exampleTrace)
	return m
}

// F-OBS-01: a latency on the page leads to its trace if the scrape asks for OpenMetrics.
func TestMetricsHandler_ShowsExemplarsInOpenMetrics(t *testing.T) {
	server := httptest.NewServer(MetricsHandler(traced()))
	defer server.Close()
	page := func(accept string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if p := page("application/openmetrics-text; version=1.0.0"); !strings.Contains(p, `# {trace_id="`+exampleTrace+`"} 0.003`) || !strings.HasSuffix(p, "# EOF\n") {
		t.Errorf("OpenMetrics without the exemplar:\n%s", p)
	}
	if p := page("text/plain"); strings.Contains(p, exampleTrace) || !strings.Contains(p, `dronefleet_publish_to_commit_seconds_count{kind="orders"} 1`) {
		t.Errorf("text:\n%s", p)
	}
}

// F-OBS-01: OTLP ids are bytes, not hexadecimal text.
func TestProducer_ExemplarIDsAreBytes(t *testing.T) {
	scopes, err := producer(Registry(traced())).Produce(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, s := range scopes {
		for _, m := range s.Metrics {
			h, ok := m.Data.(metricdata.Histogram[float64])
			if !ok {
				continue
			}
			for _, p := range h.DataPoints {
				for _, e := range p.Exemplars {
					found++
					if len(e.TraceID) != 16 || e.TraceID[0] != 0x4b || len(e.SpanID) != 0 {
						t.Errorf("%s: exemplar with trace %x and span %x", m.Name, e.TraceID, e.SpanID)
					}
				}
			}
		}
	}
	if found != 1 {
		t.Errorf("%d exemplars, want 1", found)
	}
}
