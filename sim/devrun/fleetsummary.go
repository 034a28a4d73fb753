package devrun

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/terminal"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleethistory"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// FleetSummary is how simulated drones and hospitals fared on a fleet that others may
// share. Its JSON form is stable. Orders are those of this process, whoever delivered
// them; drones and invariants are its own, too.
type FleetSummary struct {
	Name             string                     `json:"name"`
	Seed             uint64                     `json:"seed"`
	ElapsedSeconds   float64                    `json:"elapsedSeconds"`
	SimulatedSeconds float64                    `json:"simulatedSeconds"`
	Orders           OrderSummary               `json:"orders"`
	Priorities       map[string]PrioritySummary `json:"priorities"`
	Reports          fleetsim.PublishStats      `json:"reports"`
	CommandsObeyed   int64                      `json:"commandsObeyed"`
	CommandsIgnored  int64                      `json:"commandsIgnored"`
	Crashes          int64                      `json:"crashes"`
	Network          fleetsim.NetworkStats      `json:"network"`
	Drones           int                        `json:"drones"`
	OnMissions       int                        `json:"dronesOnMissions"` // that went offline with one
	Invariants       *InvariantSummary          `json:"invariants,omitempty"`

	columns int // where Print wraps; 0 for nowhere
}

// summary reads the results of the run.
func (run *fleetRun) summary(ctx context.Context) (FleetSummary, error) {
	drones := run.drones.Stats()
	r := FleetSummary{
		Name: run.cfg.Name, Seed: run.cfg.Seed, ElapsedSeconds: time.Since(run.began).Seconds(), SimulatedSeconds: run.clock.Since(run.simBegan).Seconds(),
		Reports: drones.Telemetry, CommandsObeyed: drones.CommandsObeyed, CommandsIgnored: drones.CommandsIgnored, Crashes: drones.Crashes,
		Network: run.network.Stats(), Drones: run.cfg.Drones,
	}
	if run.cfg.Terminal {
		r.columns = printColumns
	}
	if run.cfg.Check {
		checked, err := run.check(ctx)
		if err != nil {
			return r, err
		}
		r.Invariants = &checked
	}
	// After the check, which waits for what is on its way.
	orders, err := run.ownOrders(ctx)
	if err != nil {
		return r, err
	}
	known, err := run.store().DronesOf(ctx, run.droneIDs())
	for _, d := range known {
		if d.Bound() {
			r.OnMissions++
		}
	}
	r.Orders, r.Priorities = summarizeOrders(orders, nil, run.simBegan), summarizePriorities(orders, run.clock.Now())
	for _, o := range orders {
		if o.AssignedMissionID != "" {
			r.Orders.Assigned++
		}
	}
	return r, err
}

// checkFor is how long a violation must last to count: others change the fleet while its
// documents are read one after the other, and messages may still be on their way.
const checkFor = 30 * time.Second

// check checks the invariants of the drones and orders of this process.
func (run *fleetRun) check(ctx context.Context) (InvariantSummary, error) {
	until := time.Now().Add(checkFor)
	confirmed := run.confirmations.Messages()
	var lasting []invariant.Violation
	for first := true; ; first = false {
		h, err := fleethistory.Documents(ctx, run.store())
		if err != nil {
			return InvariantSummary{}, err
		}
		h.Confirmed, h.ClockTolerance = confirmed, time.Duration(float64(invariant.DefaultClockTolerance)*run.clock.Speed)+run.cfg.ClockError
		h.Unwritten = policy.DefaultForetelling().Unwritten(policy.Limits{})
		checked := invariant.Check(h)
		found := slices.DeleteFunc(checked.Violations, func(v invariant.Violation) bool { return !run.owns(v.Subject, h.Missions) })
		if first {
			lasting = found
		} else {
			lasting = slices.DeleteFunc(lasting, func(v invariant.Violation) bool {
				return !slices.ContainsFunc(found, func(f invariant.Violation) bool { return f.Invariant == v.Invariant && f.Subject == v.Subject })
			})
		}
		if len(lasting) == 0 || time.Now().After(until) {
			r := InvariantSummary{Checked: checked.Checked, Violations: []string{}}
			for _, v := range lasting {
				r.Violations = append(r.Violations, v.String())
			}
			return r, nil
		}
		select {
		case <-ctx.Done():
			return InvariantSummary{}, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

// owns reports whether a violation is about a drone, an order or a mission of this fleet.
func (run *fleetRun) owns(subject string, missions []domain.Mission) bool {
	kind, id, _ := strings.Cut(subject, " ")
	switch domain.EntityKind(kind) {
	case domain.EntityDrone:
		return strings.HasPrefix(id, run.cfg.Name+"-")
	case domain.EntityOrder:
		return strings.HasPrefix(id, run.orderIDs)
	case domain.EntityMission:
		return slices.ContainsFunc(missions, func(m domain.Mission) bool {
			return string(m.ID) == id && strings.HasPrefix(string(m.DroneID), run.cfg.Name+"-")
		})
	}
	return false
}

// Print writes the summary for people.
func (r FleetSummary) Print(w io.Writer) error {
	var text bytes.Buffer
	line := func(name, format string, args ...any) {
		text.WriteString(wrap(fmt.Sprintf("%-11s %s", name, fmt.Sprintf(format, args...)), r.columns, 14) + "\n")
	}
	fmt.Fprintf(&text, "\nFleet %s after %.0f s (%.0f s simulated), seed %d\n", r.Name, r.ElapsedSeconds, r.SimulatedSeconds, r.Seed)
	o := r.Orders
	line("orders", "%d ordered, %d delivered (%d on time), %d pending, %d held, %d cancelled", o.Created, o.Delivered, o.OnTime, o.Pending, o.Held, o.Cancelled)
	for _, priority := range slices.Backward(domain.Priorities[:]) {
		if p := r.Priorities[priority.String()]; p.Created > 0 {
			line("", "%s: %s", priority, p.print())
		}
	}
	if o.Pending > 0 {
		line("", "pending orders stay for the other drones of their depots")
	}
	line("reports", "%d sent, %d confirmed, %d failed, %d left out", r.Reports.Sent, r.Reports.Confirmed, r.Reports.Failed, r.Reports.Skipped)
	line("commands", "%d obeyed, %d ignored", r.CommandsObeyed, r.CommandsIgnored)
	if n := r.Network; n != (fleetsim.NetworkStats{}) || r.Crashes > 0 {
		line("faults", "%d messages lost, %d sent twice, %d overtaken; %d crashes", n.Lost, n.Duplicated, n.Reordered, r.Crashes)
	}
	line("drones", "%d grounded and offline, %d of them on a mission", r.Drones, r.OnMissions)
	switch v := r.Invariants; {
	case v == nil:
		line("invariants", "not checked")
	case len(v.Violations) == 0:
		line("invariants", "hold for its drones and orders (%d checks of the whole fleet)", v.Checked)
	default:
		line("invariants", "BROKEN, %d:", len(v.Violations))
		for _, violation := range v.Violations[:min(len(v.Violations), printedViolations)] {
			fmt.Fprintln(&text, "  "+terminal.Escape(violation))
		}
	}
	_, err := w.Write(text.Bytes())
	return err
}
