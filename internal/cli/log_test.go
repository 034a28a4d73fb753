package cli

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// F-OBS-01: lines have Cloud Logging's field names and severities; slog's own names
// would be ignored there. Fields inside a group keep their names.
func TestLogging_WritesTheFieldsOfCloudLogging(t *testing.T) {
	var out bytes.Buffer
	log := Logging{LogLevel: slog.LevelDebug}.Logger(&out)
	for level, want := range map[slog.Level]string{
		slog.LevelDebug: "DEBUG", slog.LevelInfo - 1: "DEBUG",
		slog.LevelInfo: "INFO", slog.LevelWarn - 1: "INFO",
		slog.LevelWarn: "WARNING", slog.LevelError - 1: "WARNING",
		slog.LevelError: "ERROR", slog.LevelError + 4: "ERROR",
	} {
		out.Reset()
		log.Log(t.Context(), level, "told", slog.Group("of", slog.String("level", "l"), slog.String("msg", "m")))
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		group, _ := line["of"].(map[string]any)
		if line["severity"] != want || line["message"] != "told" || line["time"] == nil || len(line) != 4 || group["level"] != "l" || group["msg"] != "m" {
			t.Errorf("at %v, severity %s, wrote %s", level, want, out.String())
		}
	}
	out.Reset()
	log.Info("told", slog.Duration("after", 5*time.Second/2), slog.Group("of", slog.Duration("offset", -time.Millisecond)))
	if line := out.String(); !strings.HasSuffix(line, `"after":"2.5s","of":{"offset":"-1ms"}}`+"\n") {
		t.Errorf("durations without their unit: %s", line)
	}
	out.Reset()
	Logging{LogLevel: slog.LevelWarn}.Logger(&out).Info("not told")
	if out.Len() > 0 {
		t.Errorf("wrote %s below the level", out.String())
	}
}
