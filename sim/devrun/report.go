package devrun

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/terminal"
	"github.com/dronefleet/dronefleet/policy"
)

// Report is how a run went. Its JSON form is stable.
type Report struct {
	Orders     OrderReport     `json:"orders"`
	Decisions  DecisionReport  `json:"decisions"`
	Telemetry  TelemetryReport `json:"telemetry"`
	Cycles     CycleReport     `json:"cycles"`
	Firestore  meter.Firestore `json:"firestore"`
	LatencyMs  LatencyReport   `json:"latencyMs"`
	Invariants InvariantReport `json:"invariants"`
	Pace       PaceReport      `json:"pace"`

	// Priorities says how orders of each priority fared.
	Priorities map[string]PriorityReport `json:"priorities"`
	// FlownKm is what all missions were planned to fly.
	FlownKm float64 `json:"flownKm"`
	// MissionsFailed counts the missions that failed, by reason.
	MissionsFailed map[domain.FailureReason]int `json:"missionsFailed"`

	// FirestorePerThousand is what a thousand messages of each kind cost.
	FirestorePerThousand map[string]meter.Cost `json:"firestorePerThousandMessages"`
	DeadLetters          map[string]int64      `json:"deadLetters"`
	Unsettled            int                   `json:"unsettled"` // messages that the run did not wait for
	Seed                 uint64                `json:"seed"`
	SimulatedSeconds     float64               `json:"simulatedSeconds"`
	ElapsedSeconds       float64               `json:"elapsedSeconds"`
	FirstTelemetryMs     float64               `json:"firstTelemetryMs,omitempty"` // none was applied before the end, if it is 0
}

// OrderReport counts orders by where they stand at the end.
type OrderReport struct {
	Created   int `json:"created"`
	Assigned  int `json:"assigned"` // ever given to a drone
	Delivered int `json:"delivered"`
	OnTime    int `json:"onTime"`
	Pending   int `json:"pending"`
	Held      int `json:"held"`
	Cancelled int `json:"cancelled"`
}

// PriorityReport is how the orders of one priority fared. Orders not delivered
// yet count as late once their deadline has passed.
type PriorityReport struct {
	Created   int `json:"created"`
	Delivered int `json:"delivered"`
	OnTime    int `json:"onTime"`
	Late      int `json:"late"` // delivered late, or overdue and not delivered
	// MeanWaitSeconds is from creation to delivery, of those delivered.
	MeanWaitSeconds float64 `json:"meanWaitSeconds"`
	// MeanLatenessSeconds is past the deadline, of those late.
	MeanLatenessSeconds float64 `json:"meanLatenessSeconds"`
	// OldestSeconds is the age of the oldest order still open.
	OldestSeconds float64 `json:"oldestSeconds"`
}

// reportPriorities sums up orders by priority as of now.
func reportPriorities(orders []domain.Order, now time.Time) map[string]PriorityReport {
	reports := map[string]PriorityReport{}
	for _, o := range orders {
		if o.Status == domain.OrderCancelled {
			continue
		}
		r := reports[o.Priority.String()]
		r.Created++
		end := now
		if o.Status == domain.OrderDelivered {
			end = o.DeliveredAt
			r.Delivered++
			r.MeanWaitSeconds += end.Sub(o.CreatedAt).Seconds() // a sum until below
		} else {
			r.OldestSeconds = max(r.OldestSeconds, now.Sub(o.CreatedAt).Seconds())
		}
		switch late := end.Sub(o.Deadline); {
		case late > 0:
			r.Late++
			r.MeanLatenessSeconds += late.Seconds() // likewise
		case o.Status == domain.OrderDelivered:
			r.OnTime++
		}
		reports[o.Priority.String()] = r
	}
	for name, r := range reports {
		r.MeanWaitSeconds /= float64(max(r.Delivered, 1))
		r.MeanLatenessSeconds /= float64(max(r.Late, 1))
		reports[name] = r
	}
	return reports
}

// DecisionReport counts decisions by outcome.
type DecisionReport struct {
	Applied  int            `json:"applied"`
	Rejected map[string]int `json:"rejected"`
}

// TelemetryReport counts reports by outcome.
type TelemetryReport struct {
	Applied  int64            `json:"applied"`
	Stale    int64            `json:"stale"`
	Rejected map[string]int64 `json:"rejected"`
}

// CycleReport counts solve cycles.
type CycleReport struct {
	Run     int64 `json:"run"`
	Skipped int64 `json:"skipped"`
	Failed  int64 `json:"failed"`
}

// LatencyReport is the time from publish to commit of telemetry, in
// milliseconds of machine time.
type LatencyReport struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// InvariantReport is the checker's verdict.
type InvariantReport struct {
	Checked    int      `json:"checked"`
	Violations []string `json:"violations"`
}

// reportOrders counts orders by their final documents and their events.
func reportOrders(orders []domain.Order, events []domain.Event) OrderReport {
	r := OrderReport{Created: len(orders)}
	assigned := map[string]bool{}
	for _, e := range events {
		if e.Entity == domain.EntityOrder && e.To == string(domain.OrderAssigned) {
			assigned[e.ID] = true
		}
	}
	r.Assigned = len(assigned)
	for _, o := range orders {
		switch {
		case o.Status == domain.OrderDelivered:
			r.Delivered++
			if !o.Late {
				r.OnTime++
			}
		case o.Status == domain.OrderCancelled:
			r.Cancelled++
		case o.Held:
			r.Held++
		case o.Status == domain.OrderPending:
			r.Pending++
		}
	}
	return r
}

