package devrun_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// F-GW-01, F-GW-03, F-GW-04: gateways are killed again and again, and drones restart. No report
// that was acked is lost (I9), no drone begins a mission twice, and every drone that has forgotten its
// mission goes on with it: orders are delivered, and no mission fails for a drone that gave it up.
func TestRun_SurvivesKilledGateways(t *testing.T) {
	t.Parallel()
	kills := longtest.Size(t, "kills", 40, 200)
	cfg := config(t)
	var out bytes.Buffer
	cfg.Out, cfg.Drones, cfg.OrdersPerMinute, cfg.Duration = &out, 20, 6, 0
	cfg.Speed = 4 // cycles must end in time beside the drill, and with the race detector
	if kills == 200 {
		cfg.Speed = 10
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cfg.Drill = devrun.GatewayDrill{Gateways: 3, Kills: kills, Done: cancel}
	summary, err := devrun.Run(ctx, cfg)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	g := summary.Gateways
	t.Logf("%+v, orders %+v, telemetry %+v, missions failed %v", *g, summary.Orders, summary.Telemetry, summary.MissionsFailed)
	if g.Killed < kills || g.Resumed == 0 || kills == 200 && summary.Orders.Delivered == 0 {
		t.Errorf("too little happened: %+v, orders %+v", *g, summary.Orders)
	}
	if len(summary.Invariants.Violations) > 0 {
		t.Errorf("invariants: %q", summary.Invariants.Violations)
	}
	if g.Twice > 0 {
		t.Errorf("%d missions were begun twice", g.Twice)
	}
	if len(summary.MissionsFailed) > 0 {
		t.Errorf("missions failed: %v", summary.MissionsFailed)
	}
}
