package devrun

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/emutest"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/policy"
)

// F-API-02: a run on a machine too slow for its speed is told apart from a fleet
// that delivers nothing.
func TestPace_IsBehindWhenTheFleetsTimeoutsAreOver(t *testing.T) {
	for name, c := range map[string]struct {
		onTime, late     int // telemetry
		applied, expired int // decisions
		speed            float64
		want             string // empty when it keeps up
	}{
		"nothing yet":             {speed: 20},
		"in time":                 {onTime: 100, applied: 50, speed: 20},
		"a busy moment":           {onTime: 95, late: 5, applied: 48, expired: 2, speed: 20},
		"telemetry is late":       {onTime: 80, late: 20, applied: 50, speed: 150, want: "more than 29 s of simulated time, and 0 decisions came too late; a drone unheard of for 15s gets no orders, a decision expires after 2m0s; lower --speed"},
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
		if err := (Report{Pace: paceOf(m, c.speed)}).Print(&printed); err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(printed.String(), "does not keep up"); told != (c.want != "") || !strings.Contains(printed.String(), c.want) {
			t.Errorf("%s: printed\n%s", name, printed.String())
		}
	}
}

// F-API-02: what a game day makes late on purpose is not for the machine to
// answer.
func TestPace_IsNotThatOfAGameDay(t *testing.T) {
	m := meter.New()
	m.Latency("telemetry").Record(time.Minute)
	for day, behind := range map[GameDay]bool{{}: true, {OutageAt: time.Minute, OutageFor: time.Minute}: false, {ClockSkew: time.Minute}: false} {
		f := fleet{cfg: Config{Speed: 20, GameDay: day}, product: &connect.Clients{Meter: m}}
		if got := f.pace(); got.Behind != behind || got.TelemetryDelaySeconds < 60 {
			t.Errorf("%+v: %+v", day, got)
		}
	}
}

// F-API-02: who watches a run is told once that it falls behind.
func TestStatus_WarnsOnceOfFallingBehind(t *testing.T) {
	out, said := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	s := status{out: said, terminal: true, meter: meter.New(), store: firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{}),
		now: time.Now, began: time.Now(), speed: 150, pace: func() PaceReport { return PaceReport{Behind: true, Speed: 150} }}
	go func() { s.run(ctx); said.Close() }()
	warnings, lines := 0, bufio.NewScanner(out)
	lines.Split(func(data []byte, atEOF bool) (int, []byte, error) { // of a terminal
		i := bytes.Index(data, []byte(clearing(true)))
		if i < 0 {
			return 0, nil, nil
		}
		return i + len(clearing(true)), data[:i], nil
	})
	for after := 0; after < 4 && lines.Scan(); {
		if strings.HasSuffix(lines.Text(), "\n") && strings.Contains(lines.Text(), "does not keep up with time x150") {
			warnings++
		}
		if warnings > 0 {
			after++
		}
	}
	end()
	for lines.Scan() { // what it still has to say must not block it
	}
	if warnings != 1 {
		t.Errorf("warned %d times", warnings)
	}
}

// F-API-02: one line is redrawn, however narrow the terminal: what was wrapped no
// redrawing takes away.
func TestStatus_IsNeverWrapped(t *testing.T) {
	out, said := io.Pipe()
	ctx, end := context.WithCancel(t.Context())
	s := status{out: said, terminal: true, meter: meter.New(), store: firestoretx.New(emutest.Clients(t).Firestore, firestoretx.Config{}),
		now: time.Now, began: time.Now(), speed: 1, pace: func() PaceReport { return PaceReport{} }}
	go func() { s.run(ctx); said.Close() }()
	first := make([]byte, 1000) // the pipe gives one write at a time
	n, err := out.Read(first)
	end()
	if _, copied := io.Copy(io.Discard, out); err != nil || copied != nil {
		t.Fatal(err, copied)
	}
	const off, on = "\x1b[?7l", "\x1b[?7h"
	if line := string(first[:n]); !strings.HasPrefix(line, clearing(true)+off) || !strings.HasSuffix(line, on) || !strings.Contains(line, "cycles: 0") {
		t.Errorf("drawn: %q", line)
	}
}
