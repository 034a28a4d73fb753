package main

import (
	"context"
	"fmt"
)

// movedCommand replaces a command that moved to cmd/dronefleet.
type movedCommand struct {
	Args []string `arg:"" optional:"" passthrough:""`
	name string
}

// Run names the command to use instead.
func (c movedCommand) Run(context.Context) error {
	return fmt.Errorf("\"statemanager %s\" has moved: use \"dronefleet %s\" (go run ./cmd/dronefleet %s)", c.name, c.name, c.name)
}
