package main

import (
	"context"

	"github.com/dronefleet/dronefleet/app/manager"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
)

type locksCommand struct {
	List  locksList  `cmd:"" help:"List the locks that are held."`
	Show  locksShow  `cmd:"" help:"Show the lock of one key."`
	Break locksBreak `cmd:"" help:"End the lock of one key, no matter who holds it. Its fences keep rising."`
}

// lockDesk holds the flags of the commands about locks.
type lockDesk struct {
	desk
	cli.Locks
}

// Check implements config.Checker.
func (c *lockDesk) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.CheckLocks(r)
}

func (c *lockDesk) with(ctx context.Context, f func(*operator.Desk, *connect.Clients) error) error {
	return c.withLocks(ctx, c.Locks, f)
}

type locksList struct {
	lockDesk
	page
	Raw bool `help:"Show keys and lock ids, not only their hashes. Keep the ids secret."`
}

// Check implements config.Checker.
func (c *locksList) Check(r *config.Refuser) {
	c.lockDesk.Check(r)
	c.checkPage(r, "locks", operator.CheckKeyHash)
}

// Run lists the live locks.
func (c *locksList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		known, err := d.KnownKeys(ctx, manager.LockKeys, domain.CycleLockKey)
		if err != nil {
			return err
		}
		return c.on(d).ListLocks(ctx, c.Raw, known, c.page.page())
	})
}

type locksShow struct {
	lockDesk
	Key string `arg:"" help:"Key of the lock, such as optimizer:cycle:DEPOT-1."`
	Raw bool   `help:"Show the lock id, not only its hash. Keep it secret."`
}

// Check implements config.Checker.
func (c *locksShow) Check(r *config.Refuser) {
	c.lockDesk.Check(r)
	if c.Key == "" {
		r.Refuse("key", "is empty; \"locks list\" shows what is held")
	}
}

// Run shows one lock.
func (c *locksShow) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return d.ShowLock(ctx, c.Key, c.Raw) })
}

type locksBreak struct {
	lockDesk
	Key    string `arg:"" help:"Key of the lock, such as optimizer:cycle:DEPOT-1."`
	Reason string `help:"Why, for the audit." required:"" placeholder:"TEXT"`
}

// Check implements config.Checker.
func (c *locksBreak) Check(r *config.Refuser) {
	c.lockDesk.Check(r)
	if err := operator.CheckLockKey(c.Key); err != nil {
		r.Refuse("key", "%s", err)
	}
	if err := operator.CheckReason(c.Reason); err != nil {
		r.Refuse("reason", "%s", err)
	}
}

// Run breaks one lock.
func (c *locksBreak) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return d.BreakLock(ctx, c.Key, c.Reason) })
}
