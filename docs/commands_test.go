package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// commandSpan is a command of ours in a document: between backticks, perhaps
// over a line's end.
var commandSpan = regexp.MustCompile("(?s)`((?:statemanager|optimizer) [^`]+)`")

// Every command that these documents tell people to type exists, with its
// flags.
func TestCommandsExist(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the commands; run without -short")
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, "../cmd/statemanager", "../cmd/optimizer")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	help := func(command string) error {
		words := strings.Fields(command)
		return exec.Command(filepath.Join(bin, words[0]), append(words[1:], "--help")...).Run()
	}
	for _, name := range []string{"runbook.md", "capacity.md", "upgrades.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, m := range commandSpan.FindAllStringSubmatch(string(text), -1) {
			if seen[m[1]] {
				continue
			}
			seen[m[1]] = true
			if err := help(m[1]); err != nil {
				t.Errorf("%s: `%s` does not parse: %v", name, m[1], err)
			}
		}
	}
	for _, wrong := range []string{"statemanager orders fly", "optimizer run --backwards"} {
		if help(wrong) == nil {
			t.Errorf("the check takes `%s`", wrong)
		}
	}
}
