package faultsim

import (
	"testing"
	"time"

	fsfault "github.com/dronefleet/dronefleet/emulator/firestore/fault"
	"github.com/dronefleet/dronefleet/testkit/longtest"
	"google.golang.org/grpc/codes"
)

// F-ARE-04, F-ARE-05, F-OWN-04: while optimizers and State Managers are killed and frozen, commits
// fail or succeed unheard, and an operator moves the border between two areas of a fleet in flight,
// each order that waits is planned by one area, never by two and never by none; nothing else is lost
// or done twice either.
func TestSimulation_HandsOrdersOverUnderKills(t *testing.T) {
	needsEmbedded(t)
	t.Parallel()
	length := longtest.Size(t, "of machine time with faults", *duration, *duration+*duration/2)
	// Most orders are too heavy for the drones of the area that plans them, so one is handed
	// over as soon as a cycle comes to its end between the kills. At this speed a busy machine
	// keeps up with the fleet.
	const speed = 10
	enough := func(r Result) bool {
		return r.HandedOver > 0 && len(r.History.Readings) > 0 && r.Faults[faultKillOptimizer] > 0 && r.Faults[faultMoveBorder] > 1
	}
	cfg := Config{Seed: *seed, Speed: speed, Duration: length, OrdersPerDrone: 4, Depots: 2, Optimizers: 3, Managers: 3, Until: enough, Log: logger(t)}
	cfg.Plan = planOfKills(cfg.length())
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("orders %v, %d handed over, %d applied, rejected %v, %d processes, %d samples, faults %v",
		r.Orders, r.HandedOver, r.Applied, r.Rejected, r.Starts, len(r.History.Readings), r.Faults)
	report(t, cfg, r)
	if !enough(r) {
		t.Error("no order was handed over, no sample taken, no optimizer killed, or no border moved, however slowly the faults came")
	}
}

// planOfKills kills a process about as often as an area has a cycle, disturbs commits, and twice
// takes the border between the depots away.
func planOfKills(length time.Duration) []plannedFault {
	commits := func(at fsfault.Stage, do fsfault.Action) *fsfault.Rule {
		return &fsfault.Rule{RPC: "Commit", Owner: productOwner, Probability: 0.2, At: at, Do: do}
	}
	plan := []plannedFault{
		{lasts: length, what: faultAnswerLost, rule: commits(fsfault.After, fsfault.Fail(codes.Unavailable))},
		{lasts: length, what: faultAbortStorm, rule: commits(fsfault.Before, fsfault.Abort())},
		{at: length / 4, lasts: shortestFreeze, what: faultFreezeOptimizer, target: 1},
		{at: length / 5, lasts: length / 5, what: faultMoveBorder},
		{at: 3 * length / 5, lasts: length / 5, what: faultMoveBorder},
	}
	const pause = 9 * time.Second
	for i := range int(length / pause) {
		what := faultKillOptimizer
		if i%3 == 2 {
			what = faultKillManager
		}
		plan = append(plan, plannedFault{at: time.Duration(i)*pause + pause/2, what: what, target: i})
	}
	return plan
}
