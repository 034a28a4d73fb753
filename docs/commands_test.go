package docs

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dronefleet/dronefleet/testkit/clitest"
)

// commandSpan is a command of ours in a document: between backticks, perhaps
// over a line's end.
var commandSpan = regexp.MustCompile("(?s)`((?:dronefleet|statemanager|optimizer|locktool) [^`]+)`")

var (
	fence       = regexp.MustCompile("(?ms)^ *```([a-z]*)\n(.*?)^ *```")
	indented    = regexp.MustCompile(`(?m)^    .+$`)
	prompted    = regexp.MustCompile(`(?m)^ *\$ (.+)$`)
	redirection = regexp.MustCompile(`\d?>&?[^\s;|&)]*`)
	comment     = regexp.MustCompile(`(?m)(?:^|\s)#.*$`)
	// inShell is a command of ours where a shell takes a command.
	inShell = regexp.MustCompile(`(?m)(?:^ *|[|;&(] *|\b(?:until|while|do|if) +|go run \./cmd/)` +
		`(?:[A-Z_]+=\S* +)*((?:dronefleet|statemanager|optimizer|locktool)(?: +(?:"[^"]*"|'[^']*'|[^\s"'|&;<>()]+))+)`)
	// quoted is one in a text of Terraform, YAML or JSON.
	quoted = regexp.MustCompile("(?:`|\"|\\\\\")((?:dronefleet|statemanager|optimizer|locktool) [^`\"\\\\]+)(?:`|\\\\?\")")
	// unquoted is what looks like one, and where it would end nobody can tell.
	unquoted = regexp.MustCompile(`(?m)(?:^|[^"\x60])\b(?:dronefleet|statemanager|optimizer|locktool) (?:` +
		`serve|dev|emulators|fleet|conform|orders|drones|depots|warehouses|audit|deadletters|locks|publish|run|once|solve|probe)\b.*$`)
	interpolated = regexp.MustCompile(`\$\{[^}]*\}`)
	words        = regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`)
)

// commandsIn are the commands of ours that a document tells people to type.
func commandsIn(name, text string) []string {
	var found []string
	add := func(pattern *regexp.Regexp, text string) {
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			found = append(found, m[1])
		}
	}
	if filepath.Ext(name) != ".md" {
		add(quoted, text)
		return found
	}
	shell := func(lines string) {
		add(inShell, redirection.ReplaceAllString(comment.ReplaceAllString(lines, ""), ""))
	}
	for _, block := range fence.FindAllStringSubmatch(text, -1) {
		switch prompts := prompted.FindAllStringSubmatch(block[2], -1); {
		case len(prompts) > 0: // the rest is what they print
			for _, line := range prompts {
				shell(line[1])
			}
		case block[1] == "sh" || block[1] == "bash" || block[1] == "console":
			shell(block[2])
		}
	}
	prose := fence.ReplaceAllString(text, "")
	for _, line := range indented.FindAllString(prose, -1) {
		shell(line)
	}
	add(commandSpan, prose)
	return found
}

// Every command that documents and alerts tell people to type exists, with its
// flags.
func TestCommandsExist(t *testing.T) {
	help := func(command string) error {
		var args []string
		for _, word := range words.FindAllString(interpolated.ReplaceAllString(command, "telemetry"), -1) {
			if word == "--" { // what follows is another program's
				break
			}
			args = append(args, strings.Trim(word, `"'`))
		}
		return exec.Command(clitest.Program(args[0]).Path(t), append(args[1:], "--help")...).Run()
	}
	// How many different commands each has, at least: a search that finds none
	// checks nothing.
	documents := map[string]int{
		"../README.md": 1, "auditing.md": 5, "operate.md": 16, "capacity.md": 0, "deploy.md": 5, "gameday.md": 14, "lock.md": 3, "runbook.md": 10, "upgrades.md": 1, "webhooks.md": 6,
		"../deploy/observability/alerts.yaml": 0, "../deploy/observability/dashboard.json": 1, "../deploy/observability/scrape.yaml": 2,
		"../deploy/terraform/monitoring.tf": 2, "../deploy/terraform/variables.tf": 2,
	}
	modules, err := filepath.Glob("../deploy/terraform/*.tf")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range modules {
		documents[filepath.ToSlash(name)] += 0
	}
	for name, least := range documents {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, command := range commandsIn(name, string(text)) {
			if seen[command] {
				continue
			}
			seen[command] = true
			if err := help(command); err != nil {
				t.Errorf("%s: `%s` does not parse: %v", name, command, err)
			}
		}
		if len(seen) < least {
			t.Errorf("%s: %d commands found, want at least %d: %q", name, len(seen), least, slices.Sorted(maps.Keys(seen)))
		}
		if filepath.Ext(name) != ".md" {
			for _, loose := range unquoted.FindAllString(string(text), -1) {
				t.Errorf("%s: put the command between backticks: %s", name, strings.TrimSpace(loose))
			}
		}
	}
	for _, wrong := range []string{"statemanager orders fly", "optimizer run --backwards", "statemanager deadletters list telemetry"} {
		if help(wrong) == nil {
			t.Errorf("the check takes `%s`", wrong)
		}
	}
}

var (
	regional = regexp.MustCompile("gcloud (?:run|scheduler) [^`\n]*")
	firebase = regexp.MustCompile("[^`\n]*firebase deploy[^`\n]*")
)

// Commands of others say what they would else ask for, or guess: where
// something is, and which project and which files are meant.
func TestCommandsOfOthersAreComplete(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range append(pages, "../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, command := range regional.FindAllString(string(text), -1) {
			if found++; !strings.Contains(command, " --region ") && !strings.Contains(command, " --location ") {
				t.Errorf("%s: `%s` does not say where", name, command)
			}
		}
		for _, command := range firebase.FindAllString(string(text), -1) {
			if found++; !strings.HasPrefix(command, "cd deploy && ") || !strings.Contains(command, " --project ") {
				t.Errorf("%s: `%s` finds no firebase.json, or names no project", name, command)
			}
		}
	}
	if found < 4 {
		t.Errorf("%d commands found", found)
	}
	config := struct {
		Firestore map[string]string `json:"firestore"`
	}{}
	text, err := os.ReadFile("../deploy/firebase.json")
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"rules": "firestore.rules", "indexes": "firestore.indexes.json"}, config.Firestore); diff != "" {
		t.Error(diff)
	}
	for _, file := range config.Firestore {
		if _, err := os.Stat(filepath.Join("../deploy", file)); err != nil {
			t.Error(err)
		}
	}
}
