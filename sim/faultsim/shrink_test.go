package faultsim

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	fsfault "github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/testkit/longtest"
)

func TestShrink_KeepsOnlyWhatTheFailureNeeds(t *testing.T) {
	plan := make([]plannedFault, 40)
	for i := range plan {
		plan[i].target = i
	}
	targets := func(plan []plannedFault) []int {
		var all []int
		for _, f := range plan {
			all = append(all, f.target)
		}
		return all
	}
	for _, needed := range [][]int{nil, {0}, {39}, {17}, {3, 4}, {0, 39}, {5, 20, 33}} {
		runs := 0
		got := targets(shrink(plan, func(candidate []plannedFault) bool {
			runs++
			has := targets(candidate)
			return !slices.ContainsFunc(needed, func(n int) bool { return !slices.Contains(has, n) })
		}))
		if !slices.Equal(got, needed) || runs > 100 {
			t.Errorf("the failure needs %v; found %v in %d runs", needed, got, runs)
		}
	}
}

// A product that loses its dead letters fails only on a poison message, so shrinking
// removes every other fault.
func TestShrink_FindsTheFaultThatABrokenVariantNeeds(t *testing.T) {
	needsEmbedded(t)
	longtest.Only(t, "runs a fleet again for each fault that it leaves out")
	t.Parallel()
	broken := faultInjector{dropDeadLetters: true}
	plan := []plannedFault{
		{at: 2 * time.Second, what: faultKillManager},
		{at: 3 * time.Second, lasts: 4 * time.Second, what: faultSlow, rule: &fsfault.Rule{Owner: productOwner, Probability: 0.3, Do: fsfault.Delay(time.Second)}},
		{at: 4 * time.Second, lasts: 4 * time.Second, what: faultUnavailable, rule: &fsfault.Rule{Owner: productOwner, Probability: 0.3, Do: fsfault.Fail(codes.Unavailable)}},
		{at: 6 * time.Second, what: faultPoison, target: 5},
		{at: 8 * time.Second, what: faultKillOptimizer},
		{at: 9 * time.Second, what: faultDroneSilent, lasts: 5 * time.Second},
	}
	if !longtest.Full(t, "a plan of six faults") {
		plan = plan[2:4]
	}
	small, err := Shrink(t.Context(), Config{
		Seed: *seed, Duration: 500 * time.Millisecond, Plan: plan, Managers: 2, Log: logger(t), Interceptors: broken.dialOptions(),
	}, "I9", 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("I9 is broken by:\n%s", tell(small))
	if len(small) != 1 || small[0].what != faultPoison {
		t.Errorf("shrunk to:\n%s", tell(small))
	}
}
