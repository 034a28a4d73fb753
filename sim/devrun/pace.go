package devrun

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
)

// PaceReport tells whether the machine kept up with the speed. The fleet's
// timeouts are simulated time: where they are over before the machine comes to
// what they wait for, little is delivered, and that says nothing of the fleet.
type PaceReport struct {
	Behind bool    `json:"behind"`
	Speed  float64 `json:"speed"`
	// TelemetryDelaySeconds is the simulated time from publish to commit that a
	// tenth of the telemetry exceeded.
	TelemetryDelaySeconds float64 `json:"telemetryDelaySeconds"`
	// DecisionsExpired were of a snapshot too old when they came.
	DecisionsExpired int64 `json:"decisionsExpired"`
}

// paceTolerance is the share of telemetry, and of decisions, that may be late:
// more than a busy moment delays, less than leaves a fleet without orders.
const paceTolerance = 0.1

// paceOf judges what m has counted at a speed.
func paceOf(m *meter.Meter, speed float64) PaceReport {
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
	return PaceReport{
		Behind: delay > policy.DefaultMissionAssignmentPolicy().MaxSilence || float64(expired) > paceTolerance*float64(decisions),
		Speed:  speed, TelemetryDelaySeconds: delay.Seconds(), DecisionsExpired: expired,
	}
}

// pace is how the run keeps up. A game day makes things late on purpose, which
// is not for the machine to answer.
func (f *fleet) pace() PaceReport {
	p := paceOf(f.product.Meter, f.cfg.Speed)
	p.Behind = p.Behind && f.cfg.GameDay == GameDay{}
	return p
}

// warning tells a person what it means to be behind, and what to do.
func (p PaceReport) warning() string {
	limits, fix := policy.DefaultMissionAssignmentPolicy(), "lower --speed"
	if p.Speed == 1 {
		fix = "lower --drones, --hz or --solve-limit"
	}
	return fmt.Sprintf("this machine does not keep up with time x%g: a tenth of the telemetry takes more than %.0f s of simulated time, and %d decisions came too late; "+
		"a drone unheard of for %s gets no orders, a decision expires after %s; %s", p.Speed, p.TelemetryDelaySeconds, p.DecisionsExpired, limits.MaxSilence, limits.MaxAge, fix)
}

// paceGrace is how long a run may take to get going before it is told that it
// is behind.
const paceGrace = 2 * time.Second
