package postgreslock

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/testkit/leaktest"
	"github.com/dronefleet/dronefleet/testkit/storeserver"
)

var bg = context.Background()

const (
	ttl = 30 * time.Second
	// skew is how far the server's clock may seem to be off this machine's.
	skew = 5 * time.Millisecond
)

// shared is the server of all tests that do not stop it; nil where none is
// installed.
var shared *storeserver.Server

func TestMain(m *testing.M) {
	var all storeserver.Main
	if storeserver.HasPostgres() {
		shared = storeserver.Postgres(&all, "fsync=off")
	}
	code := m.Run()
	all.End()
	if code == 0 {
		if err := leaktest.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

var databases atomic.Int64

// database makes one of the test's own on the shared server and returns its address.
func database(tb testing.TB) string {
	tb.Helper()
	needPostgres(tb)
	conn, err := pgx.Connect(bg, shared.URL)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(bg) }()
	name := fmt.Sprintf("test%d", databases.Add(1))
	if _, err := conn.Exec(bg, "CREATE DATABASE "+name); err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprintf("postgres://postgres@%s/%s", shared.Addr(), name)
}

func needPostgres(tb testing.TB) {
	tb.Helper()
	if shared == nil {
		tb.Skip("postgres is not installed")
	}
}

// newPool opens a pool, closed with the test.
func newPool(tb testing.TB, dsn string) *pgxpool.Pool {
	tb.Helper()
	pool, err := pgxpool.New(bg, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

// newBackend makes a backend on a pool, closed with the test.
func newBackend(tb testing.TB, pool *pgxpool.Pool, cfg Config) *Backend {
	tb.Helper()
	b, err := New(pool, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(bg); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// fresh makes a backend on a migrated database of the test's own.
func fresh(tb testing.TB) (*Backend, *pgxpool.Pool) {
	tb.Helper()
	pool := newPool(tb, database(tb))
	if err := Migrate(bg, pool, Config{}); err != nil {
		tb.Fatal(err)
	}
	return newBackend(tb, pool, Config{}), pool
}

func mustAcquire(tb testing.TB, b lock.Backend, key string) lock.AcquireResult {
	tb.Helper()
	res, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
	if err != nil || !res.OK {
		tb.Fatalf("acquire: %+v, %v", res, err)
	}
	return res
}

func mustRelease(tb testing.TB, b lock.Backend, ref lock.Ref) {
	tb.Helper()
	if res, err := b.Release(bg, ref); err != nil || !res.OK {
		tb.Fatalf("release: %+v, %v", res, err)
	}
}
