package underfire

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// F-TEL-03: the server's clock decides what is the future. A State Manager whose
// own clock is slow refuses no good report, of a drone it remembers either.
func TestSlowManagerBelievesTheServersClock(t *testing.T) {
	needsEmbedded(t)
	s := newStory(t, func(*story) {})
	s.ahead = -10 * time.Second
	applier := s.product.NewTelemetryApplier()
	for i := range 3 {
		report := domain.Telemetry{DroneID: "D1", Timestamp: time.Now().Add(time.Duration(i) * time.Millisecond), Position: home, Battery: 90, Status: domain.DroneIdle}
		if err := applier.Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
			t.Errorf("report %d: %v", i, err)
		}
	}
}
