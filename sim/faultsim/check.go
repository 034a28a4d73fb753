package faultsim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleethistory"
	"github.com/dronefleet/dronefleet/sim/fleetlink"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// drainPatience is how long the backlog may stand still after the last fault, in machine
// time. A busy machine takes long to settle it, so only a backlog that no longer falls is
// a failure. The longest rests are shorter: 12 s for the locks of a killed process's
// transaction at the slowest speed, 3 s for a lease and the longest backoff.
const drainPatience = 45 * time.Second

// drain waits until every message is settled. It gives up when the backlog has not fallen
// for drainPatience, and returns how many messages are left.
func (sim *simulation) drain(ctx context.Context) int {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	least, progress := fleetlink.Backlog(sim.pubsub), time.Now()
	for least > 0 && time.Since(progress) < drainPatience {
		select {
		case <-ctx.Done():
			return least
		case <-ticker.C:
		}
		if left := fleetlink.Backlog(sim.pubsub); left < least {
			least, progress = left, time.Now()
		}
	}
	return least
}

// check reads what the run left behind and checks it.
func (sim *simulation) check(ctx context.Context) (Result, error) {
	h, letters, err := fleethistory.Read(ctx, sim.store, sim.reliable.PubSub)
	if err != nil {
		return Result{}, err
	}
	h.Confirmed = sim.confirmations.Messages()
	h.TopSpeedKmh = topSpeedKmh
	h.Unwritten = policy.DefaultForetelling().Unwritten(policy.Limits{})
	h.Observations, h.Readings = sim.observations, sim.readings
	// Two managers' clocks may differ by twice the skew, and a commit takes
	// machine time while events carry simulated time.
	h.ClockTolerance = 2*maxSkew + time.Duration(float64(time.Second)*sim.cfg.Speed)
	r := Result{
		History: h, Verdict: invariant.Check(h), Faults: sim.injected, Events: len(h.Events), Decided: sim.decided, MaxHeap: sim.maxHeap,
		Amendments:  amendmentsOf(h),
		DeadLetters: map[string]int{}, Orders: make(map[domain.OrderStatus]int), Rejected: map[string]int{},
	}
	for _, s := range append(sim.managers, sim.optimizers...) {
		r.Starts += s.starts
	}
	refused, reasons := make(map[string]bool, len(letters)), make(map[string]string, len(letters))
	for _, l := range letters {
		refused[l.MessageID], reasons[l.MessageID] = true, l.Reason
		r.DeadLetters[l.Reason]++
		if l.Attributes[poisonAttr] == "" {
			r.Complaints = append(r.Complaints, fmt.Sprintf("good message %s of %s was dead-lettered: %s: %s", l.MessageID, l.Topic, l.Reason, l.Error))
		}
	}
	early, err := sim.acks.complaints(refused)
	if err != nil {
		return Result{}, err
	}
	forged, err := sim.checkFences(ctx, h)
	if err != nil {
		return Result{}, err
	}
	r.Complaints = slices.Concat(r.Complaints, early, forged, sim.checkSenders(reasons))
	for _, o := range h.Orders {
		r.Orders[o.Status]++
	}
	for _, e := range h.Events {
		if e.Entity == domain.EntityOrder && strings.Contains(e.Reason, "late report") {
			r.Late++
		}
		if e.Entity == domain.EntityOrder && e.Cause == domain.CauseCycle {
			r.HandedOver++
		}
	}
	for _, e := range h.Ledger {
		if e.Outcome == domain.OutcomeApplied {
			r.Applied++
		} else {
			r.Rejected[e.Reason]++
		}
	}
	return r, nil
}

// findings is everything the product did wrong.
func (r Result) findings() []string {
	var found []string
	for _, v := range r.Verdict.Violations {
		found = append(found, v.String())
	}
	return append(found, r.Complaints...)
}

// reports tells whether the invariant or requirement was found broken.
func (r Result) reports(rule string) bool {
	return slices.ContainsFunc(r.findings(), func(f string) bool { return strings.HasPrefix(f, rule+" ") })
}
