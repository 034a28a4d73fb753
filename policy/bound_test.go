package policy

import (
	"slices"
	"testing"
)

// Every situation of a bound drone decides something: without it, a check fails.
func TestBoundSituations_EachIsNeeded(t *testing.T) {
	all := boundSituations
	t.Cleanup(func() { boundSituations = all })
	for i, s := range all {
		boundSituations = slices.Delete(slices.Clone(all), i, i+1)
		if checks["drone table"](contract()) == nil && checks["mission table"](contract()) == nil && checks["hazards"](contract()) == nil {
			t.Errorf("nothing notices that %q is missing", s.situation)
		}
	}
}
