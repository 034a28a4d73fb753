package devrun

import (
	"context"
	"maps"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleethistory"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// summary reads what the run left behind and checks it.
func (run *devRun) summary(ctx context.Context) (Summary, error) {
	r := Summary{
		Seed: run.cfg.Seed, ElapsedSeconds: time.Since(run.began).Seconds(),
		SimulatedSeconds: run.clock.Now().Sub(run.simBegan).Seconds(),
		FirstTelemetryMs: millis(run.firstTelemetry), Unsettled: run.unsettled,
	}
	if run.cfg.Terminal {
		r.columns = printColumns
	}
	// The counters first: reading the history would add to them.
	r.addMeter(run.product.Meter, run.cfg.Speed)
	r.Pace = run.pace()
	h, err := run.history(ctx)
	if err != nil {
		return r, err
	}
	r.Orders = summarizeOrders(h.Orders, h.Events, run.simBegan)
	r.Priorities = summarizePriorities(h.Orders, run.clock.Now())
	r.Decisions = summarizeDecisions(h.Ledger)
	r.Cycles.Causes = run.causes()
	r.MissionsFailed = make(map[domain.FailureReason]int)
	carried := 0
	for _, m := range h.Missions {
		r.FlownKm += m.PlannedKm()
		carried += len(m.OrderIDs)
		if m.Status == domain.MissionFailed {
			r.MissionsFailed[m.FailureReason]++
		}
	}
	r.Load = loadOf(run.cfg.OrdersPerMinute, run.cfg.Drones, run.cfg.charging(), r.FlownKm, carried)
	used := run.outside.drones.Stats().Charging
	r.Charging = ChargingSummary{Slots: used.Slots, Most: used.Most, WaitedSeconds: used.Waited.Seconds()}
	if run.drill != nil {
		r.Gateways = run.drill.result()
	}
	checked := invariant.Check(h)
	r.Invariants = InvariantSummary{Checked: checked.Checked, Violations: []string{}}
	for _, v := range checked.Violations {
		r.Invariants.Violations = append(r.Invariants.Violations, v.String())
	}
	return r, nil
}

// causes is why cycles failed, with counts.
func (run *devRun) causes() map[string]int {
	run.mu.Lock()
	defer run.mu.Unlock()
	return maps.Clone(run.failures)
}

// history gathers documents, events, dead letters and confirmed messages.
func (run *devRun) history(ctx context.Context) (invariant.History, error) {
	h, _, err := fleethistory.Read(ctx, run.manager.Store, run.outside.clients.PubSub)
	if err != nil {
		return h, err
	}
	if run.unsettled == 0 { // else a message without effect may be waiting, not lost
		h.Confirmed = run.outside.confirmations.Messages()
	}
	h.Observations = run.observed.list
	// Commits take machine time, events carry simulated time.
	h.ClockTolerance = time.Duration(float64(invariant.DefaultClockTolerance)*run.cfg.Speed) + run.cfg.GameDay.ClockSkew.Abs()
	h.Unwritten = policy.DefaultForetelling().Unwritten(policy.Limits{})
	return h, nil
}

// observe samples the drones' documents until ctx ends, for the checker: positions
// and times have no events, and must not go back either.
func (run *devRun) observe(ctx context.Context) {
	store := run.outside.store()
	ticker := time.NewTicker(observeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		drones, err := store.Drones(ctx, "", firestoretx.Page{Limit: observedDrones})
		if err != nil {
			continue // the run is ending, or the next read succeeds
		}
		for _, d := range drones {
			run.observed.add(invariant.Observation{DroneID: d.ID, LastUpdate: d.LastUpdate})
		}
	}
}

// observed keeps what the checker needs of all observations: the latest of each
// drone, and the one before every step back. The zero value is ready to use.
type observed struct {
	list   []invariant.Observation
	latest map[domain.DroneID]int // index in list
}

func (o *observed) add(next invariant.Observation) {
	if o.latest == nil {
		o.latest = map[domain.DroneID]int{}
	}
	i, seen := o.latest[next.DroneID]
	if seen && !next.LastUpdate.Before(o.list[i].LastUpdate) {
		o.list[i] = next
		return
	}
	o.latest[next.DroneID] = len(o.list)
	o.list = append(o.list, next)
}

// observeEvery and observedDrones bound the cost of sampling a large fleet.
const (
	observeEvery   = 2 * time.Second
	observedDrones = 200
)
