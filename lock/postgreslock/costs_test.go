package postgreslock

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dronefleet/dronefleet/lock"
)

// queries counts the statements of a pool.
type queries struct{ n atomic.Int64 }

func (q *queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	q.n.Add(1)
	return ctx
}

func (q *queries) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// Each verb is one statement.
func TestBackend_NeedsOneStatementForAVerb(t *testing.T) {
	needPostgres(t)
	cfg, err := pgxpool.ParseConfig(database(t))
	if err != nil {
		t.Fatal(err)
	}
	counted := &queries{}
	cfg.ConnConfig.Tracer = counted
	pool, err := pgxpool.NewWithConfig(bg, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := Migrate(bg, pool, Config{}); err != nil {
		t.Fatal(err)
	}
	b := newBackend(t, pool, Config{})
	const key = "vehicle:7"
	var held lock.AcquireResult
	for _, verb := range []struct {
		name string
		call func() error
	}{
		{"acquire", func() (err error) {
			held, err = b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			return err
		}},
		{"acquire, held", func() error {
			_, err := b.Acquire(bg, lock.AcquireRequest{Key: key, TTL: ttl})
			return err
		}},
		{"isLocked", func() error { _, err := b.IsLocked(bg, key); return err }},
		{"lookup by key", func() error { _, err := b.Lookup(bg, lock.Query{Key: key}); return err }},
		{"lookup by id", func() error { _, err := b.Lookup(bg, lock.Query{LockID: held.LockID}); return err }},
		{"list", func() error { _, err := b.List(bg); return err }},
		{"highest fence", func() error { _, err := b.HighestFence(bg, key); return err }},
		{"extend", func() error { _, err := b.Extend(bg, lock.Ref{LockID: held.LockID, Key: key}, ttl); return err }},
		{"release", func() error { _, err := b.Release(bg, lock.Ref{LockID: held.LockID, Key: key}); return err }},
	} {
		before := counted.n.Load()
		if err := verb.call(); err != nil {
			t.Fatalf("%s: %v", verb.name, err)
		}
		if n := counted.n.Load() - before; n != 1 {
			t.Errorf("%s: %d statements", verb.name, n)
		}
	}
}
