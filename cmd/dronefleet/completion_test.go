package main_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// F-REL-03: bash completes commands, flags and values.
func TestCompletion_InBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not installed")
	}
	path := dronefleet.Path(t)
	for typed, want := range map[string]string{
		"emu":                       "emulators ",
		"conform d":                 "conform drone ",
		"conform drone --restart-c": "conform drone --restart-command ",
		"conform drone --output js": "conform drone --output json ",
		"conform drone --output=js": "conform drone --output=json ",
		"conform --output text dr":  "conform --output text drone ",
		"dev --drones 0 --no-le":    "dev --drones 0 --no-learn ",
	} {
		t.Run(typed, func(t *testing.T) {
			t.Parallel()
			// A function of the program's name shows the line that bash has made.
			name := filepath.Base(path)
			cmd := exec.CommandContext(t.Context(), bash, "--norc", "--noprofile", "-i")
			cmd.Stdin = strings.NewReader(fmt.Sprintf("complete -o default -C %s %s\n%[2]s() { echo \"line:$*:\"; }\n%[2]s %s\t\nexit\n", path, name, typed))
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), "line:"+strings.TrimSpace(want)) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
