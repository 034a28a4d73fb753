package main

import (
	"context"

	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/internal/config"
	"github.com/dronefleet/dronefleet/internal/connect"
)

type auditCommand struct {
	desk
	Subject operator.Subject `arg:"" help:"Kind: drone, order, mission, decision, cycle, depot or warehouse." enum:"drone,order,mission,decision,cycle,depot,warehouse"`
	ID      string           `arg:"" help:"Its id."`
}

// Check implements config.Checker.
func (c *auditCommand) Check(r *config.Refuser) {
	c.desk.Check(r)
	checkID(r, c.ID)
}

// Run prints the history of one entity.
func (c *auditCommand) Run(ctx context.Context) error {
	return c.with(ctx, func(d *operator.Desk, _ *connect.Clients) error { return d.Audit(ctx, c.Subject, c.ID) })
}
