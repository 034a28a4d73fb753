package live

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// F-LIVE-01: a depot whose cycles have stopped keeps the last one, however many others
// have.
func TestSession_KeepsTheLastCycleOfAStuckDepot(t *testing.T) {
	s := New(Config{NewID: func() string { return "feed" }}).newSession()
	all := newScope(s, nil)
	for _, id := range []domain.DepotID{"BUSY", "STUCK"} {
		s.picture.state.Depots[id] = domain.Depot{ID: id}
	}
	start := time.Unix(0, 0)
	cycle := func(depot domain.DepotID, n int) domain.Cycle {
		return domain.Cycle{ID: domain.CycleID(fmt.Sprint(depot, n)), DepotID: depot, StartedAt: start.Add(time.Duration(n) * time.Second)}
	}
	all.sawCycles(firestoretx.Sight[domain.Cycle]{Whole: true, Now: []domain.Cycle{cycle("STUCK", 1), cycle("STUCK", 2), cycle("BUSY", 1), cycle("GONE", 1)}})
	all.sawCycles(firestoretx.Sight[domain.Cycle]{Now: []domain.Cycle{cycle("BUSY", 3)}, Gone: []string{"STUCK1", "STUCK2", "BUSY1", "GONE1"}})
	shown := slices.Sorted(maps.Keys(s.picture.state.Cycles))
	if want := []domain.CycleID{"BUSY3", "STUCK2"}; !slices.Equal(shown, want) {
		t.Errorf("shows %v, want %v", shown, want)
	}
	// It goes when the depot has a later one, also after the listener began again.
	all.sawCycles(firestoretx.Sight[domain.Cycle]{Whole: true, Now: []domain.Cycle{cycle("STUCK", 4), cycle("BUSY", 3)}})
	shown = slices.Sorted(maps.Keys(s.picture.state.Cycles))
	if want := []domain.CycleID{"BUSY3", "STUCK4"}; !slices.Equal(shown, want) {
		t.Errorf("then shows %v, want %v", shown, want)
	}
}

// F-LIVE-01: each decision counts once, however often it is seen, and what is known of
// decisions does not grow without bound.
func TestLedger_CountsEachDecisionOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	l := ledger{}
	for range 2 {
		for i, outcome := range []domain.Outcome{domain.OutcomeApplied, domain.OutcomeRejected, domain.OutcomeRejected} {
			l.add(domain.LedgerEntry{ID: domain.DecisionID(fmt.Sprint(i)), CycleID: "C1", Outcome: outcome, Reason: "STALE_FENCE", AppliedAt: now})
		}
	}
	if r := entity.OfJudgedCycle(domain.Cycle{}, maps.Values(l["C1"])); r.Applied != 1 || !maps.Equal(r.Refused, map[string]int{"STALE_FENCE": 2}) {
		t.Errorf("counts %+v", r)
	}
	if l.add(domain.LedgerEntry{ID: "no cycle"}) {
		t.Error("counts a decision of no cycle")
	}
	l.forget(now, nil)
	l.forget(now.Add(time.Hour), map[domain.CycleID]domain.Cycle{"C1": {}})
	if len(l["C1"]) != 3 {
		t.Errorf("forgot a decision that is recent or of a cycle shown: %v", l)
	}
	l.forget(now.Add(time.Second), nil)
	if len(l) != 0 {
		t.Errorf("keeps %v", l)
	}
}
