package main

import (
	"context"
	"fmt"
)

// movedCommand stands where a command was that cmd/dronefleet has now.
type movedCommand struct {
	Args []string `arg:"" optional:"" passthrough:""`
	name string
}

// Run names the command to use instead.
func (c movedCommand) Run(context.Context) error {
	return fmt.Errorf("\"statemanager %s\" has moved: use \"dronefleet %s\" (go run ./cmd/dronefleet %s)", c.name, c.name, c.name)
}
