package devrun

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleethistory"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// report reads what the run left behind and has it judged.
func (f *fleet) report(ctx context.Context) (Report, error) {
	r := Report{
		Seed: f.cfg.Seed, ElapsedSeconds: time.Since(f.began).Seconds(),
		SimulatedSeconds: f.clock.Now().Sub(f.simBegan).Seconds(),
		FirstTelemetryMs: millis(f.firstTelemetry), Unsettled: f.unsettled,
	}
	// The figures first: reading the history would add to them.
	r.reportMeter(f.product.Meter, f.cfg.Speed)
	r.Pace = f.pace()
	h, err := f.history(ctx)
	if err != nil {
		return r, err
	}
	r.Orders = reportOrders(h.Orders, h.Events)
	r.Priorities = reportPriorities(h.Orders, f.clock.Now())
	r.Decisions = reportDecisions(h.Ledger)
	r.MissionsFailed = map[domain.FailureReason]int{}
	for _, m := range h.Missions {
		r.FlownKm += m.PlannedKm()
		if m.Status == domain.MissionFailed {
			r.MissionsFailed[m.FailureReason]++
		}
	}
	verdict := invariant.Check(h)
	r.Invariants = InvariantReport{Checked: verdict.Checked, Violations: []string{}}
	for _, v := range verdict.Violations {
		r.Invariants.Violations = append(r.Invariants.Violations, v.String())
	}
	return r, nil
}

// history gathers documents, events, dead letters and confirmed messages.
func (f *fleet) history(ctx context.Context) (invariant.History, error) {
	h, err := fleethistory.Documents(ctx, f.manager.Store)
	if err != nil {
		return h, err
	}
	letters, err := fleethistory.DeadLetters(ctx, f.world.PubSub)
	if err != nil {
		return h, err
	}
	h.DeadLetters = append(h.DeadLetters, fleethistory.ForChecker(letters)...)
	if f.unsettled == 0 { // else what was accepted and has no effect may be waiting, not lost
		h.Confirmed = f.confirmations.Messages()
	}
	h.Observations = f.observed.list
	// Commits take machine time, events carry simulated time.
	h.ClockTolerance = time.Duration(float64(invariant.DefaultClockTolerance)*f.cfg.Speed) + f.cfg.GameDay.ClockSkew.Abs()
	return h, nil
}

// confirming adds every decision that the server took to c, for the checker.
func confirming(publish dispatch.PublishFunc, c *fleetsim.Confirmations) dispatch.PublishFunc {
	return func(ctx context.Context, decisions []domain.Decision) []error {
		errs := publish(ctx, decisions)
		for i, d := range decisions {
			if errs[i] == nil {
				c.Add(invariant.Message{Topic: pubsubio.TopicDecisions, DecisionID: d.ID, Timestamp: d.SnapshotTime})
			}
		}
		return errs
	}
}

// observe samples the drones' documents until ctx ends, for the checker: what
// no event records must not go back either.
func (f *fleet) observe(ctx context.Context) {
	store := firestoretx.New(f.world.Firestore, firestoretx.Config{Now: f.clock.Now})
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
			continue // the run is ending, or the next look succeeds
		}
		for _, d := range drones {
			f.observed.add(invariant.Observation{DroneID: d.ID, LastUpdate: d.LastUpdate})
		}
	}
}

// observed is what the checker needs of all observations: of each drone the
// latest, and the one before every step back. The zero value is ready to use.
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

// observeEvery and observedDrones bound what watching a large fleet for long
// costs.
const (
	observeEvery   = 2 * time.Second
	observedDrones = 200
)
