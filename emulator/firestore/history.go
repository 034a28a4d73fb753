package firestoreemu

import (
	"errors"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/history"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
)

// The history of what transactions read and wrote (E-FI-03). Without
// Options.RecordHistory, everything here does nothing.

// CheckSerializable reports whether the transactions, plain commits and plain
// reads recorded so far are strictly serializable: whether some order, one after
// the other and in agreement with real time, explains all that they read and
// wrote. The error describes a cycle that no order explains. It fails without
// Options.RecordHistory.
func (s *Server) CheckSerializable() error {
	if s.history == nil {
		return errors.New("firestoreemu: no history is recorded; set Options.RecordHistory")
	}
	return history.Check(s.history.Transactions())
}

// noteVersion records the version of a document that this view shows.
func (v *view) noteVersion(name string) {
	if v.db.server.history == nil {
		return
	}
	if v.saw == nil {
		v.saw = map[string]int64{}
	}
	v.saw[name] = v.snapshot.Version(name)
}

// keepHistory adds what a plain read saw to the history, or what a read in a
// transaction saw to the record of its transaction.
func (v *view) keepHistory() {
	if len(v.saw) == 0 {
		return
	}
	if v.tx == nil {
		now := v.db.server.opts.Clock.Now().UnixMicro()
		if v.began == 0 {
			now = 0 // a read of the past may disagree with real time
		}
		v.db.server.history.Add(history.Transaction{
			ID: fmt.Sprintf("read at %d", v.snapshot.Time), Reads: v.saw, Began: v.began, Ended: now, Commit: v.snapshot.Time,
		})
		return
	}
	if v.verify() != nil {
		return // not returned to the client
	}
	v.tx.mu.Lock()
	defer v.tx.mu.Unlock()
	if v.tx.record.Reads == nil {
		v.tx.record.Reads = map[string]int64{}
	}
	for name, seen := range v.saw {
		if first, again := v.tx.record.Reads[name]; !again || first > seen {
			v.tx.record.Reads[name] = seen
		}
	}
}

// recordCommit records a commit's new versions.
func (d *database) recordCommit(tx *transaction, changes []store.Change, arrival time.Time, at int64) {
	if d.server.history == nil {
		return
	}
	names := make([]string, len(changes))
	for i, c := range changes {
		names[i] = c.Name
	}
	if tx == nil {
		d.server.history.Add(history.Transaction{
			ID: fmt.Sprintf("commit at %d", at), Writes: names, Commit: at,
			Began: arrival.UnixMicro(), Ended: max(at, d.server.opts.Clock.Now().UnixMicro()),
		})
		return
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.record.Writes, tx.record.Commit, tx.record.Outcome = names, at, history.Committed
}

// keepHistory adds a transaction that has ended.
func (g *registry) keepHistory(tx *transaction) {
	if g.history == nil {
		return
	}
	tx.mu.Lock()
	defer tx.mu.Unlock()
	r := tx.record
	r.ID = fmt.Sprintf("transaction %d", tx.counter)
	if r.Commit == 0 {
		r.Outcome = history.Aborted
	}
	r.Began, r.Ended = tx.began.UnixMicro(), g.clock.Now().UnixMicro()
	g.history.Add(r)
}
