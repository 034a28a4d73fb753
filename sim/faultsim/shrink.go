package faultsim

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// shrink returns a smaller plan that still fails. It finds the shortest failing prefix and
// then removes faults by delta debugging until the run passes without any one of those
// left, as far as fails can tell.
//
// A. Zeller, R. Hildebrandt: Simplifying and isolating failure-inducing input, 2002.
func shrink(plan []plannedFault, fails func([]plannedFault) bool) []plannedFault {
	passing, failing := -1, len(plan) // lengths of prefixes; even the empty one may fail
	for failing-passing > 1 {
		if middle := (passing + failing) / 2; fails(plan[:middle:middle]) {
			failing = middle
		} else {
			passing = middle
		}
	}
	plan = plan[:failing:failing]
	for parts := min(2, len(plan)); parts > 1; {
		smaller, ok := withoutOnePart(plan, parts, fails)
		switch {
		case ok:
			plan, parts = smaller, min(max(parts-1, 2), len(smaller))
		case parts == len(plan):
			return plan
		default:
			parts = min(2*parts, len(plan))
		}
	}
	return plan
}

// withoutOnePart divides the plan into parts and removes the first one that the failure
// does not need.
func withoutOnePart(plan []plannedFault, parts int, fails func([]plannedFault) bool) ([]plannedFault, bool) {
	for i := range parts {
		from, to := i*len(plan)/parts, (i+1)*len(plan)/parts
		if rest := slices.Concat(plan[:from], plan[to:]); fails(rest) {
			return rest, true
		}
	}
	return nil, false
}

// Shrink returns the smallest plan it finds with which the run of cfg still breaks the
// rule, an invariant or requirement. A seed does not fix how goroutines interleave, so
// each candidate is run up to tries times; with too few, unneeded faults are kept or the
// failure is lost.
func Shrink(ctx context.Context, cfg Config, rule string, tries int) ([]plannedFault, error) {
	var failed error
	small := shrink(cfg.planned(), func(candidate []plannedFault) bool {
		if candidate == nil {
			candidate = []plannedFault{} // no faults; nil would mean the seed's plan
		}
		cfg := cfg
		cfg.Plan = candidate
		for range tries {
			if failed != nil {
				return false
			}
			r, err := Run(ctx, cfg)
			if err != nil {
				failed = err
				return false
			}
			if r.reports(rule) {
				return true
			}
		}
		return false
	})
	return small, failed
}

// tell describes a plan, one line for each fault.
func tell(plan []plannedFault) string {
	if len(plan) == 0 {
		return "It fails without any fault."
	}
	var b strings.Builder
	for i, f := range plan {
		fmt.Fprintf(&b, "%d. %s\n", i+1, f)
	}
	return b.String()
}
