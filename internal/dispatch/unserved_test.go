package dispatch

import (
	"strings"
	"testing"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// F-OPT-04: a cycle's document has the orders that were left with their
// reasons, and says when there are more than it can hold.
func TestListUnserved(t *testing.T) {
	left := func(n int) []solver.Unserved {
		var unserved []solver.Unserved
		for range n {
			unserved = append(unserved, solver.Unserved{OrderID: "O-1", Reason: solver.NoDroneFree, Detail: "all are away"})
		}
		return unserved
	}
	var c domain.Cycle
	listUnserved(&c, left(2))
	if len(c.Unserved) != 2 || c.Unserved[0] != (domain.UnservedOrder{OrderID: "O-1", Reason: string(solver.NoDroneFree) + ": all are away"}) || c.Detail != "" {
		t.Errorf("%+v", c)
	}
	c = domain.Cycle{}
	listUnserved(&c, left(maxUnserved+7))
	if len(c.Unserved) != maxUnserved || !strings.HasPrefix(c.Detail, "7 more") {
		t.Errorf("%d listed, %q", len(c.Unserved), c.Detail)
	}
}
