package clitest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asProgram is the variable that makes the test binary run as the program.
const asProgram = "DRONEFLEET_TEST_AS_PROGRAM"

// MainOf is the TestMain of a program whose tests run their own binary as the program,
// so that nothing has to be built.
func MainOf(m *testing.M, program func()) {
	if os.Getenv(asProgram) != "" {
		program()
		return
	}
	os.Exit(m.Run())
}

// RefusesLines runs the program under test, see MainOf, and checks that each wrong
// command line ends with code 2 and one line that holds the text beside it.
func RefusesLines(t *testing.T, lines map[string]string) {
	t.Helper()
	for line, want := range lines {
		cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(line)...)
		cmd.Env = []string{asProgram + "=yes", "HOME=" + t.TempDir()}
		out, _ := cmd.CombinedOutput() // the exit code is checked below
		if code := cmd.ProcessState.ExitCode(); code != 2 || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), want) {
			t.Errorf("%q: exit code %d, printed %s", line, code, out)
		}
	}
}
