package main

import (
	"time"

	"github.com/dronefleet/dronefleet/sim/devrun"
)

// gameDay holds the flags that make dev fail on purpose; docs/gameday.md shows how
// to practise with them.
type gameDay struct {
	NoOptimizer bool          `help:"Game day: run no optimizer; optimizers that join do the planning."`
	OutageAt    time.Duration `help:"Game day: when Firestore stops answering, in real time after the start, before --duration ends; 0 for never." default:"0" check:"min 0s"`
	OutageFor   time.Duration `help:"Game day: how long Firestore does not answer, in real time." default:"0" check:"min 0s"`
	ClockSkew   time.Duration `help:"Game day: how far the clock of State Manager and optimizer is ahead of all others, in simulated time." default:"0"`
}

func (g gameDay) config() devrun.GameDay {
	return devrun.GameDay{WithoutOptimizer: g.NoOptimizer, OutageAt: g.OutageAt, OutageFor: g.OutageFor, ClockSkew: g.ClockSkew}
}
