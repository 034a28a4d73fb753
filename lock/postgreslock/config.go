package postgreslock

import (
	"cmp"
	"context"
	"log/slog"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/leasetable"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
	"github.com/dronefleet/dronefleet/lock/internal/waitline"
)

// Names of the tables unless configured; SyncGuard's defaults too.
const (
	DefaultTable      = "syncguard_locks"
	DefaultFenceTable = "syncguard_fence_counters"
)

// Config is the configuration of a Backend. The zero value is valid.
type Config struct {
	// Table and FenceTable name the tables of locks and of fence counters, in the first schema
	// of the search path; nil: DefaultTable and DefaultFenceTable. A name has at most 40
	// lower-case letters, digits and underscores.
	Table, FenceTable *string

	Logger *slog.Logger // nil: slog.Default()
	Hasher lock.Hasher  // of keys and ids in Info and logs; nil: lock.HashKey
}

// Backend is a lock.Store on PostgreSQL. It is safe for concurrent use. Make one per pool and
// share it, because its waiters share one listening connection.
type Backend struct {
	pool *pgxpool.Pool
	sql  statements
	log  *slog.Logger
	hash lock.Hasher

	leases   leasetable.Table[time.Time] // until when they last
	tasks    tasks.Group
	waiters  waitline.Lines
	listener listener
}

var (
	_ lock.Store  = (*Backend)(nil)
	_ lock.Waiter = (*Backend)(nil)
)

// New returns a backend on a pool, which the caller closes after the backend. The schema must
// exist: see Migrate. A nil pool and impossible table names are ErrInvalidArgument.
func New(pool *pgxpool.Pool, cfg Config) (*Backend, error) {
	if pool == nil {
		return nil, lock.Invalid("pool is nil; pass a *pgxpool.Pool")
	}
	t, err := tablesOf(cfg)
	if err != nil {
		return nil, err
	}
	b := &Backend{
		pool: pool,
		sql:  t.statements(),
		log:  cmp.Or(cfg.Logger, slog.Default()),
		hash: cfg.Hasher,
	}
	b.tasks.Patience = tasks.Patience
	b.waiters = waitline.Lines{Clock: lock.SystemClock(), Tasks: &b.tasks, Follow: b.follow}
	if b.hash == nil {
		b.hash = lock.HashKey
	}
	return b, nil
}

// Close ends the listening connection and waits for background work, at most until ctx ends
// (ErrAborted). The pool stays open and locks stay held. Calls still work, but start nothing
// optional.
func (b *Backend) Close(ctx context.Context) error {
	b.waiters.Close()
	b.listener.close()
	return b.tasks.Close(ctx)
}

// Capabilities describes the backend.
func (b *Backend) Capabilities() lock.Capabilities {
	return lock.Capabilities{Name: "postgres", Fencing: true, TimeAuthority: lock.ServerTime}
}

// tables are the names of both tables.
type tables struct{ locks, fences string }

var tableName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)

func tablesOf(cfg Config) (tables, error) {
	t := tables{locks: DefaultTable, fences: DefaultFenceTable}
	for _, field := range []struct {
		name string
		set  *string
		to   *string
	}{{"Table", cfg.Table, &t.locks}, {"FenceTable", cfg.FenceTable, &t.fences}} {
		if field.set == nil {
			continue
		}
		if !tableName.MatchString(*field.set) {
			return t, lock.Invalid(field.name + " is not a plain table name; use at most 40 lower-case letters, digits and underscores")
		}
		*field.to = *field.set
	}
	if t.locks == t.fences {
		return t, lock.Invalid("Table and FenceTable are the same; use two tables")
	}
	return t, nil
}
