package firestoreemu

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/emulator/firestore/history"
	"github.com/dronefleet/dronefleet/emulator/firestore/store"
)

// What transactions saw and did, for a history.Log (E-FI-03). Without a log all
// of this does nothing.

// noteVersion remembers the version of a document that this view shows.
func (v *view) noteVersion(name string) {
	if v.db.server.opts.History == nil {
		return
	}
	if v.saw == nil {
		v.saw = map[string]int64{}
	}
	v.saw[name] = v.snapshot.Version(name)
}

// keepHistory adds what a plain read saw, or hands it to its transaction.
func (v *view) keepHistory() {
	if len(v.saw) == 0 {
		return
	}
	if v.tx == nil {
		now := v.db.server.opts.Clock.Now().UnixMicro()
		if v.began == 0 {
			now = 0 // the past on purpose: real time says nothing
		}
		v.db.server.opts.History.Add(history.Transaction{
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

// recordCommit notes a commit's new versions.
func (d *database) recordCommit(tx *transaction, changes []store.Change, arrival time.Time, at int64) {
	if d.server.opts.History == nil {
		return
	}
	names := make([]string, len(changes))
	for i, c := range changes {
		names[i] = c.Name
	}
	if tx == nil {
		d.server.opts.History.Add(history.Transaction{
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
