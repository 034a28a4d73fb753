package firestoreemu

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/emulator/firestore/history"
	"github.com/dronefleet/dronefleet/emulator/firestore/index"
	"github.com/dronefleet/dronefleet/emulator/firestore/locks"
)

// Options configure a server. The zero value is a server in memory on a free
// loopback port.
type Options struct {
	// Addr is the loopback address to listen on; default "127.0.0.1:0".
	Addr string
	// Clock drives commit times, lock and transaction timeouts and TTL; default
	// the real one.
	Clock clockwork.Clock
	// DataDir is where documents are kept; default none: memory only. It is
	// created if missing and serves one server at a time.
	DataDir string
	// Sync says what a commit's OK waits for when there is a DataDir; default
	// SyncFull.
	Sync SyncMode
	// Indexes is the content of firestore.indexes.json. Nil turns the check off
	// that a query has the index it would need in production.
	Indexes []byte
	// IndexMode says what to do about a query without an index; default
	// index.Strict.
	IndexMode index.Mode
	// Retention is how long superseded versions stay readable; default 1 h.
	Retention time.Duration
	// Limits bound transactions; zero fields take the service's values.
	Limits Limits
	// Faults makes the server misbehave on purpose; default never.
	Faults *fault.Injector
	// History records what every transaction, plain commit and plain read saw and
	// did; default nothing.
	History *history.Log
	// Logger receives one debug line per failed RPC, and an error when DataDir
	// cannot be written any more; default none.
	Logger *slog.Logger

	// brokenReads lets reads in transactions take no locks. Tests use it to see
	// that they would notice.
	brokenReads bool
}

// Limits are the times after which the server gives up on a transaction.
type Limits struct {
	LockWait time.Duration // longest wait for a lock; default 15 s
	LockHold time.Duration // longest time a holder may keep others waiting; default 20 s
	Idle     time.Duration // longest time between two RPCs of a transaction; default 60 s
	Total    time.Duration // longest life of a transaction; default 270 s
}

// withDefaults fills the zero fields.
func (o Options) withDefaults() Options {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Clock == nil {
		o.Clock = clockwork.NewRealClock()
	}
	if o.Retention == 0 {
		o.Retention = time.Hour
	}
	l := locks.Limits{Wait: o.Limits.LockWait, Hold: o.Limits.LockHold}.WithDefaults()
	o.Limits.LockWait, o.Limits.LockHold = l.Wait, l.Hold
	if o.Limits.Idle == 0 {
		o.Limits.Idle = 60 * time.Second
	}
	if o.Limits.Total == 0 {
		o.Limits.Total = 270 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// validate names the option that cannot work.
func (o Options) validate() error {
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return fmt.Errorf("firestoreemu: Addr %q: %w; want host:port on loopback", o.Addr, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("firestoreemu: Addr %q is not loopback: the server checks no credentials; use 127.0.0.1", o.Addr)
	}
	if o.Retention < 0 {
		return fmt.Errorf("firestoreemu: Retention %v is negative; leave it 0 for 1 h", o.Retention)
	}
	return nil
}
