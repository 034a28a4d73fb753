package firestoreemu

import (
	"sync"
	"time"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/history"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/locks"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/store"
)

// mode is how a transaction isolates itself.
type mode int

const (
	readWrite  mode = iota // locks what it reads
	readOnly               // reads one snapshot and writes nothing
	optimistic             // reads one snapshot, which must be unchanged at commit
)

// transaction is one open transaction.
type transaction struct {
	id      []byte
	counter uint64
	mode    mode
	owner   *locks.Owner // nil unless readWrite

	mu        sync.Mutex
	snapshot  *store.Snapshot     // fixed at the first read, unless readWrite
	read      readSet             // if optimistic
	record    history.Transaction // if a history is recorded
	began     time.Time
	used      time.Time // when its last RPC began or ended
	inUse     int       // running RPCs
	finishing bool      // a Commit is running
	closed    bool      // no longer found; RPCs that found it earlier may still run
}

// registry holds the open transactions of one database.
type registry struct {
	database string
	epoch    uint64
	clock    clockwork.Clock
	limits   Limits
	history  *history.Log // nil: not recorded
	table    *locks.Table

	mu      sync.Mutex
	counter uint64
	open    map[uint64]*transaction
	ages    map[uint64]uint64 // of closed transactions that may be retried, by counter
	aged    []uint64          // the counters in ages, oldest first
}

// maxAges bounds the closed transactions whose age a retry can still inherit.
const maxAges = 1 << 16

func newRegistry(database string, s *Server, table *locks.Table) *registry {
	return &registry{
		database: database, epoch: s.epoch, clock: s.opts.Clock, limits: s.opts.Limits, history: s.history, table: table,
		open: map[uint64]*transaction{}, ages: map[uint64]uint64{},
	}
}

// retry opens a transaction that inherits the age of an earlier attempt, if retryOf
// names one whose age is still known (E-TX-07).
func (g *registry) retry(m mode, retryOf []byte) (*transaction, error) {
	if len(retryOf) == 0 {
		return g.begin(m, 0, nil), nil
	}
	earlier, ok := decodeID(retryOf, g.database)
	switch {
	case !ok:
		return nil, errInvalidTransaction
	case earlier.mode == readOnly:
		return nil, errReadOnlyRetry
	case earlier.epoch != g.epoch:
		return g.begin(m, 0, nil), nil
	}
	return g.begin(m, g.ageOf(earlier.counter), nil), nil
}

// begin opens a transaction. snapshot is nil unless it reads at a given time.
func (g *registry) begin(m mode, age uint64, snapshot *store.Snapshot) *transaction {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.counter++
	now := g.clock.Now()
	tx := &transaction{
		id:       transactionID{g.epoch, g.counter, m}.encode(g.database),
		counter:  g.counter,
		mode:     m,
		snapshot: snapshot,
		began:    now,
		used:     now,
	}
	if m == readWrite {
		tx.owner = locks.NewOwner(age)
	}
	g.open[tx.counter] = tx
	return tx
}

func (g *registry) ageOf(counter uint64) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if tx := g.open[counter]; tx != nil && tx.owner != nil {
		return g.table.Age(tx.owner)
	}
	return g.ages[counter]
}

// find returns the open transaction with an id and counts an RPC as running in it.
// The caller must call release.
func (g *registry) find(raw []byte) (*transaction, error) {
	id, ok := decodeID(raw, g.database)
	if !ok {
		return nil, errInvalidTransaction
	}
	g.mu.Lock()
	tx := g.open[id.counter]
	g.mu.Unlock()
	if id.epoch != g.epoch || tx == nil {
		return nil, errExpired
	}
	now := g.clock.Now()
	if g.lapsed(tx, now) {
		g.expire(tx)
		return nil, errExpired
	}
	tx.mu.Lock()
	tx.used = now
	tx.inUse++
	tx.mu.Unlock()
	return tx, nil
}

// release counts an RPC in the transaction as done.
func (g *registry) release(tx *transaction) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.inUse--
	tx.used = g.clock.Now()
}

// lapsed reports whether the transaction has exceeded its limits (E-TX-12).
func (g *registry) lapsed(tx *transaction, now time.Time) bool {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	idle := tx.inUse == 0 && now.Sub(tx.used) >= g.limits.Idle
	return !tx.finishing && (idle || now.Sub(tx.began) >= g.limits.Total)
}

func (g *registry) expire(tx *transaction) {
	if tx.owner != nil {
		g.table.Abort(tx.owner, errLapsed)
	}
	g.close(tx)
}

// expireLapsed ends all transactions that have exceeded their limits.
func (g *registry) expireLapsed() {
	now := g.clock.Now()
	g.mu.Lock()
	var lapsed []*transaction
	for _, tx := range g.open {
		if g.lapsed(tx, now) {
			lapsed = append(lapsed, tx)
		}
	}
	g.mu.Unlock()
	for _, tx := range lapsed {
		g.expire(tx)
	}
}

// close removes the transaction. From now on its id is answered "no longer valid".
// Its locks must already be released.
func (g *registry) close(tx *transaction) {
	tx.mu.Lock()
	tx.closed = true
	if tx.snapshot != nil {
		tx.snapshot.Close()
	}
	tx.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, open := g.open[tx.counter]; !open {
		return
	}
	delete(g.open, tx.counter)
	g.keepHistory(tx)
	if tx.owner == nil {
		return
	}
	g.ages[tx.counter] = g.table.Age(tx.owner)
	g.aged = append(g.aged, tx.counter)
	if len(g.aged) > maxAges {
		delete(g.ages, g.aged[0])
		g.aged = g.aged[1:]
	}
}

// startCommit reports false if another Commit of the transaction is running.
func (tx *transaction) startCommit() bool {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	if tx.finishing {
		return false
	}
	tx.finishing = true
	return true
}

// cancelCommit undoes startCommit.
func (tx *transaction) cancelCommit() {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	tx.finishing = false
}

// beginWith opens a transaction with the requested options, without any a
// read-write one (E-TX-02).
func (g *registry) beginWith(db *store.DB, options *pb.TransactionOptions) (*transaction, error) {
	switch m := options.GetMode().(type) {
	case *pb.TransactionOptions_ReadOnly_:
		var snapshot *store.Snapshot
		if at := m.ReadOnly.GetReadTime(); at != nil {
			var err error
			if snapshot, err = snapshotAt(db, at); err != nil {
				return nil, err
			}
		}
		return g.begin(readOnly, 0, snapshot), nil
	case *pb.TransactionOptions_ReadWrite_:
		if m.ReadWrite.GetConcurrencyMode() == pb.TransactionOptions_OPTIMISTIC {
			return g.retry(optimistic, m.ReadWrite.GetRetryTransaction())
		}
		return g.retry(readWrite, m.ReadWrite.GetRetryTransaction())
	}
	return g.begin(readWrite, 0, nil), nil
}
