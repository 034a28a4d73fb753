package live

import (
	"context"
	"iter"
	"maps"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

const (
	// unservedShown is how many of a cycle's orders that it left are shown.
	unservedShown = 50
	// decisionsBefore is how far back decisions are read at the start.
	decisionsBefore = 10 * time.Minute
)

// CycleForm is the JSON form of a cycle as viewers see it: with the first of the orders
// that it left, how many there were, and what came of its decisions.
type CycleForm struct {
	entity.Cycle
	UnservedTotal int `json:"unservedTotal" doc:"How many orders it left; unserved has the first of them."`
	Results
}

// Results is how a cycle's decisions were judged.
type Results struct {
	Applied int            `json:"applied" doc:"How many of its decisions were applied."`
	Refused map[string]int `json:"refused" doc:"How many of its decisions were refused, by reason."`
}

// FormOfCycle is the JSON form of a cycle with the results of its decisions.
func FormOfCycle(c domain.Cycle, results Results) CycleForm {
	total := len(c.Unserved)
	c.Unserved = c.Unserved[:min(total, unservedShown)]
	return CycleForm{entity.OfCycle(c), total, results}
}

// ResultsOf counts how decisions of one cycle were judged.
func ResultsOf(decisions iter.Seq[domain.LedgerEntry]) Results {
	r := Results{Refused: map[string]int{}}
	for d := range decisions {
		if d.Outcome == domain.OutcomeApplied {
			r.Applied++
		} else {
			r.Refused[d.Reason]++
		}
	}
	return r
}

// ledger is what is known of recent decisions by cycle. A decision is judged once. It is
// not safe for concurrent use.
type ledger map[domain.CycleID]map[domain.DecisionID]domain.LedgerEntry

// add notes a decision of a cycle, and reports whether it was unknown.
func (l ledger) add(d domain.LedgerEntry) bool {
	of := l[d.CycleID]
	if _, known := of[d.ID]; known || d.CycleID == "" {
		return false
	}
	if of == nil {
		of = map[domain.DecisionID]domain.LedgerEntry{}
		l[d.CycleID] = of
	}
	of[d.ID] = domain.LedgerEntry{Outcome: d.Outcome, Reason: d.Reason, AppliedAt: d.AppliedAt}
	return true
}

// forget drops decisions from before a time, except those of cycles that are shown. A
// decision may be seen before its cycle.
func (l ledger) forget(before time.Time, shown map[domain.CycleID]domain.Cycle) {
	for id, of := range l {
		if _, is := shown[id]; is {
			continue
		}
		maps.DeleteFunc(of, func(_ domain.DecisionID, d domain.LedgerEntry) bool { return d.AppliedAt.Before(before) })
		if len(of) == 0 {
			delete(l, id)
		}
	}
}

// followDecisions has cycles shown with what came of their decisions.
func (s *session) followDecisions(ctx context.Context) error {
	return forAWhile(ctx, func(ctx context.Context) error {
		return s.cfg.Store.FollowDecisions(ctx, s.cfg.Now().Add(-decisionsBefore), s.sawDecisions)
	})
}

func (s *session) sawDecisions(sight firestoretx.Sight[domain.LedgerEntry]) {
	s.malformed(sight.Malformed)
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := map[domain.CycleID]bool{}
	for _, d := range sight.Now {
		if s.ledger.add(d) {
			changed[d.CycleID] = true
		}
	}
	for id := range changed {
		if c, is := s.state.Cycles[id]; is {
			s.showCycle(c)
		}
	}
	s.answered("decisions", sight.ReadTime)
}

func (s *session) sawCycles(sight firestoretx.Sight[domain.Cycle]) {
	s.malformed(sight.Malformed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sight.Whole {
		clear(s.latest)
	}
	for _, c := range sight.Now {
		s.latest[c.ID] = true
		s.state.Cycles[c.ID] = c
		s.showCycle(c)
	}
	for _, id := range sight.Gone {
		delete(s.latest, domain.CycleID(id))
	}
	s.dropCycles()
	s.recountWaits()
	s.answered("cycles", sight.ReadTime)
}

// showCycle shows a cycle; with mu held.
func (s *session) showCycle(c domain.Cycle) {
	s.book.put(&Version{
		Key: Key{KindCycle, string(c.ID)}, form: FormOfCycle(c, ResultsOf(maps.Values(s.ledger[c.ID]))),
		depot: c.DepotID, depots: c.DepotIDs,
	})
}

// dropCycles drops those that are no longer among the latest, but keeps the last one of
// each depot, so that a stuck depot has one; with mu held.
func (s *session) dropCycles() {
	last := map[domain.DepotID]domain.Cycle{}
	for _, c := range s.state.Cycles {
		if c.StartedAt.After(last[c.DepotID].StartedAt) {
			last[c.DepotID] = c
		}
	}
	for id, c := range s.state.Cycles {
		if _, is := s.state.Depots[c.DepotID]; s.latest[id] || is && last[c.DepotID].ID == id {
			continue
		}
		delete(s.state.Cycles, id)
		s.book.remove(Key{KindCycle, string(id)}, time.Now())
	}
}
