package main

import (
	"time"

	"github.com/dronefleet/dronefleet/sim/devrun"
)

// gameDay holds the flags that make dev go wrong on purpose; docs/gameday.md
// shows how to practise with them.
type gameDay struct {
	NoOptimizer bool          `help:"Game day: leave planning to optimizers that join."`
	OutageAt    time.Duration `help:"Game day: when Firestore stops answering, in simulated time and before the run is over; 0 for never." default:"0" check:"min 0s"`
	OutageFor   time.Duration `help:"Game day: how long it does not answer, in simulated time." default:"0" check:"min 0s"`
	ClockSkew   time.Duration `help:"Game day: how far the State Manager's and the optimizer's clock is ahead of everybody else's." default:"0"`
}

func (g gameDay) config() devrun.GameDay {
	return devrun.GameDay{WithoutOptimizer: g.NoOptimizer, OutageAt: g.OutageAt, OutageFor: g.OutageFor, ClockSkew: g.ClockSkew}
}
