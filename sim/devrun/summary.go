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

// Summary is how a run went. Its JSON form is stable.
//
// Orders, priorities, decisions, missions and invariants come from the store: they
// include the work of State Managers and optimizers that joined, and of earlier
// runs in the same data directory. Everything else was counted by this process.
type Summary struct {
	Orders     OrderSummary     `json:"orders"`
	Decisions  DecisionSummary  `json:"decisions"`
	Telemetry  TelemetrySummary `json:"telemetry"`
	Cycles     CycleSummary     `json:"cycles"`
	Load       LoadSummary      `json:"load"`
	Charging   ChargingSummary  `json:"charging"`
	Firestore  meter.Firestore  `json:"firestore"`
	LatencyMs  LatencySummary   `json:"latencyMs"`
	Invariants InvariantSummary `json:"invariants"`
	Pace       PaceSummary      `json:"pace"`
	Gateways   *GatewaySummary  `json:"gateways,omitempty"` // of a drill

	// Priorities counts the orders of each priority.
	Priorities map[string]PrioritySummary `json:"priorities"`
	// FlownKm is the planned flight of all missions.
	FlownKm float64 `json:"flownKm"`
	// MissionsFailed counts the missions that failed, by reason.
	MissionsFailed map[domain.FailureReason]int `json:"missionsFailed"`

	// FirestorePerThousand is what a thousand messages of each kind cost, of the
	// messages that this process settled.
	FirestorePerThousand map[string]meter.Cost `json:"firestorePerThousandMessages"`
	DeadLetters          map[string]int64      `json:"deadLetters"`
	Unsettled            int                   `json:"unsettled"` // messages that the run did not wait for
	Seed                 uint64                `json:"seed"`
	SimulatedSeconds     float64               `json:"simulatedSeconds"`
	ElapsedSeconds       float64               `json:"elapsedSeconds"`
	FirstTelemetryMs     float64               `json:"firstTelemetryMs,omitempty"` // 0 if none was applied before the end

	columns int // where Print wraps; 0 for nowhere
}

// OrderSummary counts orders by their state at the end.
type OrderSummary struct {
	Created   int `json:"created"`
	InThisRun int `json:"inThisRun"` // created since this run began; the rest by earlier runs
	Assigned  int `json:"assigned"`  // ever given to a drone
	Delivered int `json:"delivered"`
	OnTime    int `json:"onTime"`
	Pending   int `json:"pending"`
	Held      int `json:"held"`
	Cancelled int `json:"cancelled"`
}

// PrioritySummary counts the orders of one priority. An open order, neither
// delivered nor cancelled, counts as late once its deadline has passed.
type PrioritySummary struct {
	Created   int `json:"created"`
	Delivered int `json:"delivered"`
	OnTime    int `json:"onTime"`
	Late      int `json:"late"` // delivered late, or overdue and open
	Open      int `json:"open"`
	// MeanWaitSeconds is the mean time from creation to delivery of the orders
	// that were delivered; absent if none was.
	MeanWaitSeconds float64 `json:"meanWaitSeconds,omitempty"`
	// MeanLatenessSeconds is the mean time past the deadline of the late orders.
	MeanLatenessSeconds float64 `json:"meanLatenessSeconds"`
	// MeanOpenSeconds and OldestSeconds are the mean and the largest age of the
	// open orders.
	MeanOpenSeconds float64 `json:"meanOpenSeconds"`
	OldestSeconds   float64 `json:"oldestSeconds"`
}

// print describes the orders for people. A mean says what it is of.
func (p PrioritySummary) print() string {
	text := fmt.Sprintf("%d of %d delivered", p.Delivered, p.Created)
	if p.Delivered > 0 {
		text += fmt.Sprintf(" (mean %.1f min)", p.MeanWaitSeconds/60)
	}
	text += fmt.Sprintf(", %d late", p.Late)
	if p.Open > 0 {
		text += fmt.Sprintf("; %d open (oldest %.1f min)", p.Open, p.OldestSeconds/60)
	}
	return text
}

