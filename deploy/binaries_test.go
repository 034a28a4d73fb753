package deploy_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// builtIn holds the binaries that the Dockerfile builds; see imageBinaries.
var builtIn string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "deploy")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	builtIn = dir
	code := m.Run()
	_ = os.RemoveAll(dir) // what is left is only temporary
	os.Exit(code)
}

// imageBinaries builds both binaries once, by the Dockerfile's own lines, and returns
// the folder that stands for the Dockerfile's /out. Its flags may not be those of this
// test, which then compiles everything anew.
func imageBinaries(t testing.TB) string {
	t.Helper()
	longtest.Only(t, "builds as the Dockerfile does")
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return builtIn
}

var build = sync.OnceValue(func() error {
	file, err := readDockerfile("Dockerfile")
	if err != nil {
		return err
	}
	lines := file.builds()
	if len(lines) == 0 {
		return fmt.Errorf("the Dockerfile builds nothing")
	}
	for _, line := range lines {
		cmd := exec.Command("sh", "-c", strings.ReplaceAll(line, outDir, builtIn+"/"))
		cmd.Dir = ".."
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", line, err, out)
		}
	}
	return nil
})

// metricNames are the metrics that the binaries export.
func metricNames() map[string]bool {
	names := map[string]bool{}
	for _, name := range meter.Names() {
		names[name] = true
	}
	return names
}

// A variable as the help of a command names it: ($NAME) or ($NAME, $OTHER).
var variableInHelp = regexp.MustCompile(`\$([A-Z][A-Z0-9_]+)`)

// libraryVariables are read by Go's runtime and by OpenTelemetry's libraries.
// https://pkg.go.dev/runtime, https://opentelemetry.io/docs/specs/otel/protocol/exporter/
var libraryVariables = []string{"GOMEMLIMIT", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS"}

// environmentOf lists the environment variables that each command which runs in
// production knows, as its own help says.
func environmentOf(t testing.TB) map[string]map[string]bool {
	t.Helper()
	known := map[string]map[string]bool{}
	for _, command := range []string{"statemanager serve", "optimizer run", "optimizer once", "gateway link"} {
		words := strings.Fields(command)
		var out bytes.Buffer
		cmd := exec.Command(clitest.Program(words[0]).Path(t), words[1], "--help")
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s --help: %v\n%s", command, err, out.String())
		}
		known[command] = map[string]bool{}
		for _, m := range variableInHelp.FindAllStringSubmatch(out.String(), -1) {
			known[command][m[1]] = true
		}
		for _, name := range append(libraryVariables, connect.LockPassword) { // which the help of --lock names in its text
			known[command][name] = true
		}
	}
	return known
}
