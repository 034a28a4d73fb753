package cli_test

import (
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/testkit/clitest"
)

// One environment serves every program: none reports another's variables as
// misspelled. A misspelled one is reported in addition to any other error.
func TestMain_ReportsOnlyMisspelledVariables(t *testing.T) {
	programs := []string{"dronefleet", "gateway", "optimizer", "statemanager"}
	variables := map[string]bool{}
	for _, program := range programs {
		table, err := exec.Command(clitest.Program(program).Path(t), "--print-settings").Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`DRONEFLEET_\w+`).FindAllString(string(table), -1) {
			variables[name] = true
		}
	}
	for program, typo := range map[string][2]string{
		"optimizer":    {"DRONEFLEET_PROJCT", "DRONEFLEET_PROJECT"},
		"gateway":      {"DRONEFLEET_LINK_ADRR", "DRONEFLEET_LINK_ADDR"},
		"statemanager": {"DRONEFLEET_PROJCT", "DRONEFLEET_PROJECT"},
		"dronefleet":   {"DRONEFLEET_DRNES", "DRONEFLEET_DRONES"}, // it has no setting for the project
	} {
		cmd := exec.Command(clitest.Program(program).Path(t), "no-command")
		cmd.Env = []string{typo[0] + "=p"}
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			cmd.Env = append(cmd.Env, name+"=1")
		}
		out, _ := cmd.CombinedOutput() // it fails: there is no such command
		want := fmt.Sprintf("%s: variable %s is not a setting and is ignored; did you mean %s?\n", program, typo[0], typo[1])
		if !strings.HasPrefix(string(out), want) || strings.Count(string(out), "is ignored") != 1 {
			t.Errorf("printed %s", out)
		}
	}
}
