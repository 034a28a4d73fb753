package faultsim

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// shrink returns a smaller plan that still fails: the shortest prefix, then, by delta
// debugging, without the faults that the failure does not need. Removing any one of
// those that are left makes the run pass, as far as fails can tell.
//
// A. Zeller, R. Hildebrandt: Simplifying and isolating failure-inducing input, 2002.
func shrink(plan []plannedFault, fails func([]plannedFault) bool) []plannedFault {
	passing, failing := -1, len(plan) // lengths of prefixes; the run may fail without a fault
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

// withoutOnePart divides the plan into parts and looks for one that the failure does
// not need.
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
// invariant or requirement. Each candidate gets several tries, because a seed does not
// repeat how goroutines interleave: with too few, faults that matter less than chance
// are kept or the failure is lost.
func Shrink(ctx context.Context, cfg Config, rule string, tries int) ([]plannedFault, error) {
	var failed error
	small := shrink(cfg.planned(), func(candidate []plannedFault) bool {
		if candidate == nil {
			candidate = []plannedFault{} // no faults; nil would mean those of the seed
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

// tell tells a plan as a story, one line for each fault.
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
