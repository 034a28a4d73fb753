package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// F-OPT-04: who looks up why an order is left finds the reason in the runbook.
func TestRunbook_NamesEveryReasonOfAnOrderThatIsLeft(t *testing.T) {
	source, err := os.ReadFile("../solver/model/plan.go")
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile("runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	reasons := regexp.MustCompile(`\bReason = "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(reasons) < 8 {
		t.Fatalf("found the reasons %q only", reasons)
	}
	for _, r := range reasons {
		if !strings.Contains(string(runbook), "`"+r[1]+"`") {
			t.Errorf("the runbook does not say what %s means", r[1])
		}
	}
}
