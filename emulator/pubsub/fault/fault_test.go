package fault_test

import (
	"math"
	"testing"

	"github.com/dronefleet/dronefleet/emulator/pubsub/fault"
)

func TestInjector_DecisionsAreSeededAndProportional(t *testing.T) { // P-FI-01
	const n = 20_000
	hits := func(seed uint64) (out []uint64) {
		i := fault.New(seed)
		i.Set(fault.Plan{Drop: 0.1})
		for k := range uint64(n) {
			if i.Hit(fault.Drop, "s", k) {
				out = append(out, k)
			}
		}
		if i.Counts()[fault.Drop] != len(out) {
			t.Errorf("counted %v, hit %d", i.Counts(), len(out))
		}
		return out
	}
	first, same, other := hits(1), hits(1), hits(2)
	if math.Abs(float64(len(first))/n-0.1) > 0.01 {
		t.Errorf("%d hits in %d with probability 0.1", len(first), n)
	}
	equal := func(a, b []uint64) bool {
		for k := range min(len(a), len(b)) {
			if a[k] != b[k] {
				return false
			}
		}
		return len(a) == len(b)
	}
	if !equal(first, same) || equal(first, other) {
		t.Error("decisions do not follow the seed")
	}
}

func TestInjector_PlanIsLimitedToResources(t *testing.T) { // P-FI-01
	i := fault.New(1)
	if i.Hit(fault.Drop, "s", 1) {
		t.Error("hit without a plan")
	}
	i.Set(fault.Plan{Drop: 1, Resources: []string{"s"}})
	if !i.Hit(fault.Drop, "s", 1) || i.Hit(fault.Drop, "other", 1) || i.Hit(fault.Delay, "s", 1) {
		t.Error("the plan does not hold for s alone")
	}
}

func TestInjector_Outage(t *testing.T) { // P-FI-01
	i := fault.New(1)
	down := func() bool {
		select {
		case <-i.Outage():
			return true
		default:
			return false
		}
	}
	i.EndOutage()
	before := down()
	i.BeginOutage()
	i.BeginOutage()
	during := down()
	i.EndOutage()
	if before || !during || down() {
		t.Errorf("down before %v, during %v, after %v", before, during, down())
	}
}
