//go:build unix

package transcript

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/testkit/clitest"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

// firstPages are for those who come from outside, each with the Python modules that it
// installs.
var firstPages = map[string]string{"first-order": "", "first-drone": "grpc_tools", "first-optimizer": "ortools"}

// F-DOC-10: the first pages work as they are written: on the embedded servers or, if the
// environment names emulators, on those. Only the command that starts the fleet is another
// one then.
func TestFirstPages(t *testing.T) {
	bin := sync.OnceValues(func() (string, error) { // once, so that the pages' own builds find nothing to do
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir, "./cmd/dronefleet", "./cmd/statemanager", "./cmd/locktool")
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return dir, err
	})
	for name, module := range firstPages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../" + name + ".md")
			if err != nil {
				t.Fatal(err)
			}
			sections, err := Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			var steps []Step
			for _, s := range sections {
				steps = append(steps, s.Steps()...)
			}
			longtest.Only(t, "flies parcels in real time")
			for _, tool := range []string{"bash", "curl", "python3", "openssl"} {
				if _, err := exec.LookPath(tool); err != nil {
					t.Skipf("the page needs %s, which is not installed", tool)
				}
			}
			if module != "" {
				// .ci/run sets it if pip can install here what the page installs.
				python := os.Getenv("EXAMPLES_PYTHON")
				if err := exec.CommandContext(t.Context(), python, "-c", "import "+module).Run(); err != nil {
					t.Skipf("Python's module %s is not installed: set EXAMPLES_PYTHON to an interpreter that has it (%v)", module, err)
				}
			}
			bin, err := bin()
			if err != nil {
				t.Fatal(err)
			}
			env := environment(t, bin)
			if os.Getenv("FIRESTORE_EMULATOR_HOST") != "" {
				env = append(env, standIn(t)...)
			}
			if err := play(t.Context(), root, env, steps); err != nil {
				t.Error(err)
			}
		})
	}
}

// standIn has "dronefleet dev", which has servers of its own, run a script that starts the same
// parts on the emulators of the environment.
func standIn(t *testing.T) (env []string) {
	t.Helper()
	script, err := filepath.Abs("testdata/dev")
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"dronefleet", "statemanager", "optimizer", "gateway"} {
		env = append(env, program+"="+clitest.Program(program).Path(t))
	}
	for _, host := range []string{"FIRESTORE_EMULATOR_HOST", "PUBSUB_EMULATOR_HOST"} {
		env = append(env, host+"="+os.Getenv(host))
	}
	return append(env, "DRONEFLEET_PROJECT=page-"+uuid.NewString()[:8],
		`BASH_FUNC_dronefleet%%=() { if [[ $1 == dev ]]; then exec `+script+` "${@:2}"; fi; command dronefleet "$@"; }`)
}
