package postgreslock_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/postgreslock"
)

// A job that runs in one place at a time.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := postgreslock.Migrate(ctx, pool, postgreslock.Config{}); err != nil {
		log.Fatal(err)
	}
	backend, err := postgreslock.New(pool, postgreslock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = backend.Close(ctx) }()

	err = lock.Do(ctx, backend, "reports:nightly", func(ctx context.Context, h *lock.Handle) error {
		fmt.Println("fence", h.Fence()) // pass it with every write
		return nil
	}, lock.WithAutoExtend())
	if err != nil {
		log.Fatal(err)
	}
}
