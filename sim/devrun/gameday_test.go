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
		{devrun.GameDay{OutageAt: time.Minute, OutageFor: time.Second}, "--outage-at is 1m0s, when a run of 6s at speed 10 is over"},
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

// F-ACK-01: a run that ends during an outage of Firestore still settles what it
// holds and reports, for the outage ends with it.
func TestGameDay_EndOfTheRunEndsTheOutage(t *testing.T) {
	cfg := config(t)
	var out bytes.Buffer
	cfg.Out, cfg.Duration = &out, 3*time.Second
	cfg.GameDay = devrun.GameDay{OutageAt: 20 * time.Second, OutageFor: time.Hour, ClockSkew: -time.Second, WithoutOptimizer: true}
	report, err := devrun.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Firestore answers nobody for 1h0m0s") || strings.Contains(out.String(), "still unsettled") {
		t.Errorf("printed:\n%s", out.String())
	}
	if len(report.Invariants.Violations) > 0 || report.Telemetry.Applied == 0 || report.Cycles.Run > 0 {
		t.Errorf("%+v", report)
	}
}
