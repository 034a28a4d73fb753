package postgreslock

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/locktest"
)

// L-TST-01: under each isolation level that a session may have by default.
func TestBackend_KeepsTheContract(t *testing.T) {
	needPostgres(t)
	for _, isolation := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			cfg, err := pgxpool.ParseConfig(database(t))
			if err != nil {
				t.Fatal(err)
			}
			cfg.ConnConfig.RuntimeParams["default_transaction_isolation"] = isolation
			cfg.MaxConns = 20
			pool, err := pgxpool.NewWithConfig(bg, cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			if err := Migrate(bg, pool, Config{}); err != nil {
				t.Fatal(err)
			}
			locktest.RunServerTime(t, func(t *testing.T) lock.Backend { return newBackend(t, pool, Config{}) }, skew)
		})
	}
}
