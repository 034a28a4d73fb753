package postgreslock

import (
	"testing"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// BenchmarkPair is an acquisition and its release on one connection, uncontended, beside
// a bare upsert and delete of a row: with fsync on, as installed, and off.
func BenchmarkPair(b *testing.B) {
	needPostgres(b)
	for _, fsync := range []string{"on", "off"} {
		server := storeserver.Postgres(b, "fsync="+fsync)
		pool := newPool(b, server.URL+"?pool_max_conns=1")
		if err := Migrate(bg, pool, Config{}); err != nil {
			b.Fatal(err)
		}
		if _, err := pool.Exec(bg, "CREATE TABLE bare (key TEXT PRIMARY KEY, lock_id TEXT NOT NULL, expires_at_ms BIGINT NOT NULL)"); err != nil {
			b.Fatal(err)
		}
		backend := newBackend(b, pool, Config{})
		id := lock.NewLockID()
		b.Run("fsync "+fsync, func(b *testing.B) {
			storeserver.Compare(b, 5, func() {
				if _, err := pool.Exec(bg, "INSERT INTO bare VALUES ($1, $2, $3) ON CONFLICT (key) DO UPDATE "+
					"SET lock_id = EXCLUDED.lock_id, expires_at_ms = EXCLUDED.expires_at_ms", "k", id, int64(1)); err != nil {
					b.Fatal(err)
				}
				if _, err := pool.Exec(bg, "DELETE FROM bare WHERE key = $1 AND lock_id = $2", "k", id); err != nil {
					b.Fatal(err)
				}
			}, func() { mustRelease(b, backend, lock.Ref{Key: "k", LockID: mustAcquire(b, backend, "k").LockID}) })
		})
	}
}
