// Command locktool holds a lock of the lock library while a command runs, and shows and
// breaks locks. See "From a shell" in docs/lock.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
	"github.com/dronefleet/dronefleet/lock"
)

type grammar struct {
	Run     runCommand       `cmd:"" help:"Run a command while holding a lock."`
	Status  statusCommand    `cmd:"" help:"Show whether a lock is held. The exit status is 0 if it is and 1 if it is free."`
	Break   breakCommand     `cmd:"" help:"End a lock, no matter who holds it. The exit status is 0 if it was held and 1 if it was free."`
	Migrate migrateCommand   `cmd:"" help:"Create the tables and functions that locks in PostgreSQL need."`
	Version kong.VersionFlag `help:"Print the version."`
}

// Exit statuses of the tool itself; those of env, nice and timeout where they have one.
const (
	statusFree          = 1   // of status and break: nobody holds the lock
	statusNotAcquired   = 123 // somebody else held the lock for as long as --wait
	statusLost          = 124 // the lease was lost while the command ran
	statusFailed        = 125 // locktool itself failed
	statusCannotExecute = 126
	statusNotFound      = 127
	statusSignalled     = 128 // plus the number of the signal that ended the command
)

func main() {
	cli.MainWith(&grammar{}, "Runs commands under a lock that machines share.", cli.Statuses{Failed: statusFailed, Misused: statusFailed})
}

// storeFlag is the flag that every command has.
type storeFlag struct {
	Store string `help:"Store of the locks: firestore://PROJECT/DATABASE, redis://HOST:PORT/DB, rediss:// for TLS, or postgres://USER@HOST:PORT/DB. LOCK_PASSWORD holds the password if the URL does not." required:"" placeholder:"URL" env:"LOCK_STORE" secret:""`
}

// Check implements config.Checker.
func (c *storeFlag) Check(r *config.Refuser) {
	if _, err := connect.ParseLockStore(c.Store); err != nil {
		r.Refuse("store", "%s", err)
	}
}

// oneLock holds what the commands about a lock need: a store and the key of a lock in it.
type oneLock struct {
	cli.Logging
	storeFlag
	Key string `arg:"" help:"Key of the lock, such as billing:nightly."`
}

// Check implements config.Checker.
func (c *oneLock) Check(r *config.Refuser) {
	c.storeFlag.Check(r)
	if _, err := lock.NormalizeKey(c.Key); err != nil {
		r.Refuse("key", "%s", err)
	}
}

type migrateCommand struct{ storeFlag }

// Help gives examples for --help.
func (*migrateCommand) Help() string {
	return `Running it again changes nothing, and locks that are held stay held. It needs the right to
create tables and functions; using locks does not. The same statements are in
lock/postgreslock/schema.sql, for migrations of your own.

Example:

    LOCK_PASSWORD=... locktool migrate --store postgres://owner@db:5432/locks`
}

// Run migrates the store.
func (c *migrateCommand) Run(ctx context.Context) error {
	store, err := connect.ParseLockStore(c.Store)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	done, err := store.Migrate(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(cli.Stdout, done)
	return err
}

// migrateTimeout is how long the store has to create its tables.
const migrateTimeout = time.Minute

// closeTimeout is how long the store has to finish what runs in the background.
const closeTimeout = 5 * time.Second

// with connects, calls f and releases everything.
func (c *oneLock) with(ctx context.Context, f func(lock.Store, *slog.Logger) error) error {
	log := c.Logger(os.Stderr)
	address, err := connect.ParseLockStore(c.Store)
	if err != nil {
		return err
	}
	locks, stop, err := address.Open(ctx, log)
	if err != nil {
		return err
	}
	err = f(locks, log)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if unclosed := errors.Join(locks.Close(closing), stop()); unclosed != nil {
		log.WarnContext(ctx, "the lock store was not closed cleanly", slog.Any("err", unclosed))
	}
	return err
}