// summarizePriorities counts orders by priority as of now.
func summarizePriorities(orders []domain.Order, now time.Time) map[string]PrioritySummary {
	summaries := map[string]PrioritySummary{}
	for _, o := range orders {
		if o.Status == domain.OrderCancelled {
			continue
		}
		r := summaries[o.Priority.String()]
		r.Created++
		end := now
		if o.Status == domain.OrderDelivered {
			end = o.DeliveredAt
			r.Delivered++
			r.MeanWaitSeconds += end.Sub(o.CreatedAt).Seconds() // a sum until below
		} else {
			age := now.Sub(o.CreatedAt).Seconds()
			r.Open++
			r.MeanOpenSeconds += age // a sum until below
			r.OldestSeconds = max(r.OldestSeconds, age)
		}
		switch late := end.Sub(o.Deadline); {
		case late > 0:
			r.Late++
			r.MeanLatenessSeconds += late.Seconds() // a sum until below
		case o.Status == domain.OrderDelivered:
			r.OnTime++
		}
		summaries[o.Priority.String()] = r
	}
	for name, r := range summaries {
		r.MeanWaitSeconds /= float64(max(r.Delivered, 1))
		r.MeanLatenessSeconds /= float64(max(r.Late, 1))
		r.MeanOpenSeconds /= float64(max(r.Open, 1))
		summaries[name] = r
	}
	return summaries
}

// DecisionSummary counts decisions by outcome.
type DecisionSummary struct {
	Applied  int            `json:"applied"`
	Amending int            `json:"amending"` // of the applied ones: they changed a mission under way
	Standby  int            `json:"standby"`  // of the applied ones: missions without orders
	Rejected map[string]int `json:"rejected"`
	// Causes explains each reason for which decisions were rejected.
	Causes map[string]string `json:"causes,omitempty"`
}

// TelemetrySummary counts reports by outcome.
type TelemetrySummary struct {
	Applied  int64            `json:"applied"`
	Stale    int64            `json:"stale"`
	Rejected map[string]int64 `json:"rejected"`
}

// CycleSummary counts this process's solve cycles.
type CycleSummary struct {
	Run     int64 `json:"run"`
	Skipped int64 `json:"skipped"`
	Failed  int64 `json:"failed"`
	// Causes counts why cycles failed.
	Causes map[string]int `json:"causes,omitempty"`
}

// ChargingSummary is how this process's drones used the charging slots, if these are limited.
type ChargingSummary struct {
	Slots         int     `json:"slots"`         // of all depots; 0 without a limit
	Most          int     `json:"most"`          // in use at one depot at once
	WaitedSeconds float64 `json:"waitedSeconds"` // of drones that needed one, in all
}

// LatencySummary is the time from publish to commit of telemetry, in
// milliseconds of machine time.
type LatencySummary struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	// StatusP99 is that of the reports that change a drone's status. Others wait up
	// to a second if their drone reports more than once a second.
	StatusP99 float64 `json:"statusP99"`
}

// InvariantSummary is the result of the invariant checker.
type InvariantSummary struct {
	Checked    int      `json:"checked"`
	Violations []string `json:"violations"`
}

