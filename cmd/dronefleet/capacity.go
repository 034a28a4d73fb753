package main

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/dronefleet/dronefleet/internal/cli"
	"github.com/dronefleet/dronefleet/sim/capacity"
)

type capacityCommand struct {
	Drones        int     `help:"Size of the fleet." default:"1000" check:"min 1 max 1000000"`
	Areas         int     `help:"Planning areas; default one for every 1,000 drones." check:"min 0 max 1000" placeholder:"N"`
	Hz            float64 `help:"Reports per second and drone." default:"1" check:"over 0 max 100"`
	Ownership     string  `help:"Who runs the cycles of an area, as with the optimizer." enum:"members,lock" default:"members"`
	Optimizers    int     `help:"Optimizers; default one for every area, two at least, and two with --ownership lock." check:"min 0 max 1000" placeholder:"N"`
	StateManagers int     `help:"State Managers; default one for every 10,000 drones, two at least." check:"min 0 max 1000" placeholder:"N"`
	Output        string  `help:"How to print the result: text or json." enum:"text,json" default:"text" short:"o"`
}

// Run prints what the model says of the fleet.
func (c *capacityCommand) Run(context.Context) error {
	model, err := capacity.Stored()
	if err != nil {
		return err
	}
	fleet := capacity.Typical(c.Drones, c.Areas, c.Ownership == "members")
	fleet.Hz = c.Hz
	fleet.Optimizers, fleet.Managers = cmp.Or(c.Optimizers, fleet.Optimizers), cmp.Or(c.StateManagers, fleet.Managers)
	summary := model.Summary(fleet, capacity.Today)
	if c.Output == "text" {
		return summary.Print(cli.Stdout)
	}
	encoder := json.NewEncoder(cli.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(summary)
}
