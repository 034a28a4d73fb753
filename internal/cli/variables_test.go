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

// One environment serves every program, so a variable that several of them read takes the same
// kind of value in each.
func TestMain_SharedVariablesTakeTheSameKindOfValue(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `[\\w-]+` \\|[^|]*\\|[^|]*\\|([^|]*)\\| `(DRONEFLEET_\\w+)`")
	kind := func(values string) string { // "a duration" of "a duration, 0s or more"
		if values, _, _ = strings.Cut(strings.TrimSpace(values), ","); strings.HasPrefix(values, "a ") || values == "true or false" {
			return values
		}
		return "words" // such as "local or off"
	}
	kinds, first := map[string]string{}, map[string]string{}
	for _, program := range []string{"dronefleet", "gateway", "optimizer", "statemanager"} {
		table, err := exec.Command(clitest.Program(program).Path(t), "--print-settings").Output()
		if err != nil {
			t.Fatal(err)
		}
		rows := row.FindAllStringSubmatch(string(table), -1)
		if len(rows) < 5 {
			t.Errorf("%s: read %d settings", program, len(rows))
		}
		for _, r := range rows {
			if before, known := kinds[r[2]]; known && before != kind(r[1]) {
				t.Errorf("%s takes %s in %s and %s in %s; rename one", r[2], before, first[r[2]], kind(r[1]), program)
			}
			kinds[r[2]], first[r[2]] = kind(r[1]), program
		}
	}
}
