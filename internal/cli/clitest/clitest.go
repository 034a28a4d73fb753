package clitest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// asProgram is the variable that makes the test binary the program.
const asProgram = "DRONEFLEET_TEST_AS_PROGRAM"

// Main is the TestMain of a program.
func Main(m *testing.M, program func()) {
	if os.Getenv(asProgram) != "" {
		program()
		return
	}
	os.Exit(m.Run())
}

// Refuses checks that each command line ends as a wrong one does, in one line
// that holds what stands beside it.
func Refuses(t *testing.T, lines map[string]string) {
	t.Helper()
	for line, want := range lines {
		cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(line)...)
		cmd.Env = []string{asProgram + "=yes", "HOME=" + t.TempDir()}
		out, _ := cmd.CombinedOutput() // its exit code tells
		if code := cmd.ProcessState.ExitCode(); code != 2 || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), want) {
			t.Errorf("%q: exit code %d, printed %s", line, code, out)
		}
	}
}
