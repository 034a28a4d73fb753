package deploy_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/dronefleet/dronefleet/testkit/clitest"
)

// composition is as much of the Compose Specification as ours uses.
type composition struct {
	Name     string
	Product  yaml.Node `yaml:"x-product"`
	Servers  yaml.Node `yaml:"x-servers"`
	Services map[string]composed
	Configs  map[string]struct{ Content string }
}

type composed struct {
	Image       string
	Build       *struct{ Context, Dockerfile, Target string }
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Configs     []struct{ Source, Target string }
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Restart     string
	Profiles    []string
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
}

var (
	// composeVariable is a variable with its default.
	composeVariable = regexp.MustCompile(`\$\{([A-Z]+):-([^}]*)\}`)
	// address is where a service is reached.
	address = regexp.MustCompile(`\b([a-z][a-z-]*):([0-9]+)\b`)
	// listens is an address at which one of our programs listens, as --print-config has it.
	listens = regexp.MustCompile(`(?m)^(?:http-addr|link-addr|firestore|pubsub): "?([0-9.]*):([0-9]+)`)
)

// othersListen is where programs that are not ours listen, besides what their command says.
var othersListen = map[string][]string{"prometheus": {"9090"}, "grafana": {"3000"}}

// composeProblems compares a composition with the Dockerfile, the programs and itself. It keeps in
// known how programs started.
func composeProblems(t *testing.T, known map[string]started, text string) []string {
	t.Helper()
	var c composition
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&c); err != nil {
		return []string{err.Error()}
	}
	file, err := readDockerfile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	complain := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	open := map[string][]string{} // ports, by service
	for name, s := range c.Services {
		open[name] = othersListen[name]
		for _, word := range s.Command {
			if host, at, is := strings.Cut(word, "--host-port="); is && host == "" {
				open[name] = append(open[name], at[strings.LastIndex(at, ":")+1:])
			}
		}
		if s.Build == nil {
			if _, digest, _ := strings.Cut(s.Image, "@"); !imageDigest.MatchString(digest) && !slices.Contains(s.Profiles, "google") {
				complain("%s: is the image %s, which somebody can replace; name its digest", name, s.Image)
			}
			continue
		}
		if _, err := file.stage(s.Build.Target); err != nil || s.Build.Context != ".." || s.Build.Dockerfile != "deploy/Dockerfile" {
			complain("%s: is built from %v, want a stage of deploy/Dockerfile", name, *s.Build)
			continue
		}
		key := fmt.Sprint(s.Build.Target, s.Command, s.Environment)
		if _, is := known[key]; !is {
			config, err := starts(t, s)
			known[key] = started{config, err}
		}
		if err := known[key].err; err != nil {
			complain("%s: cannot start: %s", name, err)
		}
		for _, m := range listens.FindAllStringSubmatch(known[key].config, -1) {
			if m[1] != "127.0.0.1" { // else no other container reaches it
				open[name] = append(open[name], m[2])
			}
		}
	}
	for name, s := range c.Services {
		texts := slices.Collect(maps.Values(s.Environment))
		for _, config := range s.Configs {
			content, exists := c.Configs[config.Source]
			if !exists {
				complain("%s: no config %s", name, config.Source)
			}
			texts = append(texts, content.Content)
		}
		for _, m := range address.FindAllStringSubmatch(strings.Join(texts, "\n"), -1) {
			if !slices.Contains(open[m[1]], m[2]) {
				complain("%s: nothing listens at %s", name, m[0])
			}
		}
		for _, port := range s.Ports {
			parts := strings.Split(port, ":")
			if len(parts) != 3 || parts[0] != "127.0.0.1" || parts[1] != parts[2] || !slices.Contains(open[name], parts[2]) {
				complain("%s: publishes %s; give a port at which it listens, on 127.0.0.1", name, port)
			}
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if _, err := os.Stat(source); err != nil {
				complain("%s: %s", name, err)
			}
		}
		for other := range s.DependsOn {
			if _, exists := c.Services[other]; !exists {
				complain("%s: depends on %s, which does not exist", name, other)
			}
		}
	}
	slices.Sort(found)
	return found
}

// starts has the program of a service print what it would run with.
func starts(t *testing.T, s composed) (config string, err error) {
	t.Helper()
	program := clitest.Program(s.Build.Target).Path(t)
	help, err := exec.CommandContext(t.Context(), program, append(slices.Clone(s.Command[:1]), "--help")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, help)
	}
	cmd := exec.CommandContext(t.Context(), program, append(slices.Clone(s.Command), "--print-config")...)
	cmd.Env = []string{}
	for variable, value := range s.Environment {
		if !regexp.MustCompile(`\$` + variable + `\b`).Match(help) {
			return "", fmt.Errorf("it does not know %s", variable)
		}
		cmd.Env = append(cmd.Env, variable+"="+composeVariable.ReplaceAllString(value, "$2"))
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return string(out), err
}

// F-REL-01: the composition builds what the Dockerfile builds, its programs take their commands
// and settings, and every address in it leads to somebody who listens. The job names are those
// that the alerts know.
func TestCompose_DescribesAFleet(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(file)
	known := map[string]started{}
	for _, problem := range composeProblems(t, known, text) {
		t.Error(problem)
	}
	scrape, err := os.ReadFile("observability/scrape.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range regexp.MustCompile(`job_name: \S+`).FindAllString(string(scrape), -1) {
		if !strings.Contains(text, job) {
			t.Errorf("its Prometheus has no %s", job)
		}
	}
	// Each mistake is found.
	for _, m := range []struct{ old, mistake, found string }{
		{"prometheus:v2.55.1@sha256:", "prometheus:v2.55.1@sha1:", "prometheus: is the image prom/prometheus"},
		{"target: gateway", "target: gatewy", "gateway: is built from"},
		{"command: [run]", "command: [rnu]", "optimizer: cannot start"},
		{"DRONEFLEET_HTTP_HOSTS: gateway", "DRONEFLEET_HTTP_HOST: gateway", "gateway: cannot start: it does not know"},
		{"DRONEFLEET_LINK_ADDR: 0.0.0.0:8443", "DRONEFLEET_LINK_ADDR: 0.0.0.0:8444", "gateway: publishes 127.0.0.1:8443:8443"},
		{"DRONEFLEET_INSECURE_HTTP: \"true\"", "DRONEFLEET_INSECURE_HTTP: \"false\"", "statemanager: cannot start"},
		{`"optimizer:8080"`, `"optimizer:8082"`, "prometheus: nothing listens at optimizer:8082"},
		{"emulators:8085}", "emulators:8086}", "fleet: nothing listens at emulators:8086"},
		{`"127.0.0.1:8080:8080"`, `"8080:8080"`, "statemanager: publishes 8080:8080"},
		{"../examples/paris.yaml", "../examples/london.yaml", "fleet: stat"},
		{"read_only", "readonly", "field readonly not found"},
		{"source: datasource", "source: datasources", "grafana: no config datasources"},
	} {
		if found := composeProblems(t, known, strings.Replace(text, m.old, m.mistake, 1)); !strings.Contains(strings.Join(found, "\n"), m.found) {
			t.Errorf("%s: found %q, want %q", m.mistake, found, m.found)
		}
	}
}
