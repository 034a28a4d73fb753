package observe

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

func TestConfig_ValidateNamesTheFix(t *testing.T) {
	half, much, negative := 0.5, 1.5, -0.1
	for name, c := range map[string]struct {
		Config
		want string
	}{
		"nothing to do":      {Config{}, ""},
		"a plain address":    {Config{Endpoint: "http://localhost:4317", Ratio: &half}, ""},
		"TLS":                {Config{Endpoint: "https://collector.example:4317"}, ""},
		"no scheme":          {Config{Endpoint: "localhost:4317"}, "http://localhost:4317"},
		"no host":            {Config{Endpoint: "http://"}, "http://localhost:4317"},
		"another scheme":     {Config{Endpoint: "ftp://localhost:4317"}, "http://localhost:4317"},
		"more than all":      {Config{Ratio: &much}, "0 to 1"},
		"less than nothing":  {Config{Ratio: &negative}, "0 to 1"},
		"a path is harmless": {Config{Endpoint: "http://localhost:4317/"}, ""},
	} {
		err := c.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// Without a collector no span is recorded.
func TestStart_WithoutACollectorTracesNothing(t *testing.T) {
	w, err := Start(t.Context(), Config{Service: "test"}, meter.New(), emutest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	_, span := w.Tracing().Tracer("test").Start(t.Context(), "anything")
	if span.IsRecording() || span.SpanContext().IsValid() {
		t.Error("a span is recorded without a collector")
	}
	if err := w.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// F-OBS-01: a password in the endpoint appears in no log line and no error.
func TestStart_LogsNoPassword(t *testing.T) {
	var lines sync.Map // what failed may be logged after the end
	log := slog.New(slog.NewTextHandler(writer(func(p []byte) { lines.Store(string(p), nil) }), nil))
	w, err := Start(t.Context(), Config{Service: "test", Endpoint: "http://ann:mellon@127.0.0.1:1", FlushTimeout: time.Second}, meter.New(), log)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close(t.Context()) // nobody is there to take anything
	text := ""
	lines.Range(func(line, _ any) bool { text += line.(string); return true })
	if strings.Contains(text, "mellon") || !strings.Contains(text, "http://127.0.0.1:1") {
		t.Errorf("the log says %s", text)
	}
	if err := (Config{Endpoint: "ftp://ann:mellon@127.0.0.1:1"}).Validate(); err == nil || strings.Contains(err.Error(), "mellon") {
		t.Errorf("error %v", err)
	}
}
