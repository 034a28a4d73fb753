package devrun

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
)

// F-API-02: a run on a machine too slow for its speed does not look like a fleet that
// delivers nothing.
func TestPace_IsBehindWhenTelemetryOrDecisionsAreLate(t *testing.T) {
	for name, c := range map[string]struct {
		onTime, late     int // telemetry
		applied, expired int // decisions
		speed            float64
		want             string // empty when it keeps up
	}{
		"nothing yet":             {speed: 20},
		"in time":                 {onTime: 100, applied: 50, speed: 20},
		"a busy moment":           {onTime: 95, late: 5, applied: 48, expired: 2, speed: 20},
		"telemetry is late":       {onTime: 80, late: 20, applied: 50, speed: 150, want: "more than 29 s of simulated time, and 0 decisions came too late; a drone gets no orders when its last report is older than 15s, and a decision expires after 2m0s; lower --speed"},
		"decisions are late":      {onTime: 100, applied: 3, expired: 40, speed: 300, want: "40 decisions came too late"},
		"the machine's own speed": {late: 100, speed: 1, want: "lower --drones, --hz or --solve-limit"},
	} {
		m := meter.New()
		for range c.onTime {
			m.Latency("telemetry").Record(time.Second)
		}
		for range c.late {
			m.Latency("telemetry").Record(29 * time.Second)
		}
		m.Settlements(meter.Settlement{Kind: "decisions", Outcome: meter.Applied}).Add(int64(c.applied))
		m.Settlements(meter.Settlement{Kind: "decisions", Outcome: meter.Rejected, Reason: string(policy.ReasonDecisionExpired)}).Add(int64(c.expired))
		var printed bytes.Buffer
		if err := (Summary{Pace: paceOf(m, c.speed)}).Print(&printed); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(printed.String()), " ") // as before it was wrapped
		if told := strings.Contains(text, "does not keep up"); told != (c.want != "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: printed\n%s", name, printed.String())
		}
	}
}

// F-API-02: a game day makes things late on purpose, which says nothing about the
// machine.
func TestPace_IsNeverBehindOnAGameDay(t *testing.T) {
	m := meter.New()
	m.Latency("telemetry").Record(time.Minute)
	for name, c := range map[string]struct {
		day               GameDay
		practised, behind bool
	}{
		"an ordinary day": {behind: true},
		"a wrong clock":   {day: GameDay{ClockSkew: time.Minute}},
		"an incident":     {practised: true},
	} {
		run := &devRun{cfg: Config{Speed: 20, GameDay: c.day}, product: &connect.Clients{Meter: m}}
		run.practised.Store(c.practised)
		if got := run.pace(); got.Behind != c.behind || got.TelemetryDelaySeconds < 60 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
