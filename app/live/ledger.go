package live

import (
	"maps"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// ledger holds the outcomes of recent decisions, by cycle. An outcome never changes. It is not
// safe for concurrent use.
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
