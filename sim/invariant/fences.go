package invariant

import (
	"cmp"
	"strings"

	"github.com/dronefleet/dronefleet/domain"
)

// decision is a Stringer for the subject of a violation.
type decision domain.DecisionID

func (d decision) String() string { return "decision " + string(d) }

// depot is a Stringer for the subject of a violation.
type depot domain.DepotID

func (d depot) String() string { return "depot " + string(d) }

// fences checks I5: in commit order, the fences of a depot's applied decisions never
// go back, and the control document holds the highest. A decision without a fence
// belongs to no cycle and passes.
func (c *checker) fences() {
	highest := make(map[domain.DepotID]string)
	for _, row := range c.Ledger {
		if row.Outcome != domain.OutcomeApplied || row.Fence == "" {
			continue
		}
		of := row.DepotID
		if of == "" {
			of = c.droneByID[row.DroneID].HomeDepotID
		}
		if c.expect(compareFences(row.Fence, highest[of]) >= 0, "I5", decision(row.ID),
			"was applied with fence %s after fence %s had been, at depot %s", row.Fence, highest[of], of) {
			highest[of] = row.Fence
		}
	}
	if c.Fences == nil {
		return
	}
	for of, fence := range highest {
		c.expect(compareFences(c.Fences[of], fence) >= 0, "I5", depot(of),
			"holds fence %q although %s was applied", c.Fences[of], fence)
	}
}

// compareFences compares decimal numbers of any length; no fence counts as zero.
func compareFences(a, b string) int {
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
