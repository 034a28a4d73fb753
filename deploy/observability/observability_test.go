// Package observability holds a dashboard, alerts and an example scrape configuration.
// Its tests compare them with the metrics that the code exports and with the runbook.
package observability

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/dronefleet/dronefleet/internal/meter"
)

// load reads a YAML file into v and rejects unknown fields.
func load(t *testing.T, name string, v any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// alert is a Prometheus alerting rule.
type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []alert
		}
	}
	load(t, "alerts.yaml", &file)
	var all []alert
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("alerts.yaml has no alert")
	}
	return all
}

const runbook = "https://github.com/dronefleet/dronefleet/blob/main/docs/runbook.md#"

// F-OBS-01: every alert uses metrics that exist, has a severity and a duration, and links
// to its section of the runbook.
func TestAlerts_AreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range alerts(t) {
		t.Run(a.Alert, func(t *testing.T) {
			if !regexp.MustCompile(`^[A-Z][A-Za-z]+$`).MatchString(a.Alert) || seen[a.Alert] {
				t.Errorf("alert name %q is not in CamelCase or not unique", a.Alert)
			}
			seen[a.Alert] = true
			if err := check(a.Expr); err != nil {
				t.Errorf("%v in: %s", err, a.Expr)
			}
			if d, err := time.ParseDuration(a.For); err != nil || d < time.Minute || d > time.Hour {
				t.Errorf("for is %q; give a minute to an hour", a.For)
			}
			if s := a.Labels["severity"]; s != "critical" && s != "warning" {
				t.Errorf("severity is %q; give critical or warning", s)
			}
			if a.Annotations["summary"] == "" {
				t.Error("no summary")
			}
			if want := runbook + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
				t.Errorf("runbook_url is %q, want %q", a.Annotations["runbook_url"], want)
			}
			for _, label := range regexp.MustCompile(`\$labels\.([a-z]+)`).FindAllStringSubmatch(a.Annotations["summary"], -1) {
				if !strings.Contains(a.Expr, label[1]) {
					t.Errorf("the summary shows label %s, which the expression does not keep", label[1])
				}
			}
		})
	}
}

// Every alert has a section in the runbook and every section an alert, and the panels
// that the runbook names exist.
func TestRunbook_MatchesAlertsAndPanels(t *testing.T) {
	text, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	// Headings of the third level are alerts.
	parts := regexp.MustCompile(`(?m)^### `).Split(string(text), -1)
	var sections []string
	for _, part := range parts[1:] {
		name, body, _ := strings.Cut(part, "\n")
		body, _, _ = strings.Cut(body, "\n## ")
		sections = append(sections, name)
		for _, question := range []string{"**Means:**", "**See:**", "**Do:**", "**Over when:**"} {
			if !strings.Contains(body, question) {
				t.Errorf("section %s does not say %s", name, question)
			}
		}
	}
	var names []string
	for _, a := range alerts(t) {
		names = append(names, a.Alert)
	}
	slices.Sort(sections)
	slices.Sort(names)
	if diff := cmp.Diff(names, sections); diff != "" {
		t.Errorf("alerts (-) and sections of the runbook (+) differ:\n%s", diff)
	}
	// The runbook may name several panels by the prefix of their titles.
	for _, m := range regexp.MustCompile(`"([A-Z][^"]+)"`).FindAllStringSubmatch(string(text), -1) {
		if !slices.ContainsFunc(panels(t), func(p panel) bool { return strings.HasPrefix(p.Title, strings.Join(strings.Fields(m[1]), " ")) }) {
			t.Errorf("the runbook names panel %q, which does not exist", m[1])
		}
	}
}

// panel is a panel of a Grafana dashboard.
type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ RefID, Expr, LegendFormat string }
}

func panels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		UID, Title string
		Panels     []panel
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || dashboard.Title == "" {
		t.Error("the dashboard has no uid or no title")
	}
	return dashboard.Panels
}

