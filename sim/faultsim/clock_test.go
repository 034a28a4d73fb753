package faultsim

import (
	"slices"
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

// F-OPT-06, L-END-02: an optimizer whose clock is 500 ms or more off takes no lock, so it
// decides nothing. One that is less off goes on with the work.
func TestSimulation_SkewedOptimizersDecideNothing(t *testing.T) {
	needsEmbedded(t)
	t.Parallel()
	// Half a round trip of what is measured is uncertain: on a busy machine some 100 ms.
	offsets := []time.Duration{time.Hour, -time.Hour, 900 * time.Millisecond, -900 * time.Millisecond, 150 * time.Millisecond}
	var r Result
	for duration := 5 * time.Second; ; duration *= 4 { // longer, if a busy machine decides nothing so soon
		var err error
		r, err = Run(t.Context(), Config{
			Seed: *seed, Speed: 1, Drones: 12, Managers: 2, Optimizers: len(offsets), Offsets: offsets, Interval: time.Second,
			Plan: []plannedFault{}, Duration: duration, Log: logger(t),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("orders %v, %d applied, rejected %v, decided by each optimizer %v", r.Orders, r.Applied, r.Rejected, r.Decided)
		for _, f := range r.findings() {
			t.Error(f)
		}
		if slices.Max(r.Decided) > 0 || duration > time.Minute {
			break
		}
	}
	for i, offset := range offsets {
		if decides := r.Decided[i] > 0; decides != (offset.Abs() < 500*time.Millisecond) {
			t.Errorf("an optimizer whose clock is %s ahead decided %d missions", offset, r.Decided[i])
		}
	}
}
