package cli_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/docgen"
)

var update = flag.Bool("update", false, "rewrite the generated sections of docs/configuration.md")

const configurationDocument = "../../docs/configuration.md"

// The tables of docs/configuration.md are what the binaries print. Run with -update to
// rewrite them.
func TestConfigurationDocument_IsCurrent(t *testing.T) {
	text, err := os.ReadFile(configurationDocument)
	if err != nil {
		t.Fatal(err)
	}
	checkExample(t, string(text))
	sections := map[string]string{}
	for _, binary := range []string{"statemanager", "optimizer", "gateway", "dronefleet"} {
		table, err := exec.Command(clitest.Program(binary).Path(t), "--print-settings").Output()
		if err != nil {
			t.Fatal(err)
		}
		sections[binary] = string(table)
	}
	if err := docgen.Hold(configurationDocument, sections, *update, "go test ./internal/cli -run TestConfigurationDocument_IsCurrent -update"); err != nil {
		t.Error(err)
	}
}

// checkExample runs the programs with the document's example of a file.
func checkExample(t *testing.T, text string) {
	t.Helper()
	_, rest, _ := strings.Cut(text, "```yaml\n")
	example, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("%s has no example", configurationDocument)
	}
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(file, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][2]string{{"statemanager", "serve"}, {"dronefleet", "dev"}, {"optimizer", "run"}, {"optimizer", "once"}} {
		out, err := exec.Command(clitest.Program(command[0]).Path(t), command[1], "--config", file, "--print-config").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "log-level: ") || !strings.Contains(string(out), "# file "+file) {
			t.Errorf("%s: %v: %s", command, err, out)
		}
	}
}
