package postgreslock

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dronefleet/dronefleet/conformance/lock/faultproxy"
	"github.com/dronefleet/dronefleet/conformance/lock/history"
	"github.com/dronefleet/dronefleet/conformance/lock/lockspec"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

// B-05, L-TST-02: clients die, are paused, lose replies and are broken, while the server
// is killed and recovers. Where its clock stands does not matter.
func TestBackend_HistoriesUnderFaults(t *testing.T) {
	for name, row := range map[string]struct {
		ahead time.Duration
		fsync string
	}{
		"fsync":                 {0, "on"},
		"no fsync":              {0, "off"}, // for long trials: a process that is killed loses nothing without it
		"server an hour ahead":  {time.Hour, "off"},
		"server an hour behind": {-time.Hour, "off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := storeserver.Postgres(t, "fsync="+row.fsync)
			trial := history.Trial{Store: history.Store{Time: lockspec.ServerTime, Fail: func() {
				server.Kill()
				server.Restart()
			}}}
			if row.ahead != 0 {
				trial.Acquisitions = 200
			}
			pool := newPool(t, server.URL)
			if err := Migrate(bg, pool, Config{}); err != nil {
				t.Fatal(err)
			}
			setClock(t, pool, row.ahead)
			trial.Connect = func(_ int, seed uint64) (history.Client, func(float64)) {
				proxy, err := faultproxy.StartTCP(server.Addr())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = proxy.Close() })
				cfg := pool.Config()
				cfg.ConnConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "tcp", proxy.Addr())
				}
				cfg.ConnConfig.RuntimeParams["search_path"] = "public, pg_catalog"
				cfg.MaxConns = 3
				through, err := pgxpool.NewWithConfig(bg, cfg)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(through.Close)
				b := newBackend(t, through, Config{})
				settle := func() error {
					ctx, cancel := context.WithTimeout(bg, time.Minute)
					defer cancel()
					if err := b.tasks.Wait(ctx); err != nil {
						return err
					}
					return proxy.Settle(ctx)
				}
				return history.Client{Backend: b, Server: row.ahead, Settle: settle, Cut: proxy.Cut, Certain: true}, func(share float64) {
					proxy.LoseSome(seed, share)
				}
			}
			trial.Run(t)
		})
	}
}

// setClock makes the server's clock wrong for those whose search path says so.
func setClock(t *testing.T, pool *pgxpool.Pool, ahead time.Duration) {
	t.Helper()
	_, err := pool.Exec(bg, fmt.Sprintf(`CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
		AS $$ SELECT pg_catalog.clock_timestamp() + interval '%d seconds' $$`, int(ahead.Seconds())))
	if err != nil {
		t.Fatal(err)
	}
}

// L-FENCE-01: what a fence is for, with a register in the same database.
func TestBackend_FencesKeepLateWritesOut(t *testing.T) {
	t.Parallel()
	b, pool := fresh(t)
	if _, err := pool.Exec(bg, `CREATE TABLE register AS SELECT ''::text AS fence, ''::text AS value`); err != nil {
		t.Fatal(err)
	}
	history.CheckRegister(t, b, history.Register{
		Write: func(fence lock.Fence, value string, fenced bool) (bool, error) {
			done, err := pool.Exec(bg, `UPDATE register SET fence = greatest(fence, $1), value = $2 WHERE fence <= $1 OR NOT $3`,
				string(fence), value, fenced)
			return done.RowsAffected() == 1, err
		},
		Read: func() (value string, err error) {
			err = pool.QueryRow(bg, `SELECT value FROM register`).Scan(&value)
			return value, err
		},
	})
}
