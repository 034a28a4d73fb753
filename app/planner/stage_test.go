package planner

import (
	"testing"
	"time"
)

// F-OPT-03: rounds that all take as long as they may keep to the cycle's time,
// give or take one that was late.
func TestRoundLimit(t *testing.T) {
	const limit = 8 * time.Second
	spent := time.Duration(0)
	// The longest overdue order has a round of its own beside the pressing ones.
	for _, until := range []float64{urgentUntil, sharedUntil, advanceUntil, allDronesUntil, overdueUntil, lateCriticalUntil, atRiskUntil, jointUntil, reducedUntil, completeUntil} {
		spent += stageLimit(limit, spent, until)
	}
	if spent > limit+limit/minStageShare {
		t.Errorf("all rounds take %s of %s", spent, limit)
	}
	if got := stageLimit(limit, 2*limit, jointUntil); got != limit/minStageShare {
		t.Errorf("a round that begins after the end gets %s", got)
	}
}