// summarizeOrders counts orders by their final documents and their events.
func summarizeOrders(orders []domain.Order, events []domain.Event, began time.Time) OrderSummary {
	r := OrderSummary{Created: len(orders)}
	assigned := map[string]bool{}
	for _, e := range events {
		if e.Entity == domain.EntityOrder && e.To == string(domain.OrderAssigned) {
			assigned[e.ID] = true
		}
	}
	r.Assigned = len(assigned)
	for _, o := range orders {
		if !o.CreatedAt.Before(began.Truncate(time.Microsecond)) { // as documents keep times
			r.InThisRun++
		}
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

func summarizeDecisions(ledger []domain.LedgerEntry) DecisionSummary {
	r := DecisionSummary{Rejected: map[string]int{}, Causes: map[string]string{}}
	longest := map[string]time.Duration{} // from publishing to the outcome, by reason
	for _, e := range ledger {
		if e.Outcome == domain.OutcomeApplied {
			r.Applied++
			if e.AmendsMissionID != "" {
				r.Amending++
			}
			if len(e.OrderIDs) == 0 {
				r.Standby++
			}
			continue
		}
		r.Rejected[e.Reason]++
		if waited := e.AppliedAt.Sub(e.PublishedAt); waited >= longest[e.Reason] {
			longest[e.Reason] = waited
			r.Causes[e.Reason] = fmt.Sprintf("decided up to %.1f s after it was published; for example %s", waited.Seconds(), e.Detail)
		}
	}
	return r
}

// addMeter fills in what this process counted.
func (r *Summary) addMeter(m *meter.Meter, speed float64) {
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
	r.Cycles = CycleSummary{Run: m.Cycles.Count(meter.CycleRun), Skipped: m.Cycles.Count(meter.CycleSkipped), Failed: m.Cycles.Count(meter.CycleFailed)}
	r.Firestore = m.FirestoreTotals()
	// Latencies are measured on the simulated clock.
	h := m.Latency(pubsubio.TopicTelemetry)
	r.LatencyMs = LatencySummary{
		P50: millis(h.Quantile(0.5)) / speed, P99: millis(h.Quantile(0.99)) / speed,
		StatusP99: millis(m.Latency(pubsubio.LatencyStatus).Quantile(0.99)) / speed,
	}
	r.FirestorePerThousand = m.CostPerThousand()
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Print writes the summary for people; that of a run on a terminal is wrapped.
func (r Summary) Print(w io.Writer) error {
	var text bytes.Buffer
	r.print(&text)
	_, err := w.Write(text.Bytes())
	return err
}

func (r Summary) print(w *bytes.Buffer) {
	line := func(name, format string, args ...any) {
		w.WriteString(wrap(fmt.Sprintf("%-11s %s", name, fmt.Sprintf(format, args...)), r.columns, 14) + "\n")
	}
	fmt.Fprintf(w, "\nSummary after %.0f s (%.0f s simulated), seed %d\n", r.ElapsedSeconds, r.SimulatedSeconds, r.Seed)
	o := r.Orders
	line("orders", "%d created, %d assigned, %d delivered (%d on time), %d pending, %d held, %d cancelled",
		o.Created, o.Assigned, o.Delivered, o.OnTime, o.Pending, o.Held, o.Cancelled)
	if earlier := o.Created - o.InThisRun; earlier > 0 {
		line("", "%d of them were created by earlier runs in this data directory", earlier)
	}
	for _, priority := range slices.Backward(domain.Priorities[:]) {
		name := priority.String()
		if p := r.Priorities[name]; p.Created > 0 {
			line("", "%s: %s", name, p.print())
		}
	}
	line("load", "%s", r.Load.print())
	if c := r.Charging; c.Slots > 0 {
		line("charging", "at most %d of %d slots in use; drones waited %.1f min for one, in all", c.Most, c.Slots, c.WaitedSeconds/60)
	}
	line("decisions", "%d applied, %d of them to missions under way, %d without orders; rejected: %s",
		r.Decisions.Applied, r.Decisions.Amending, r.Decisions.Standby, tally(r.Decisions.Rejected))
	for _, reason := range slices.Sorted(maps.Keys(r.Decisions.Causes)) {
		line("", "%s: %s", reason, terminal.Escape(r.Decisions.Causes[reason]))
	}
	line("telemetry", "%d applied, %d stale, rejected: %s", r.Telemetry.Applied, r.Telemetry.Stale, tally(r.Telemetry.Rejected))
	if len(r.DeadLetters) > 0 {
		line("dead", "%s", tally(r.DeadLetters))
	}
	line("cycles", "%d run, %d skipped, %d failed", r.Cycles.Run, r.Cycles.Skipped, r.Cycles.Failed)
	for _, cause := range slices.Sorted(maps.Keys(r.Cycles.Causes)) {
		line("", "%d failed: %s", r.Cycles.Causes[cause], terminal.Escape(cause))
	}
	line("firestore", "%d reads, %d writes, %d RPCs by this process", r.Firestore.Reads, r.Firestore.Writes, r.Firestore.RPCs)
	for _, kind := range slices.Sorted(maps.Keys(r.FirestorePerThousand)) {
		c := r.FirestorePerThousand[kind]
		line("", "per 1,000 %s: %.0f reads, %.0f writes, %.0f RPCs", kind, c.Reads, c.Writes, c.RPCs)
	}
	latency := "no telemetry was applied"
	if r.Telemetry.Applied > 0 {
		latency = fmt.Sprintf("publish to commit of telemetry: p50 %.1f ms, p99 %.1f ms, of changes of status %.1f ms", r.LatencyMs.P50, r.LatencyMs.P99, r.LatencyMs.StatusP99)
	}
	if r.FirstTelemetryMs > 0 {
		latency += fmt.Sprintf("; first telemetry applied after %.0f ms", r.FirstTelemetryMs)
	}
	line("latency", "%s", latency)
	if r.Pace.Behind {
		line("behind", "%s", r.Pace.warning())
	}
	if r.Unsettled > 0 {
		line("unsettled", "%d messages; whether confirmed messages had their effect (I9, I3 of orders) was not checked", r.Unsettled)
	}
	broken := r.Invariants.Violations
	switch {
	case len(broken) == 0 && r.Unsettled > 0:
		line("invariants", "I1-I8 hold (%d checks)", r.Invariants.Checked)
		return
	case len(broken) == 0:
		line("invariants", "I1-I12 hold (%d checks)", r.Invariants.Checked)
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

// printedViolations bounds what is printed: one mistake can break a rule for a
// hundred thousand orders, and would scroll the summary away.
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
