// Package bench_test holds what all benchmarks have in common.
package bench_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A benchmark that could measure nothing is refused in one line, as a wrong
// command line is by every command.
func TestBenchmarks_RefuseNonsense(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the benchmarks; the whole run checks it")
	}
	folder := t.TempDir()
	build := exec.Command("go", "build", "-o", folder, "./decisions", "./dispatch", "./dynamic", "./lilim", "./lock", "./telemetry")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for line, want := range map[string]string{
		"lock --backends=0 --keys=1": "backends (flag --backends)",
		"lock --duration=0s":         "duration (flag --duration)",
		"decisions --cycles=0":       "cycles (flag --cycles)",
		"dispatch --drones=-1":       "drones (flag --drones)",
		"dispatch --instances=0":     "instances (flag --instances)",
		"dispatch --seeds=0":         "seeds (flag --seeds)",
		"dispatch --fast":            "--fast",
		"dynamic --iterations=0":     "iterations (flag --iterations)",
		"lilim":                      "--dir",
		"lilim --dir=. --workers=0":  "workers (flag --workers)",
		"telemetry --skip=foo":       "--skip",
		"telemetry --duration=-1s":   "duration (flag --duration)",
		"telemetry --backlog=0":      "backlog (flag --backlog)",
	} {
		args := strings.Fields(line)
		cmd := exec.CommandContext(t.Context(), filepath.Join(folder, args[0]), args[1:]...)
		out, _ := cmd.CombinedOutput() // its exit code tells
		if code := cmd.ProcessState.ExitCode(); code != 2 || strings.Count(string(out), "\n") != 1 || !strings.Contains(string(out), want) {
			t.Errorf("%s: exit code %d, printed %s", line, code, out)
		}
	}
}
