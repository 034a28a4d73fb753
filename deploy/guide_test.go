package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/testkit/clitest"
)

const guide = "../docs/deploy.md"

var (
	commandInGuide = regexp.MustCompile("`((?:statemanager|optimizer) [^`]+)`")
	linkInGuide    = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)
	variableInText = regexp.MustCompile(`\b(?:DRONEFLEET|OTEL)_[A-Z_]+\b`)
	moduleVariable = regexp.MustCompile("`([a-z]+(?:_[a-z]+)+)`")
)

// The guide names only commands, files, environment variables and Terraform variables that
// exist.
func TestGuide_NamesWhatExists(t *testing.T) {
	content, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	text, w := string(content), newWorld(t)
	for _, m := range commandInGuide.FindAllStringSubmatch(text, -1) {
		words := strings.Fields(m[1])
		if out, err := exec.Command(clitest.Program(words[0]).Path(t), append(words[1:], "--help")...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", m[1], err, out)
		}
	}
	for _, m := range linkInGuide.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(filepath.Dir(guide), m[1])); err != nil {
			t.Error(err)
		}
	}
	for _, name := range variableInText.FindAllString(text, -1) {
		if !w.settings["statemanager serve"][name] {
			t.Errorf("no variable %s", name)
		}
	}
	module := string(deployFiles(t)["terraform/variables.tf"])
	for _, m := range moduleVariable.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(module, `variable "`+m[1]+`"`) {
			t.Errorf("Terraform's module has no variable %s", m[1])
		}
	}
}
