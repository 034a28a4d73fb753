package devrun_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/sim/devrun"
)

func TestGameDay_NamesEveryBadSetting(t *testing.T) {
	incident := func(name string, at time.Duration) []devrun.Incident { return []devrun.Incident{{Name: name, At: at}} }
	for _, row := range []struct {
		day   devrun.GameDay
		fault string
	}{
		{devrun.GameDay{Incidents: incident("wind", time.Minute)}, "--incident has wind after 1m0s, but the run ends after 1m0s"},
		{devrun.GameDay{Incidents: incident("optimizer-dead", 0), WithoutOptimizer: true}, "--no-optimizer"},
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

// F-DAY-01: nobody but this machine's user becomes an operator without credentials.
func TestOperator_NeedsALoopbackAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"": "needs the HTTP API", "0.0.0.0:80": "everybody who reaches", ":80": "everybody who reaches", "fleet.example.org:80": "everybody who reaches",
		"127.0.0.1:0": "", "[::1]:80": "", "localhost:80": "",
	} {
		cfg := config(t)
		cfg.Operator, cfg.HTTPAddr, cfg.Drones = true, addr, -1
		err := cfg.Validate()
		if refused := strings.Contains(err.Error(), "--operator"); refused != (want != "") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", addr, err)
		}
	}
	if err := devrun.CheckOperator("127.0.0.1:0", []httpapi.Host{"fleet.example.org"}); err == nil || !strings.Contains(err.Error(), "--http-hosts") {
		t.Errorf("host names are answered %v", err)
	}
}

func TestIncident_ReadsNameAndTime(t *testing.T) {
	for text, want := range map[string]string{"wind": "wind 1m0s", "drone-lost@90s": "drone-lost 1m30s", "storm": "give one of mass-casualty, depot-closed,", "wind@soon": "give a duration", "wind@-1s": "give a duration"} {
		var i devrun.Incident
		got := ""
		if err := i.UnmarshalText([]byte(text)); err != nil {
			got = err.Error()
		} else {
			got = i.Name + " " + i.At.String()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s is read as %q, want %q", text, got, want)
		}
	}
}

// F-ACK-01 F-DAY-02: the outage ends with the run, so a run that ends during an outage of
// Firestore still settles what it holds and reports.
func TestGameDay_OutageEndsWithTheRun(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	var out bytes.Buffer
	cfg.Out, cfg.Duration = &out, 2*time.Second
	cfg.GameDay = devrun.GameDay{Incidents: []devrun.Incident{{Name: "firestore-down", At: 20 * time.Second}}, ClockSkew: -time.Second, WithoutOptimizer: true}
	summary, err := devrun.Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Firestore stops answering") || strings.Contains(out.String(), "still unsettled") {
		t.Errorf("printed:\n%s", out.String())
	}
	if len(summary.Invariants.Violations) > 0 || summary.Telemetry.Applied == 0 || summary.Cycles.Run > 0 {
		t.Errorf("%+v", summary)
	}
}
