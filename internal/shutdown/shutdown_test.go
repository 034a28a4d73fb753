package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dronefleet/dronefleet/internal/shutdown"
)

// F-FLOW-01: a process ends within 25 s of the order to stop, and within 10 s on Cloud
// Run. Before that order no phase ends.
func TestPlan_EndsWithinTheLimitOfTheProcess(t *testing.T) {
	for _, c := range []struct {
		plan            shutdown.Plan
		atLeast, before time.Duration
	}{
		{shutdown.StateManager(shutdown.DefaultDrain), shutdown.DefaultDrain, 25 * time.Second},
		{shutdown.StateManager(3 * time.Second), 3 * time.Second, 10 * time.Second},
		{shutdown.Optimizer(), 0, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			export, end := c.plan.Context(ctx, shutdown.Export)
			defer end()
			time.Sleep(time.Hour)
			if export.Err() != nil {
				t.Error("over before the order to stop")
			}
			stop()
			began := time.Now()
			<-export.Done()
			took := time.Since(began)
			if took <= c.atLeast || took >= c.before {
				t.Errorf("%v ends after %s, want more than %s and less than %s", c.plan, took, c.atLeast, c.before)
			}
			if took != c.plan.Total() {
				t.Errorf("%v ends after %s, its total is %s", c.plan, took, c.plan.Total())
			}
		})
	}
}

// F-FLOW-01: phases end one after the other, in the order of the plan.
func TestPlan_PhasesEndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plan := shutdown.Plan{{shutdown.Drain, 3 * time.Second}, {shutdown.Locks, 2 * time.Second}, {shutdown.Export, time.Second}}
		ctx, stop := context.WithCancel(t.Context())
		var phases []context.Context
		for _, step := range plan {
			phase, end := plan.Context(ctx, step.Phase)
			defer end()
			phases = append(phases, phase)
		}
		stop()
		began := time.Now()
		for i, want := range []time.Duration{3 * time.Second, 5 * time.Second, 6 * time.Second} {
			<-phases[i].Done()
			if took := time.Since(began); took != want {
				t.Errorf("%s ends after %s, want %s", plan[i].Phase, took, want)
			}
		}
	})
}

// The context of a phase keeps the values of the process's and leaves nothing
// behind when its work is done.
func TestPlan_ContextKeepsValuesAndIsFreed(t *testing.T) {
	type key struct{}
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine is left
		ctx, stop := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		plan := shutdown.StateManager(time.Minute)
		phase, end := plan.Context(ctx, shutdown.Commands)
		if phase.Value(key{}) != "value" {
			t.Error("the values are lost")
		}
		stop()
		synctest.Wait()
		if phase.Err() != nil {
			t.Error("over with the order to stop")
		}
		end()
		if phase.Err() == nil {
			t.Error("not over although its work is done")
		}
	})
}

// Asking for a phase that the plan lacks is a bug and panics.
func TestPlan_PanicsOnAPhaseThatIsNotPlanned(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	shutdown.Optimizer().Context(t.Context(), shutdown.Commands)
}
