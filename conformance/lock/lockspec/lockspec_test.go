package lockspec

import (
	"flag"
	"testing"

	"github.com/dronefleet/dronefleet/testkit/longtest"
)

var limit = flag.Int("limit", 0, "`states` of a world after which no longer histories are begun; default 40000, and 150000 in the gate")

// L-FENCE-01, L-FENCE-02, L-ACQ-05, L-REL-05, L-EXT-03, L-END-01, L-END-03
func TestExplore_TheSpecificationHolds(t *testing.T) {
	most := *limit
	if most == 0 {
		most = longtest.Size(t, "states of each world", 40_000, 150_000)
	}
	for _, w := range Worlds() {
		t.Run(w.Name, func(t *testing.T) {
			t.Parallel()
			r := Explore(w, most)
			t.Log(r)
			if r.Violation != nil {
				t.Errorf("%s\n%s", r.Violation, r.Story)
			}
		})
	}
}

// Every rule and every assumption is needed: without it a property does not hold, and
// the shortest history that shows it has as many steps.
func TestExplore_FindsEveryVariant(t *testing.T) {
	for _, v := range Variants() {
		t.Run(v.Name, func(t *testing.T) {
			r := Explore(v.World, 1_000_000)
			t.Log(r)
			switch {
			case r.Violation == nil:
				t.Fatalf("nothing is violated, want %s: %s", v.Breaks, v.Because)
			case r.Violation.Property != v.Breaks:
				t.Errorf("violated %s, want %s", r.Violation, v.Breaks)
			case r.Depth != v.Steps:
				t.Errorf("%d steps, want %d", r.Depth, v.Steps)
			}
			t.Logf("%s\n%s", r.Violation, r.Story)
		})
	}
}
