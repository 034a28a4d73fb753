package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// F-OBS-01: Cloud Logging finds the trace of a record by these fields.
func TestLogTraces_NamesTheTrace(t *testing.T) {
	var out bytes.Buffer
	log := LogTraces(slog.New(slog.NewJSONHandler(&out, nil)), "my-project").With(slog.String("topic", "orders"))
	record := func(ctx context.Context) map[string]any {
		t.Helper()
		out.Reset()
		log.InfoContext(ctx, "message rejected", slog.String("order_id", "O-1"))
		var fields map[string]any
		if err := json.Unmarshal(out.Bytes(), &fields); err != nil {
			t.Fatal(err)
		}
		return fields
	}
	got := record(trace.ContextWithSpanContext(t.Context(), sampled))
	for name, want := range map[string]any{
		"logging.googleapis.com/trace":         "projects/my-project/traces/ff010000000000000000000000000000",
		"logging.googleapis.com/spanId":        "0100000000000000",
		"logging.googleapis.com/trace_sampled": true,
		"topic":                                "orders",
		"order_id":                             "O-1",
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	if got := record(trace.ContextWithSpanContext(t.Context(), dropped)); got["logging.googleapis.com/trace_sampled"] != false {
		t.Errorf("of a trace that is not sampled: %v", got)
	}
	if got := record(t.Context()); len(got) != 5 { // time, level, msg, topic, order_id
		t.Errorf("without a trace: %v", got)
	}
}

func TestLogTraces_LogsABareIDWithoutAProject(t *testing.T) {
	var out bytes.Buffer
	LogTraces(slog.New(slog.NewJSONHandler(&out, nil)), "").InfoContext(trace.ContextWithSpanContext(t.Context(), sampled), "m")
	if want := `"logging.googleapis.com/trace":"ff010000000000000000000000000000"`; !bytes.Contains(out.Bytes(), []byte(want)) {
		t.Errorf("logged %s", &out)
	}
}
