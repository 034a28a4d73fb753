package main

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
)

type auditCommand struct {
	desk
	Subject operator.Subject `arg:"" help:"Kind: drone, order, mission, decision, cycle, depot, warehouse or person." enum:"drone,order,mission,decision,cycle,depot,warehouse,person"`
	ID      string           `arg:"" help:"Its id; of a person the name, as the field by has it."`
	From    time.Time        `help:"Of a person: from this time on (RFC 3339); default a day before --to." placeholder:"TIME"`
	To      time.Time        `help:"Of a person: until this time (RFC 3339); default now." placeholder:"TIME"`
}

// Check implements config.Checker.
func (c *auditCommand) Check(r *config.Refuser) {
	c.desk.Check(r)
	if c.Subject == operator.SubjectPerson {
		if err := operator.CheckBy(c.ID); err != nil {
			r.Refuse("id", "%s", err)
		}
		return
	}
	checkID(r, c.ID)
	for name, at := range map[string]time.Time{"from": c.From, "to": c.To} {
		if !at.IsZero() {
			r.Refuse(name, "is for a person; leave it out for the whole history of a %s", c.Subject)
		}
	}
}

// Run prints the history of one entity, or what a person did.
func (c *auditCommand) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error {
		if c.Subject == operator.SubjectPerson {
			return d.AuditPerson(ctx, c.ID, c.From, c.To)
		}
		return d.Audit(ctx, c.Subject, c.ID)
	})
}
