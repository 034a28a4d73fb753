package cli_test

import (
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// One environment serves both programs: neither takes the other's variables for
// its own misspelt. What is misspelt is told beside whatever else is said.
func TestMain_TellsOfMisspeltVariablesOnly(t *testing.T) {
	if testing.Short() {
		t.Skip("builds both commands; the whole run checks it")
	}
	folder := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", folder, "../../cmd/optimizer", "../../cmd/statemanager").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	programs := []string{"optimizer", "statemanager"}
	variables := map[string]bool{}
	for _, program := range programs {
		table, err := exec.Command(filepath.Join(folder, program), "--print-settings").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`DRONEFLEET_\w+`).FindAllString(string(table), -1) {
			variables[name] = true
		}
	}
	for _, program := range programs {
		cmd := exec.Command(filepath.Join(folder, program), "no-command")
		cmd.Env = []string{"DRONEFLEET_PROJCT=p"}
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			cmd.Env = append(cmd.Env, name+"=1")
		}
		out, _ := cmd.CombinedOutput() // it fails: there is no such command
		want := program + ": variable DRONEFLEET_PROJCT is no setting and is ignored; did you mean DRONEFLEET_PROJECT?\n"
		if !strings.HasPrefix(string(out), want) || strings.Count(string(out), "is ignored") != 1 {
			t.Errorf("printed %s", out)
		}
	}
}