// F-OBS-01: every panel uses metrics that exist and has a description.
func TestDashboard_PanelsAreComplete(t *testing.T) {
	ids := map[int]bool{}
	for _, p := range panels(t) {
		if ids[p.ID] {
			t.Errorf("panel %q: id %d is taken", p.Title, p.ID)
		}
		ids[p.ID] = true
		if p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %q does not fit the grid of 24 columns", p.Title)
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %d %q lacks a title, a description or a target", p.ID, p.Title)
		}
		for _, target := range p.Targets {
			if err := check(target.Expr); err != nil {
				t.Errorf("panel %q: %v in: %s", p.Title, err, target.Expr)
			}
			for _, label := range regexp.MustCompile(`\{\{([a-z]+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if label[1] != "instance" && !strings.Contains(target.Expr, label[1]) {
					t.Errorf("panel %q: the legend shows label %s, which %s does not keep", p.Title, label[1], target.Expr)
				}
			}
		}
	}
}

// F-OBS-01: every exported metric is on the dashboard.
func TestDashboard_ShowsEveryMetric(t *testing.T) {
	var shown strings.Builder
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			shown.WriteString(target.Expr + "\n")
		}
	}
	for _, d := range meter.Descriptions() {
		if !regexp.MustCompile(`\b` + d.Name + `(_bucket)?[^a-z_]`).MatchString(shown.String()) {
			t.Errorf("no panel shows %s", d.Name)
		}
	}
}

// The jobs that alerts select are the ones that the example scrapes.
func TestScrapeConfig_HasTheJobsOfTheAlerts(t *testing.T) {
	var config struct {
		Global        map[string]string
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string                       `yaml:"job_name"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	load(t, "scrape.yaml", &config)
	var jobs []string
	for _, s := range config.ScrapeConfigs {
		jobs = append(jobs, s.JobName)
	}
	if diff := cmp.Diff(values["job"], jobs); diff != "" {
		t.Error(diff)
	}
	for _, name := range config.RuleFiles {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
	}
}

// A check that cannot fail proves nothing.
func TestCheck_CatchesMistakes(t *testing.T) {
	sound := `sum by (kind) (rate(dronefleet_messages_settled_total{outcome="nacked"}[5m])) > 0.1`
	if err := check(sound); err != nil {
		t.Fatalf("%s: %v", sound, err)
	}
	for name, row := range map[string]struct{ expr, problem string }{
		"a metric that nothing exports":    {strings.Replace(sound, "settled", "setled", 1), "nothing exports dronefleet_messages_setled_total"},
		"a label that the metric lacks":    {strings.Replace(sound, "outcome", "result", 1), "no label result"},
		"a value that never comes":         {strings.Replace(sound, "nacked", "nacks", 1), `never "nacks"`},
		"a pattern that never matches":     {strings.Replace(sound, `="nacked"`, `=~"nack|lost"`, 1), "never matches"},
		"a group that no metric has":       {strings.Replace(sound, "by (kind)", "by (topic)", 1), "label topic"},
		"no window":                        {strings.Replace(sound, "[5m]", "", 1), "[window]"},
		"a bracket too many":               {sound + ")", ""},
		"the rate of a gauge":              {`rate(dronefleet_backlog_age_seconds[5m])`, "is a gauge"},
		"a histogram without its suffix":   {`rate(dronefleet_cycle_seconds[5m])`, "nothing exports"},
		"a counter with le":                {`sum by (le) (rate(dronefleet_sweeps_total[5m]))`, "label le"},
		"a function of another dialect":    {`range_median(dronefleet_backlog_age_seconds)`, "no function"},
		"an operator of another dialect":   {`dronefleet_backlog_age_seconds default 0`, "default is not"},
		"an expression without any metric": {`1 + 1`, "no metric"},
		"a selector without a name":        {`{kind="telemetry"}`, "names no metric"},
	} {
		err := check(row.expr)
		if err == nil || !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: %s: error is %v, want %q", name, row.expr, err, row.problem)
		}
	}
}
