package pubsubemu

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/dronefleet/dronefleet/emulator/pubsub/internal/journal"
)

// When the journal can no longer be written, that is logged once with the directory,
// however many calls fail after that. P-DUR-01
func TestServer_LogsFailedWriteOnce(t *testing.T) {
	var told bytes.Buffer
	dir := t.TempDir()
	s, err := Start(Options{DataDir: dir, Logger: slog.New(slog.NewJSONHandler(&told, &slog.HandlerOptions{Level: slog.LevelError}))})
	if err != nil {
		t.Fatal(err)
	}
	_ = s.persist(journal.Topic, "", 0, &pubsubpb.Topic{}) // without a name it has no key
	if _, err := s.CreateTopic(t.Context(), &pubsubpb.Topic{Name: "projects/fleet/topics/telemetry"}); err == nil {
		t.Error("a topic was created that is not on disk")
	}
	if err := s.Close(); err == nil {
		t.Error("Close reports success")
	}
	if text := told.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `"data_dir":"`+dir+`"`) {
		t.Errorf("logged %q", text)
	}
}
