package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/dronefleet/dronefleet/app/apikeys"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
)

type keysCommand struct {
	Create keysCreate `cmd:"" help:"Make a key and print it, once and alone, to standard output."`
	List   keysList   `cmd:"" help:"List keys: for whom, until when, and when each was last used."`
	Revoke keysRevoke `cmd:"" help:"End a key. Every process refuses it within ten seconds."`
}

type keysCreate struct {
	desk
	Role      domain.KeyRole `help:"What the key may do: viewer, operator, requester or drone." required:"" placeholder:"ROLE"`
	Requester string         `help:"Whose orders a key of role requester may make, see and change." placeholder:"REQUESTER"`
	Drone     string         `help:"As which drone a key of role drone may fly." placeholder:"DRONE"`
	Expires   string         `help:"When it ends: days from now such as 90d, a duration such as 12h, a date or a time; at most 5 years." default:"365d" placeholder:"TIME"`
	Reason    string         `help:"What it is for, for the audit." required:"" placeholder:"TEXT"`
}

// Check implements config.Checker.
func (c *keysCreate) Check(r *config.Refuser) {
	c.desk.Check(r)
	if err := operator.CheckReason(c.Reason); err != nil {
		r.Refuse("reason", "%s", err)
	}
	use, err := c.use(time.Now())
	if err == nil {
		err = use.Check(time.Now())
	}
	if wrong, is := errors.AsType[*operator.FieldError](err); is {
		r.Refuse(wrong.Field, "%s", wrong.Err)
	}
}

// use is what the key is for.
func (c *keysCreate) use(now time.Time) (operator.KeyUse, error) {
	expires, err := apikeys.ParseExpiry(c.Expires, now)
	if err != nil {
		return operator.KeyUse{}, &operator.FieldError{Field: "expires", Err: err}
	}
	return operator.KeyUse{Role: c.Role, Requester: c.Requester, Drone: c.Drone, ExpiresAt: expires}, nil
}

// Run makes a key.
func (c *keysCreate) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		use, err := c.use(d.Store.Now())
		if err != nil {
			return err
		}
		return d.CreateKey(ctx, use, c.Reason, os.Stderr)
	})
}

type keysList struct {
	desk
	page
}

// Check implements config.Checker.
func (c *keysList) Check(r *config.Refuser) {
	c.desk.Check(r)
	c.checkPage(r, "keys", domain.CheckDocumentID)
}

// Run lists keys.
func (c *keysList) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return c.on(d).ListKeys(ctx, c.page.page()) })
}

type keysRevoke struct {
	desk
	ID     string `arg:"" help:"Its id, as the list shows it, or the text of a key that has leaked."`
	Reason string `help:"Why, for the audit." required:"" placeholder:"TEXT"`
}

// Check implements config.Checker.
func (c *keysRevoke) Check(r *config.Refuser) {
	c.desk.Check(r)
	if err := operator.CheckReason(c.Reason); err != nil {
		r.Refuse("reason", "%s", err)
	}
}

// Run revokes a key.
func (c *keysRevoke) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return d.RevokeKey(ctx, c.ID, c.Reason) })
}
