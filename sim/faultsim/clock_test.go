package faultsim

import (
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// F-TEL-03: the server's clock decides what is in the future. A State Manager whose
// own clock is off refuses no good report and accepts no bad one, even for a drone
// that it holds in its cache.
func TestTelemetryApplier_TrustsTheServersClock(t *testing.T) {
	needsEmbedded(t)
	for name, skew := range map[string]time.Duration{"slow": -10 * time.Second, "fast": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, func(*story) {})
			s.skew = skew
			applier := s.product.NewTelemetryApplier()
			for i := range 3 {
				report := domain.Telemetry{DroneID: "D1", Timestamp: s.now().Add(time.Duration(i) * time.Millisecond), Position: home, Battery: 90, Status: domain.DroneIdle}
				if err := applier.Apply(t.Context(), []domain.Telemetry{report})[0]; err != nil {
					t.Errorf("report %d: %v", i, err)
				}
				report.Timestamp = s.now().Add(time.Minute)
				err := applier.Apply(t.Context(), []domain.Telemetry{report})[0]
				if reason, _ := policy.ReasonOf(err); reason != policy.ReasonFutureTimestamp {
					t.Errorf("report %d of the future: %v", i, err)
				}
			}
		})
	}
}