func reportDecisions(ledger []domain.LedgerEntry) DecisionReport {
	r := DecisionReport{Rejected: map[string]int{}}
	for _, e := range ledger {
		if e.Outcome == domain.OutcomeApplied {
			r.Applied++
		} else {
			r.Rejected[e.Reason]++
		}
	}
	return r
}

// reportMeter fills in what only the meter knows.
func (r *Report) reportMeter(m *meter.Meter, speed float64) {
	r.Telemetry.Rejected, r.DeadLetters = map[string]int64{}, map[string]int64{}
	for s, n := range m.Settled() {
		if s.Outcome == meter.DeadLetter {
			r.DeadLetters[s.Kind+": "+s.Reason] += n
		}
		switch {
		case s.Kind != pubsubio.TopicTelemetry:
		case s.Outcome == meter.Applied:
			r.Telemetry.Applied += n
		case s.Reason == string(policy.ReasonStaleTelemetry):
			r.Telemetry.Stale += n
		case s.Outcome != meter.Nacked:
			r.Telemetry.Rejected[s.Reason] += n
		}
	}
	r.Cycles = CycleReport{Run: m.Cycles.Count(meter.CycleRun), Skipped: m.Cycles.Count(meter.CycleSkipped), Failed: m.Cycles.Count(meter.CycleFailed)}
	r.Firestore = m.FirestoreTotals()
	// Latencies are measured on the simulated clock.
	h := m.Latency(pubsubio.TopicTelemetry)
	r.LatencyMs = LatencyReport{P50: millis(h.Quantile(0.5)) / speed, P99: millis(h.Quantile(0.99)) / speed}
	r.FirestorePerThousand = m.CostPerThousand()
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Print writes the report for people.
func (r Report) Print(w io.Writer) error {
	var text bytes.Buffer
	r.print(&text)
	_, err := w.Write(text.Bytes())
	return err
}

func (r Report) print(w *bytes.Buffer) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(w, "\nReport after %.0f s (%.0f s simulated), seed %d\n", r.ElapsedSeconds, r.SimulatedSeconds, r.Seed)
	o := r.Orders
	line("orders", "%d created, %d assigned, %d delivered (%d on time), %d pending, %d held, %d cancelled",
		o.Created, o.Assigned, o.Delivered, o.OnTime, o.Pending, o.Held, o.Cancelled)
	for _, priority := range slices.Backward(domain.Priorities[:]) {
		name := priority.String()
		if p := r.Priorities[name]; p.Created > 0 {
			line("", "%s: %d of %d delivered, %d late, mean wait %.1f min", name, p.Delivered, p.Created, p.Late, p.MeanWaitSeconds/60)
		}
	}
	line("decisions", "%d applied, rejected: %s", r.Decisions.Applied, tally(r.Decisions.Rejected))
	line("telemetry", "%d applied, %d stale, rejected: %s", r.Telemetry.Applied, r.Telemetry.Stale, tally(r.Telemetry.Rejected))
	if len(r.DeadLetters) > 0 {
		line("dead", "%s", tally(r.DeadLetters))
	}
	line("cycles", "%d run, %d skipped, %d failed", r.Cycles.Run, r.Cycles.Skipped, r.Cycles.Failed)
	line("firestore", "%d reads, %d writes, %d RPCs", r.Firestore.Reads, r.Firestore.Writes, r.Firestore.RPCs)
	for _, kind := range slices.Sorted(maps.Keys(r.FirestorePerThousand)) {
		c := r.FirestorePerThousand[kind]
		line("", "per 1,000 %s: %.0f reads, %.0f writes, %.0f RPCs", kind, c.Reads, c.Writes, c.RPCs)
	}
	latency := "no telemetry was applied"
	if r.Telemetry.Applied > 0 {
		latency = fmt.Sprintf("publish to commit of telemetry: p50 %.1f ms, p99 %.1f ms", r.LatencyMs.P50, r.LatencyMs.P99)
	}
	if r.FirstTelemetryMs > 0 {
		latency += fmt.Sprintf("; first telemetry applied after %.0f ms", r.FirstTelemetryMs)
	}
	line("latency", "%s", latency)
	if r.Pace.Behind {
		line("behind", "%s", r.Pace.warning())
	}
	if r.Unsettled > 0 {
		line("unsettled", "%d messages; whether accepted messages had their effect (I9, I3 of orders) was not judged", r.Unsettled)
	}
	broken := r.Invariants.Violations
	switch {
	case len(broken) == 0 && r.Unsettled > 0:
		line("invariants", "I1-I8 hold (%d checks)", r.Invariants.Checked)
		return
	case len(broken) == 0:
		line("invariants", "I1-I9 hold (%d checks)", r.Invariants.Checked)
		return
	}
	line("invariants", "BROKEN, %d of %d checks:", len(broken), r.Invariants.Checked)
	for _, v := range broken[:min(len(broken), printedViolations)] {
		fmt.Fprintln(w, "  "+terminal.Escape(v))
	}
	if more := len(broken) - printedViolations; more > 0 {
		fmt.Fprintf(w, "  and %d more, which --report=FILE keeps\n", more)
	}
}

// printedViolations bounds what a person is shown: one cause can break a rule
// for a hundred thousand orders, and would scroll the report away.
const printedViolations = 50

// tally lists counts by name.
func tally[N int | int64](counts map[string]N) string {
	if len(counts) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}
