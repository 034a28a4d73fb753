package devrun

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
)

// PaceSummary tells whether the machine kept up with the speed. The fleet's timeouts
// are simulated time: if they expire before the machine has done its work, little is
// delivered, and that says nothing about the fleet.
type PaceSummary struct {
	Behind bool    `json:"behind"`
	Speed  float64 `json:"speed"`
	// TelemetryDelaySeconds is the simulated time from publish to commit that a
	// tenth of the telemetry exceeded.
	TelemetryDelaySeconds float64 `json:"telemetryDelaySeconds"`
	// DecisionsExpired counts decisions whose snapshot was too old when they arrived.
	DecisionsExpired int64 `json:"decisionsExpired"`
}

// paceTolerance is the share of telemetry, and of decisions, that may be late: more
// than a busy moment delays, less than what stops deliveries.
const paceTolerance = 0.1

// paceOf reports on what m has counted at a speed.
func paceOf(m *meter.Meter, speed float64) PaceSummary {
	var decisions, expired int64
	for s, n := range m.Settled() {
		if s.Kind != pubsubio.TopicDecisions || s.Outcome == meter.Nacked {
			continue
		}
		decisions += n
		if s.Reason == string(policy.ReasonDecisionExpired) {
			expired += n
		}
	}
	delay := m.Latency(pubsubio.TopicTelemetry).Quantile(1 - paceTolerance)
	return PaceSummary{
		Behind: delay > policy.DefaultLimits().MaxSilence || float64(expired) > paceTolerance*float64(decisions),
		Speed:  speed, TelemetryDelaySeconds: delay.Seconds(), DecisionsExpired: expired,
	}
}

// pace is how the run keeps up. A game day makes things late on purpose, so it never
// counts as behind.
func (run *devRun) pace() PaceSummary {
	p := paceOf(run.product.Meter, run.cfg.Speed)
	g := run.cfg.GameDay
	p.Behind = p.Behind && !run.practised.Load() && g.ClockSkew == 0 && !g.WithoutOptimizer
	return p
}

// warning says what is late and what to do.
func (p PaceSummary) warning() string {
	limits, fix := policy.DefaultLimits(), "lower --speed"
	if p.Speed == 1 {
		fix = "lower --drones, --hz or --solve-limit"
	}
	return fmt.Sprintf("this machine does not keep up with time x%g: a tenth of the telemetry takes more than %.0f s of simulated time, and %d decisions came too late; "+
		"a drone gets no orders when its last report is older than %s, and a decision expires after %s; %s", p.Speed, p.TelemetryDelaySeconds, p.DecisionsExpired, limits.MaxSilence, limits.MaxAge, fix)
}

// paceGrace is how long a run may take to start before it counts as behind.
const paceGrace = 2 * time.Second
