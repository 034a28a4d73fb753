package firestoreemu

import (
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/locks"
	"github.com/dronefleet/dronefleet/emulator/internal/boltfile"
)

// Options configure a server. The zero value is a server in memory on a free
// loopback port.
type Options struct {
	// Addr is the loopback address to listen on; default "127.0.0.1:0", a free
	// port.
	Addr string
	// AnyAddress lets Addr be one that other machines reach. The server checks no
	// credentials.
	AnyAddress bool
	// InProcess lets the server listen on no port. Only Server.Dial and
	// Server.Client reach it.
	InProcess bool
	// Clock drives commit times, timeouts of locks and transactions, and TTL;
	// default the real clock.
	Clock clockwork.Clock
	// DataDir is the directory that keeps the documents; default none, memory
	// only. It is created if it does not exist. Only one server can use it at a
	// time.
	DataDir string
	// Sync is how durable a commit with a DataDir is when it is answered; default
	// SyncFull.
	Sync SyncMode
	// Indexes is the content of a firestore.indexes.json. With it, queries that
	// production would refuse for lack of an index are refused; default nil, no
	// check.
	Indexes []byte
	// IndexMode is what to do about a query without an index; default
	// IndexStrict.
	IndexMode IndexMode
	// Retention is how long superseded versions stay readable; default 1 h.
	Retention time.Duration
	// Limits bound transactions; zero fields take the defaults of the real
	// service.
	Limits Limits
	// Faults injects faults; default none.
	Faults *fault.Injector
	// RecordHistory records every transaction, plain commit and plain read for
	// Server.CheckSerializable. The record grows with each; default off.
	RecordHistory bool
	// Logger receives a debug line per failed RPC, a warning per query without an
	// index in IndexWarn mode, and an error when DataDir cannot be written;
	// default none.
	Logger *slog.Logger
	// OnUnwritable is called once with the error when DataDir can no longer be
	// written; default nil. It must not call the server.
	OnUnwritable func(error)

	// unlockedReads lets reads in transactions take no locks, so that tests can
	// show that they would notice.
	unlockedReads bool
}

// Limits are the times after which the server aborts a transaction.
type Limits struct {
	LockWait time.Duration // longest wait for a lock; default 15 s
	LockHold time.Duration // longest time that a holder may block others; default 20 s
	Idle     time.Duration // longest time between two RPCs of a transaction; default 60 s
	Total    time.Duration // longest life of a transaction; default 270 s
}

// SyncMode is how durable a commit is when it is answered.
type SyncMode int

const (
	SyncFull SyncMode = iota // after fsync: survives a power loss
	SyncOS                   // after write: survives the death of the process
)

// String returns the form that UnmarshalText reads.
func (s SyncMode) String() string {
	if s == SyncOS {
		return "os"
	}
	return "full"
}

// UnmarshalText reads "full" or "os", so that a SyncMode can be a flag.
func (s *SyncMode) UnmarshalText(text []byte) error {
	switch string(text) {
	case "full":
		*s = SyncFull
	case "os":
		*s = SyncOS
	default:
		return fmt.Errorf("unknown sync mode %q; use full or os", text)
	}
	return nil
}

// Errors of Start that concern DataDir, for errors.Is.
var (
	// ErrInUse means that another server uses the data directory.
	ErrInUse = boltfile.ErrInUse
	// ErrDamaged means that the data file was emptied or truncated, or that a page
	// or a record in it is not as it was written. The error names the file and,
	// where it is known, the record.
	ErrDamaged = boltfile.ErrDamaged
)

// withDefaults fills the zero fields.
func (o Options) withDefaults() Options {
	if o.Addr == "" && !o.InProcess {
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

// validate returns an error that names the invalid option.
func (o Options) validate() error {
	if o.Retention < 0 {
		return fmt.Errorf("firestoreemu: Retention %v is negative; use 0 for 1 h", o.Retention)
	}
	if o.InProcess {
		if o.Addr != "" {
			return fmt.Errorf("firestoreemu: Addr %q is set, but InProcess listens on no port; set only one of them", o.Addr)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(o.Addr)
	if err != nil {
		return fmt.Errorf("firestoreemu: Addr %q: %w; want host:port on loopback", o.Addr, err)
	}
	if ip := net.ParseIP(host); !o.AnyAddress && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("firestoreemu: Addr %q is not loopback, but the server checks no credentials; use 127.0.0.1, or set AnyAddress", o.Addr)
	}
	return nil
}
