package policy

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/testkit/docgen"
)

var update = flag.Bool("update", false, "write the generated sections of docs/lifecycles.md anew")

const lifecyclesDocument = "../docs/lifecycles.md"

// generatedSections are the parts of the document that are written from the
// same data the tests check, by name.
var generatedSections = map[string]func() string{
	"drone diagram":    func() string { return mermaid(diagrams[domain.EntityDrone]) },
	"drone table":      droneSections,
	"order diagram":    func() string { return mermaid(diagrams[domain.EntityOrder]) },
	"order table":      func() string { return markdown(orderGrid) },
	"mission diagram":  func() string { return mermaid(diagrams[domain.EntityMission]) },
	"mission table":    func() string { return markdown(missionGrid) },
	"decision reasons": reasonList,
}

// TestLifecycles_DocumentIsCurrent fails when the document shows other lifecycles than
// the tests prove. Run it with -update to write them anew.
func TestLifecycles_DocumentIsCurrent(t *testing.T) {
	sections := map[string]string{}
	for name, generate := range generatedSections {
		sections[name] = generate()
	}
	if err := docgen.Hold(lifecyclesDocument, sections, *update, "go test ./policy -run TestLifecycles_DocumentIsCurrent -update"); err != nil {
		t.Error(err)
	}
}

func droneSections() string {
	var b strings.Builder
	for i, s := range droneSituations {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "#### %s\n\n%s", s.name, s.prose)
		if s.statuses != nil {
			fmt.Fprintf(&b, " The status before is any of %s.", joined(s.statuses))
		}
		fmt.Fprintf(&b, "\n\n%s", markdown(s.grid))
	}
	return b.String()
}

// inWords writes a duration in its largest unit that makes it a whole number.
func inWords(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%g s", d.Seconds())
}

func joined(statuses []domain.DroneStatus) string {
	var names []string
	for _, s := range statuses {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}

// markdown turns a grid into a table.
func markdown(grid string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(grid), "\n") {
		fields := strings.Split(line, "|")
		for j, f := range fields {
			if f = strings.TrimSpace(f); f == "." {
				f = "·"
			}
			fields[j] = f
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(fields, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat("---|", len(fields)) + "\n")
		}
	}
	return b.String()
}

// reasonList says what each reason means under the contract's limits.
func reasonList() string {
	l := DefaultLimits()
	numbers := strings.NewReplacer(
		"{MaxAge}", inWords(l.MaxAge), "{MaxSilence}", inWords(l.MaxSilence), "{TurnTime}", inWords(l.TurnTime), "{MaxWait}", inWords(l.MaxWait),
		"{MinBattery}", fmt.Sprintf("%g %%", l.MinBattery),
	)
	var b strings.Builder
	fmt.Fprintf(&b, "1. `%s`: the ledger has the id for another payload.\n", ReasonDecisionConflict)
	for i, check := range decisionChecks {
		fmt.Fprintf(&b, "%d. `%s`: %s.\n", i+2, check.reason, numbers.Replace(check.means))
	}
	return b.String()
}
