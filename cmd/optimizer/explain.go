package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/explain"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/internal/config"
)

// explainCommand says why an order waited or was late; it publishes nothing.
type explainCommand struct {
	cli.Connection
	stopFlags
	areaFlags
	confidenceFlag
	strangerFlags
	Order       string        `arg:"" help:"The order."`
	At          time.Time     `help:"Explain what Firestore held at this time (RFC 3339): within the last hour or, with point-in-time recovery, at a whole minute of the last seven days. Default now, or soon after the creation of an order that is over. Plans use what was learned by now." placeholder:"TIME"`
	AddDrones   int           `help:"What if: this many more drones wait at the depot, fully charged." default:"0"`
	AddSlots    int           `help:"What if: each depot with limited charging slots had this many more when the drones that wait for one landed." default:"0"`
	DropReserve bool          `help:"What if: no drone is kept for CRITICAL orders to come."`
	SolveLimit  time.Duration `help:"How long each of up to three plans may search." default:"2s" check:"over 0s max 100s"`
	JSON        bool          `name:"json" help:"Print JSON, as GET /api/v1/orders/{id}/explanation does."`
}

// Check implements config.Checker.
func (c *explainCommand) Check(r *config.Refuser) {
	c.CheckConnection(r)
	if err := domain.CheckID(c.Order); err != nil {
		r.Refuse("order", "%q %s", c.Order, err)
	}
	if r.Given("at") && c.At.Year() < 1970 {
		r.Refuse("at", "is before 1970; give %s", readableTimes)
	}
	checkAdded(r, "add-drones", c.AddDrones)
	checkAdded(r, "add-slots", c.AddSlots)
}

func checkAdded(r *config.Refuser, flag string, n int) {
	if n < 0 || n > planner.MaxAdded {
		r.Refuse(flag, "is %d; give 0 to %d", n, planner.MaxAdded)
	}
}

// Run explains and prints.
func (c *explainCommand) Run(ctx context.Context) error {
	clients, clock, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer clients.Close()
	store := firestoretx.New(clients.Firestore, firestoretx.Config{Now: clock.Now, PlanUnregistered: c.planUnregistered()})
	x, err := explain.Order(ctx, store, explain.Request{
		Order: domain.OrderID(c.Order), At: c.At, AreaRadius: c.AreaRadius, Confidence: c.Confidence,
		WhatIf:     planner.WhatIf{AddDrones: c.AddDrones, AddSlots: c.AddSlots, DropReserve: c.DropReserve},
		SolveLimit: c.SolveLimit, Service: c.Service,
	})
	switch {
	case errors.Is(err, firestoretx.ErrNotKept):
		return fmt.Errorf("--at: %w; give %s", err, readableTimes)
	case err != nil:
		return err
	}
	if !c.JSON {
		return explain.WriteText(cli.Stdout, x)
	}
	encoder := json.NewEncoder(cli.Stdout)
	encoder.SetIndent("", " ")
	return encoder.Encode(x)
}
