package planner

import (
	"testing"
	"time"
)

// F-OPT-03: stages that all use their whole limit stay within the cycle's time, plus
// the least share of one.
func TestStageLimit_KeepsTheCyclesTime(t *testing.T) {
	const limit = 8 * time.Second
	spent := time.Duration(0)
	for _, until := range []float64{urgentUntil, sharedUntil, advanceUntil, allDronesUntil, overdueUntil, lateCriticalUntil, atRiskUntil, jointUntil, reducedUntil, completeUntil} {
		spent += stageLimit(limit, spent, until)
	}
	if spent > limit+limit/minStageShare {
		t.Errorf("all stages take %s of %s", spent, limit)
	}
	if got := stageLimit(limit, 2*limit, jointUntil); got != limit/minStageShare {
		t.Errorf("a stage that begins after the end gets %s", got)
	}
}
