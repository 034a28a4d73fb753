package devrun_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/sim/devrun"
)

func TestGameDay_NamesEveryBadSetting(t *testing.T) {
	for _, row := range []struct {
		day   devrun.GameDay
		fault string
	}{
		{devrun.GameDay{OutageAt: 6 * time.Second, OutageFor: time.Second}, "--outage-at is 6s, but the run ends after 6s"},
		{devrun.GameDay{OutageAt: -time.Second}, "--outage-at"},
		{devrun.GameDay{OutageAt: time.Second}, "--outage-for"},
		{devrun.GameDay{OutageFor: time.Second}, "--outage-at"},
		{devrun.GameDay{ClockSkew: 2 * time.Hour}, "--clock-skew"},
		{devrun.GameDay{ClockSkew: -2 * time.Hour}, "--clock-skew"},
	} {
		cfg := config(t)
		cfg.Duration, cfg.Speed, cfg.GameDay = 6*time.Second, 10, row.day
		if _, err := devrun.Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), row.fault) {
			t.Errorf("%+v: error is %v, want %s named", row.day, err, row.fault)
		}
	}
}

// F-ACK-01: the outage ends with the run, so a run that ends during an outage of
// Firestore still settles what it holds and reports.
func TestGameDay_OutageEndsWithTheRun(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	var out bytes.Buffer
	cfg.Out, cfg.Duration = &out, 3*time.Second
	cfg.GameDay = devrun.GameDay{OutageAt: time.Second, OutageFor: time.Hour, ClockSkew: -time.Second, WithoutOptimizer: true}
	summary, err := devrun.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Firestore stops answering for 1h0m0s (20h0m0s simulated)") || strings.Contains(out.String(), "still unsettled") {
		t.Errorf("printed:\n%s", out.String())
	}
	if len(summary.Invariants.Violations) > 0 || summary.Telemetry.Applied == 0 || summary.Cycles.Run > 0 {
		t.Errorf("%+v", summary)
	}
}
