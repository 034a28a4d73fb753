package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/lock"
)

// answerTimeout is how long the store has for one answer.
const answerTimeout = 10 * time.Second

type statusCommand struct {
	oneLock
	JSON bool `help:"Print JSON." name:"json"`
}

// Help gives examples for --help.
func (*statusCommand) Help() string {
	return `Examples:

    locktool status --store firestore://my-project billing:nightly
    locktool status billing:nightly >/dev/null || echo "nobody holds it"

The answer may be out of date when it is printed, so it guards nothing: use "locktool run".`
}

// Run prints the lock.
func (c *statusCommand) Run(ctx context.Context) error {
	return c.with(ctx, func(locks lock.Store, _ *slog.Logger) error {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		held, err := lock.GetByKey(ctx, locks, c.Key)
		if err != nil {
			return err
		}
		if c.JSON {
			err = json.NewEncoder(cli.Stdout).Encode(struct {
				Locked bool       `json:"locked"`
				Lock   *lock.Info `json:"lock,omitempty"`
			}{held != nil, held})
		} else if held != nil {
			_, err = fmt.Fprintf(cli.Stdout, "held: %s\n", describe(*held))
		} else {
			_, err = fmt.Fprintln(cli.Stdout, "free")
		}
		return freeUnless(held != nil, err)
	})
}

// describe is a lock in words.
func describe(held lock.Info) string {
	at := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
	return fmt.Sprintf("fence %s, since %s, until %s unless extended", held.Fence, at(held.AcquiredAtMs), at(held.ExpiresAtMs))
}

// freeUnless gives a command that found no lock its exit status.
func freeUnless(held bool, err error) error {
	if held || err != nil {
		return err
	}
	return &cli.Exit{Status: statusFree}
}

type breakCommand struct {
	oneLock
	Reason string `help:"Why, for the log." required:"" placeholder:"TEXT"`
}

// Check implements config.Checker.
func (c *breakCommand) Check(r *config.Refuser) {
	c.oneLock.Check(r)
	if strings.TrimSpace(c.Reason) == "" {
		r.Refuse("reason", "is empty; say why the lock must end")
	}
}

// Help gives examples for --help.
func (*breakCommand) Help() string {
	return `The next holder gets a higher fence, so whatever checks fences refuses the former holder. A
"locktool run" that holds the lock stops its command at its next extension. The log on
standard error records who broke which lock and why, before it is broken.

Example:

    locktool break --store firestore://my-project billing:nightly --reason "host lost power"`
}

// Run breaks the lock.
func (c *breakCommand) Run(ctx context.Context) error {
	return c.with(ctx, func(locks lock.Store, log *slog.Logger) error {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		broken, err := lock.Break(ctx, locks, c.Key, func(held lock.Info) error {
			log.WarnContext(ctx, "breaking a lock", slog.String("reason", c.Reason), slog.String("by", cli.Instance()),
				slog.String("key_hash", held.KeyHash), slog.String("lock_id_hash", held.LockIDHash), slog.String("fence", string(held.Fence)))
			return nil
		})
		if err == nil && broken != nil {
			_, err = fmt.Fprintf(cli.Stdout, "broken: %s\n", describe(*broken))
		} else if err == nil {
			_, err = fmt.Fprintln(cli.Stdout, "free")
		}
		return freeUnless(broken != nil, err)
	})
}
