package postgreslock

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dronefleet/dronefleet/lock"
)

// The migration may run again, while locks are held, and in either order with SyncGuard's.
func TestMigrate_RunsAgain(t *testing.T) {
	t.Parallel()
	b, pool := fresh(t)
	res := mustAcquire(t, b, "k")
	if err := Migrate(bg, pool, Config{}); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, b, lock.Ref{Key: "k", LockID: res.LockID})
	if again := mustAcquire(t, b, "k"); again.Fence != "000000000000002" {
		t.Errorf("fence %s after a second migration", again.Fence)
	}
}

// Two backends with tables of their own share a database and no lock.
func TestConfig_NamesTables(t *testing.T) {
	t.Parallel()
	b, pool := fresh(t)
	locks, fences := "my_locks", "my_fences"
	cfg := Config{Table: &locks, FenceTable: &fences}
	if _, err := newBackend(t, pool, cfg).Acquire(bg, lock.AcquireRequest{Key: "k", TTL: ttl}); !errors.Is(err, lock.ErrInvalidArgument) || !strings.Contains(err.Error(), "run locktool migrate") {
		t.Errorf("without the schema: %v", err)
	}
	if err := Migrate(bg, pool, cfg); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, b, "k")
	mustAcquire(t, newBackend(t, pool, cfg), "k")
	for _, bad := range []string{"", "Locks", "a;b", "public.locks", strings.Repeat("a", 41), fences} {
		if _, err := New(pool, Config{Table: &bad, FenceTable: &fences}); !errors.Is(err, lock.ErrInvalidArgument) {
			t.Errorf("table %q: %v", bad, err)
		}
	}
}

// A client that is pointed at a standby, or may only read, is told so by its first call.
func TestBackend_NamesAServerThatOnlyReads(t *testing.T) {
	t.Parallel()
	direct, pool := fresh(t)
	ref := lock.Ref{Key: "k", LockID: mustAcquire(t, direct, "k").LockID}
	cfg := pool.Config()
	cfg.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	reading, err := pgxpool.NewWithConfig(bg, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(reading.Close)
	b := newBackend(t, reading, Config{})
	for name, call := range map[string]func() error{
		"acquire of a free lock": func() error {
			_, err := b.Acquire(bg, lock.AcquireRequest{Key: "free", TTL: ttl})
			return err
		},
		"acquire of a lock that is held": func() error {
			_, err := b.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: ttl})
			return err
		},
		"extend":  func() error { _, err := b.Extend(bg, ref, ttl); return err },
		"release": func() error { _, err := b.Release(bg, ref); return err },
	} {
		err := call()
		e, ok := errors.AsType[*lock.Error](err)
		if !ok || e.Code != lock.CodeServiceUnavailable || e.OutcomeUnknown || !strings.Contains(err.Error(), "is a replica: use the primary's address") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// L-FENCE-03, L-FENCE-05, L-FENCE-06: counters at their ends, damaged and lost.
func TestBackend_GuardsTheCounter(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, before string // SQL
		fence        lock.Fence
	}{
		{"last fence", "INSERT INTO syncguard_fence_counters VALUES ('fence:k', 899999999999999)", "900000000000000"},
		{"used up", "INSERT INTO syncguard_fence_counters VALUES ('fence:k', 900000000000000)", ""},
		{"negative", "INSERT INTO syncguard_fence_counters VALUES ('fence:k', -1)", ""},
		{"lost, with an old lock", "INSERT INTO syncguard_locks VALUES ('k', 'x', 0, 0, '000000000000041', 'k')", "000000000000042"},
		{"lost, with a damaged lock", "INSERT INTO syncguard_locks VALUES ('k', 'x', 0, 0, 'abc', 'k')", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b, pool := fresh(t)
			if _, err := pool.Exec(bg, row.before); err != nil {
				t.Fatal(err)
			}
			counters := func() (text string) {
				if err := pool.QueryRow(bg, "SELECT coalesce(string_agg(fence::TEXT, ' '), '') FROM syncguard_fence_counters").Scan(&text); err != nil {
					t.Fatal(err)
				}
				return text
			}
			before := counters()
			res, err := b.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: ttl})
			if row.fence == "" {
				if !errors.Is(err, lock.ErrInternal) || counters() != before {
					t.Errorf("%+v, %v; counter %s, was %s", res, err, counters(), before)
				}
				return
			}
			if err != nil || res.Fence != row.fence {
				t.Errorf("%+v, %v, want fence %s", res, err, row.fence)
			}
		})
	}
}

// A contended acquisition of another lock id while the counter is missing keeps the order.
func TestBackend_RestoresACounterUnderALiveLock(t *testing.T) {
	t.Parallel()
	b, pool := fresh(t)
	first := mustAcquire(t, b, "k")
	if _, err := pool.Exec(bg, "DELETE FROM syncguard_fence_counters"); err != nil {
		t.Fatal(err)
	}
	if res, err := b.Acquire(bg, lock.AcquireRequest{Key: "k", TTL: ttl}); res.OK || err != nil {
		t.Fatal(res, err)
	}
	mustRelease(t, b, lock.Ref{Key: "k", LockID: first.LockID})
	if second := mustAcquire(t, b, "k"); second.Fence <= first.Fence {
		t.Errorf("fence %s after %s", second.Fence, first.Fence)
	}
}

// The tests' server has fsync off, and is told of.
func TestBackend_ReportsWhatMayLoseCommits(t *testing.T) {
	t.Parallel()
	b, pool := fresh(t)
	if _, err := pool.Exec(bg, "ALTER TABLE syncguard_fence_counters SET UNLOGGED"); err != nil {
		t.Fatal(err)
	}
	warnings, err := b.CheckDurability(bg)
	if text := strings.Join(warnings, "\n"); err != nil || len(warnings) != 2 || !strings.Contains(text, "fsync is off") || !strings.Contains(text, "UNLOGGED") {
		t.Errorf("%q, %v", warnings, err)
	}
	if report, err := b.CheckClock(bg); err != nil || report.Level != lock.ClockOK {
		t.Errorf("clock of this machine: %+v, %v", report, err)
	}
}

// A key that Postgres cannot store is refused before it is sent.
func TestBackend_RefusesNUL(t *testing.T) {
	t.Parallel()
	b, _ := fresh(t)
	if _, err := b.Acquire(bg, lock.AcquireRequest{Key: "a\x00b", TTL: ttl}); !errors.Is(err, lock.ErrInvalidArgument) {
		t.Error(err)
	}
	if list, err := b.List(bg); len(list) != 0 || err != nil {
		t.Error(list, err)
	}
}
