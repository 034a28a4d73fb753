package solver_test

import (
	"github.com/dronefleet/dronefleet/bench/dispatch/scenario"
	"github.com/dronefleet/dronefleet/solver"
	"testing"
	"time"
)

func TestProf(t *testing.T) {
	p := scenario.Generate(scenario.Params{Drones: 100, Orders: 500, Seed: 2})
	pl := solveChecked(t, p, solver.Options{TimeLimit: 4 * time.Second, Workers: 1})
	t.Log(pl.Stats, pl.Objective)
}
