package postgreslock

import (
	"context"
	_ "embed"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Schema is what Migrate runs for the default tables. It may run any number of times.
//
//go:embed schema.sql
var Schema string

// Migrate creates the missing tables, functions and trigger that a Backend with the same
// configuration needs. It needs the right to create them; a Backend does not.
func Migrate(ctx context.Context, pool *pgxpool.Pool, cfg Config) error {
	t, err := tablesOf(cfg)
	if err != nil {
		return err
	}
	// Without arguments all statements of a text run in one transaction.
	if _, err := pool.Exec(ctx, t.in(Schema)); err != nil {
		return classify(ctx, err).At("migrate", "", "")
	}
	return nil
}

// in replaces the default names in a text of SQL.
func (t tables) in(sql string) string {
	return strings.NewReplacer(DefaultTable, t.locks, DefaultFenceTable, t.fences).Replace(sql)
}

// statements are what a backend sends.
type statements struct {
	acquire, release, extend string
	byKey, byID, all         string
	listen, state            string
	counter, durability      string
}

func (t tables) statements() statements {
	const fields = "SELECT key, lock_id, expires_at_ms, acquired_at_ms, fence, " + serverTime + " FROM syncguard_locks "
	return statements{
		acquire: t.in("SELECT syncguard_locks_acquire($1, $2, $3)"),
		release: t.in("SELECT syncguard_locks_release($1, $2)"),
		extend:  t.in("SELECT syncguard_locks_extend($1, $2, $3)"),
		byKey:   t.in(fields + "WHERE key = $1"),
		byID:    t.in(fields + "WHERE lock_id = $1"),
		all:     t.in(fields + `ORDER BY key COLLATE "C"`),
		counter: t.in("SELECT coalesce((SELECT fence FROM syncguard_fence_counters WHERE fence_key = 'fence:' || $1), 0), pg_is_in_recovery()"),
		durability: t.in("SELECT current_setting('fsync')::BOOLEAN, current_setting('full_page_writes')::BOOLEAN, " +
			"(SELECT count(*) FROM pg_stat_replication), current_setting('synchronous_standby_names'), " +
			"current_setting('synchronous_commit') = 'local', " +
			"EXISTS (SELECT FROM pg_class WHERE relpersistence = 'u' AND oid IN ('syncguard_locks'::regclass, 'syncguard_fence_counters'::regclass))"),
		listen: t.in("LISTEN syncguard_locks"),
		state: t.in("SELECT coalesce((SELECT fence FROM syncguard_fence_counters WHERE fence_key = 'fence:' || $1), 0), " +
			"coalesce((SELECT expires_at_ms FROM syncguard_locks WHERE key = $1), 0), " + serverTime),
	}
}

// serverTime is the time of the server in microseconds, at the moment it is read.
const serverTime = "(extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT"
