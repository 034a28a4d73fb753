package devrun_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/sim/devrun"
	"github.com/dronefleet/dronefleet/testkit/emutest"
)

// printed is what a run prints while it runs.
type printed struct {
	t    *testing.T
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

// find waits for a text that matches and returns its first group.
func (p *printed) find(pattern string) (found string) {
	p.t.Helper()
	emutest.Eventually(p.t, pattern, func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		groups := regexp.MustCompile(pattern).FindStringSubmatch(p.text.String())
		if groups == nil {
			return fmt.Errorf("not printed:\n%s", p.text.String())
		}
		found = groups[len(groups)-1]
		return nil
	})
	return found
}

// F-DAY-01 F-DAY-02: every incident begins, by its setting, at the terminal or over HTTP, says what to
// look at, and ends; a fleet that lived through them keeps every invariant.
func TestIncidents_BeginAndEnd(t *testing.T) {
	t.Parallel()
	cfg, out := config(t), &printed{t: t}
	typed, terminal := io.Pipe()
	defer terminal.Close()
	cfg.Duration, cfg.Drones, cfg.Out, cfg.In, cfg.Operator, cfg.HTTPAddr = 0, 24, out, typed, true, "127.0.0.1:0"
	cfg.GameDay.Incidents = []devrun.Incident{{Name: "mass-casualty"}, {Name: "drone-lost", At: 10 * time.Second}}
	ctx, end := context.WithTimeout(t.Context(), patience)
	defer end()
	var summary devrun.Summary
	var running sync.WaitGroup
	running.Go(func() {
		var err error
		if summary, err = devrun.Run(ctx, cfg); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer end()
	api := out.find(`HTTP API on (\S+)`)
	post := func(path string, want int, parts ...string) {
		t.Helper()
		resp := ask(t, http.MethodPost, api+"/api/v1/dev/incidents/"+path)
		if resp.status != want {
			t.Errorf("%s: %d %s", path, resp.status, resp.body)
		}
		for _, part := range parts {
			if !strings.Contains(resp.body, part) {
				t.Errorf("%s: %s lacks %q", path, resp.body, part)
			}
		}
	}
	choose := func(text string) {
		t.Helper()
		if _, err := io.WriteString(terminal, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	out.find(`At the console you are operator \(dev\)`)
	out.find(`  6  firestore-down`)
	post("storm", http.StatusNotFound, "no incident")
	post("wind/end", http.StatusConflict, "not under way")
	out.find(`incident mass-casualty: .* orders 12 CRITICAL parcels\n.*console: .*\n.*terminal: statemanager orders list`)
	out.find(`incident drone-lost: (\S+), with \d+ parcels aboard, sends and hears nothing`)

	choose("?")
	choose("2")
	closed := out.find(`incident depot-closed: depot DEPOT-PARIS-01 is closed: \d+ drones .*\n.*\n.*statemanager audit drone (\S+)`)
	if !droneOf(t, api, closed).Grounded {
		t.Errorf("%s is not grounded", closed)
	}
	choose("2")
	out.find(`incident depot-closed is over`)
	if droneOf(t, api, closed).Grounded {
		t.Errorf("%s is still grounded", closed)
	}

	post("wind", http.StatusOK, `"what":"all simulated drones`, `"until":"`)
	out.find(`incident wind: .*, started by operator \(dev\)`)
	post("wind", http.StatusConflict, "end it first")
	var list struct{ Incidents []httpapi.Incident }
	if err := json.Unmarshal([]byte(ask(t, http.MethodGet, api+"/api/v1/dev/incidents").body), &list); err != nil || len(list.Incidents) != 6 || list.Incidents[4].Until == nil || list.Incidents[5].Until != nil {
		t.Errorf("%+v, %v", list, err)
	}
	post("wind/end", http.StatusOK)
	out.find(`incident wind is over`)

	post("optimizer-dead", http.StatusOK)
	cycles := cyclesOf(t, api)
	post("optimizer-dead/end", http.StatusOK)
	out.find(`incident optimizer-dead is over`)
	emutest.Eventually(t, "the optimizer plans again", func() error {
		if now := cyclesOf(t, api); now < cycles+2 {
			return fmt.Errorf("%d cycles, after %d", now, cycles)
		}
		return nil
	})
	post("firestore-down", http.StatusOK)
	post("firestore-down/end", http.StatusOK)
	out.find(`Firestore answers again; \d+ messages wait`)
	out.find(`incident firestore-down is over`)
	end()
	running.Wait()
	if len(summary.Invariants.Violations) > 0 || summary.Pace.Behind || summary.Telemetry.Applied == 0 {
		t.Errorf("%+v", summary)
	}
}

type answered struct {
	status int
	body   string
}

// ask sends a request as the console does.
func ask(t *testing.T, method, url string) answered {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{resp.StatusCode, string(body)}
}

func droneOf(t *testing.T, api, id string) (d struct{ Grounded bool }) {
	t.Helper()
	if err := json.Unmarshal([]byte(ask(t, http.MethodGet, api+"/api/v1/drones/"+id).body), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// cyclesOf counts the cycles that the run has recorded.
func cyclesOf(t *testing.T, api string) int {
	t.Helper()
	return strings.Count(ask(t, http.MethodGet, api+"/api/v1/cycles").body, `"startedAt"`)
}
