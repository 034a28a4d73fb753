package postgreslock_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/postgreslock"
)

// A process has one pool and one backend for all its locks.
func Example() {
	ctx := context.Background()
	// The work that the lock protects. It passes the fence along with each write.
	writeReport := func(_ context.Context, fence lock.Fence) error {
		fmt.Println("writing with fence", fence)
		return nil
	}

	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL")) // such as postgres://app@localhost:5432/app
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := postgreslock.Migrate(ctx, pool, postgreslock.Config{}); err != nil { // or apply schema.sql
		log.Fatal(err)
	}
	backend, err := postgreslock.New(pool, postgreslock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer backend.Close(ctx) // waits for what runs in the background

	err = lock.Do(ctx, backend, "reports:nightly", func(ctx context.Context, h *lock.Handle) error {
		return writeReport(ctx, h.Fence()) // ctx ends when the lease is lost
	}, lock.WithTTL(15*time.Second), lock.WithAutoExtend())
	fmt.Println("done:", err)
	// Prints:
	// writing with fence 000000000000001
	// done: <nil>
}

// process connects as each process does, and returns how to disconnect.
func process() (pool *pgxpool.Pool, backend *postgreslock.Backend, disconnect func()) {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	if err := postgreslock.Migrate(ctx, pool, postgreslock.Config{}); err != nil { // again: changes nothing
		log.Fatal(err)
	}
	backend, err = postgreslock.New(pool, postgreslock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return pool, backend, func() {
		if err := backend.Close(ctx); err != nil {
			log.Print(err)
		}
		pool.Close()
	}
}

// Who waits is told of the release by the server, long before the next try.
func Example_waiting() {
	ctx := context.Background()
	_, ours, disconnect := process()
	defer disconnect()
	_, theirs, disconnectTheirs := process()
	defer disconnectTheirs()

	holder, err := lock.Acquire(ctx, theirs, "depot:north")
	if err != nil {
		log.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = holder.Close() }) // its work is done

	waiter, err := lock.Acquire(ctx, ours, "depot:north",
		lock.WithTimeout(time.Minute), lock.WithMaxRetries(math.MaxInt))
	if err != nil {
		log.Fatal(err)
	}
	defer waiter.Close()
	fmt.Println(waiter.Fence() > holder.Fence())
	// Prints:
	// true
}

// write stores a value unless a later holder has written: one statement, so that nobody
// writes between the comparison and the write.
const write = `
INSERT INTO report AS r (id, fence, value) VALUES ('today', $1, $2)
ON CONFLICT (id) DO UPDATE SET fence = excluded.fence, value = excluded.value WHERE r.fence <= excluded.fence`

// A holder that lost its lease without noticing writes late. The resource compares fences
// and refuses the write.
func Example_fencedWrite() {
	ctx := context.Background()
	pool, backend, disconnect := process()
	defer disconnect()
	if _, err := pool.Exec(ctx, "CREATE TABLE report (id TEXT PRIMARY KEY, fence TEXT NOT NULL, value TEXT NOT NULL)"); err != nil {
		log.Fatal(err)
	}

	paused, err := lock.Acquire(ctx, backend, "reports:today")
	if err != nil {
		log.Fatal(err)
	}
	defer paused.Close()
	// Its lease ends while it is paused; here an operator ends it.
	if _, err := lock.Break(ctx, backend, "reports:today", nil); err != nil {
		log.Fatal(err)
	}
	next, err := lock.Acquire(ctx, backend, "reports:today")
	if err != nil {
		log.Fatal(err)
	}
	defer next.Close()

	for _, w := range []struct {
		holder *lock.Handle
		value  string
	}{{next, "written by the holder"}, {paused, "written late"}} {
		written, err := pool.Exec(ctx, write, string(w.holder.Fence()), w.value)
		fmt.Println(w.value, written.RowsAffected() == 1, err)
	}
	var value string
	err = pool.QueryRow(ctx, "SELECT value FROM report").Scan(&value)
	fmt.Println(value, err)
	// Prints:
	// written by the holder true <nil>
	// written late false <nil>
	// written by the holder <nil>
}

// Of several processes one leads, and the next one does when it ends.
func Example_leader() {
	ctx := context.Background()
	lead := func(name string, work func()) error {
		_, backend, disconnect := process()
		defer disconnect()
		return lock.Do(ctx, backend, "billing:leader", func(_ context.Context, h *lock.Handle) error {
			fmt.Println(name, "leads with fence", h.Fence())
			work()
			return nil
		}, lock.WithTTL(15*time.Second), lock.WithAutoExtend(),
			lock.WithTimeout(time.Hour), lock.WithMaxRetries(math.MaxInt), lock.WithRetryTransient()) // stand by
	}

	second := make(chan error, 1)
	err := lead("a", func() {
		go func() { second <- lead("b", func() {}) }()
		fmt.Println("a has done its work")
	})
	fmt.Println(err, <-second)
	// Prints:
	// a leads with fence 000000000000001
	// a has done its work
	// b leads with fence 000000000000002
	// <nil> <nil>
}
