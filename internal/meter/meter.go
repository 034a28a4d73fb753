package meter

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// Outcomes of a message.
const (
	Applied    = "applied"
	Rejected   = "rejected"    // a final answer with a reason
	DeadLetter = "dead_letter" // poison, kept with its reason
	Nacked     = "nacked"      // will be delivered again
)

// Settlement identifies a kind of settled message.
type Settlement struct {
	Kind    string // telemetry, orders, decisions
	Outcome string
	Reason  string // empty when applied
}

// Meter holds every count. The zero value is not ready; use New.
type Meter struct {
	Cycles            Cycles
	Fleet             Fleet
	Sweeps            Counter // completed sweeps
	SweepsSkipped     Counter // because this process's clock is wrong
	DueCorrected      Counter // documents whose dueAt was missing or wrong
	CommandsPublished Counter // mission commands and revocations
	OutboxOverflow    Counter // commands left to the sweeper because the outbox was full
	PickedUpAgain     Counter // parcels picked up again after they had been put down, as late reports show
	LockEventsDropped Counter // calls of the locks that LockEvents lacks
	RefusalsRecorded  Counter // refused messages with a record of their own
	RefusalsCounted   Counter // refused messages that a record only counts
	RefusalsLost      Counter // refused messages whose record could not be written
	LiveReports       Counter // reports that the live feed received
	LiveReportsBytes  Counter // bytes of their messages
	ClockOffset       Offset  // Firestore's time minus the local one
	RampHeldLast      Instant // when writes were last held back
	HistoryBehind     Offset  // how far the history is behind, in the process that publishes it
	MQTT              MQTT    // of a gateway's broker
	Link              Link    // of a gateway's own connections

	IndexShards atomic.Int64 // ranges over which the index on the times of events is spread

	tracer  atomic.Pointer[trace.Tracer]                        // of calls; see TraceCalls
	written atomic.Pointer[func(collection string, writes int)] // see OnWrites

	mu         sync.Mutex
	settled    map[Settlement]*Counter
	latency    map[string]*Histogram // publish to commit, by kind
	firestore  map[rpcKey]*rpcCounts
	retries    map[string]*Counter // by operation
	locks      map[string]*Lock
	lockEvents map[LockEvent]*Counter
	backlogs   map[string]*Backlog
	limited    map[string]*Counter // HTTP requests over a limit, by budget
	idle       map[string]float64  // depots that were ever without cycles: 1 while they are

	historyRows map[string]*Counter // by table
	rampHeld    map[string]*Counter // by collection

	collectionWrites map[string]*Counter
	webhookAttempts  map[string]*Counter  // by outcome
	webhooksWaiting  map[string]time.Time // since when the oldest message waits, by webhook
}

type rpcKey struct{ operation, method string }

type rpcCounts struct{ calls, failed, reads, writes Counter }

// New returns an empty meter.
func New() *Meter {
	return &Meter{
		settled:    map[Settlement]*Counter{},
		latency:    map[string]*Histogram{},
		firestore:  map[rpcKey]*rpcCounts{},
		retries:    map[string]*Counter{},
		locks:      map[string]*Lock{},
		lockEvents: map[LockEvent]*Counter{},
		backlogs:   map[string]*Backlog{},
		limited:    map[string]*Counter{},
		idle:       map[string]float64{},

		historyRows: map[string]*Counter{},
		rampHeld:    map[string]*Counter{},

		collectionWrites: map[string]*Counter{},
		webhookAttempts:  map[string]*Counter{},
	}
}

// entry returns the value of key and creates it if it is missing.
func entry[K comparable, V any](m *Meter, in map[K]*V, key K) *V {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := in[key]
	if !ok {
		v = new(V)
		in[key] = v
	}
	return v
}

// Settlements returns the counter of one kind of settlement. Code that counts many
// messages keeps it.
func (m *Meter) Settlements(s Settlement) *Counter { return entry(m, m.settled, s) }

// Settle counts a settled message.
func (m *Meter) Settle(s Settlement) { m.Settlements(s).Inc() }

// Latency returns the histogram of the time from publish to commit for one kind.
func (m *Meter) Latency(kind string) *Histogram { return entry(m, m.latency, kind) }

// CommitRetried counts a transaction that was retried, or a commit that was refused,
// because another writer was faster.
func (m *Meter) CommitRetried(ctx context.Context) {
	entry(m, m.retries, Operation(ctx)).Inc()
	trace.SpanFromContext(ctx).AddEvent("commit retried: another writer was faster")
}

// budgets are those of Limited.
var budgets = []string{"reads", "commands", "streams"}

// Limited counts the HTTP requests that were over a limit of a budget.
func (m *Meter) Limited(budget string) *Counter { return entry(m, m.limited, budget) }

// RampHeld counts how often writes to a collection were held back.
func (m *Meter) RampHeld(collection string) *Counter { return entry(m, m.rampHeld, collection) }

// OnWrites has f called after each commit, once for each collection that it has written to.
func (m *Meter) OnWrites(f func(collection string, writes int)) { m.written.Store(&f) }

// HistoryRows counts the rows of a table that were published for the history.
func (m *Meter) HistoryRows(table string) *Counter { return entry(m, m.historyRows, table) }

// Outcomes of an attempt to send a message to a webhook.
const (
	WebhookDelivered  = "delivered"
	WebhookFailed     = "failed"      // it is sent again
	WebhookDeadLetter = "dead_letter" // given up
)

var webhookOutcomes = []string{WebhookDelivered, WebhookFailed, WebhookDeadLetter}

// WebhookAttempts counts the attempts to send a message to a webhook with an outcome.
func (m *Meter) WebhookAttempts(outcome string) *Counter { return entry(m, m.webhookAttempts, outcome) }

// SetWebhooksWaiting stores since when the oldest message to each webhook waits, the zero time if
// none does. A process that does not send gives nil.
func (m *Meter) SetWebhooksWaiting(since map[string]time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.webhooksWaiting = since
}

func (m *Meter) waitingWebhooks() map[string]time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.webhooksWaiting)
}

// SetIdleDepots stores which depots have no cycles although orders wait.
func (m *Meter) SetIdleDepots(ids []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.idle {
		m.idle[id] = 0
	}
	for _, id := range ids {
		m.idle[id] = 1
	}
}

func (m *Meter) idleDepots() map[string]float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.idle)
}

// CommitRetries returns the counts of CommitRetried by operation.
func (m *Meter) CommitRetries() map[string]int64 { return load(m, m.retries) }

// Settled returns a copy of all settlement counts.
func (m *Meter) Settled() map[Settlement]int64 { return load(m, m.settled) }

func load[K comparable](m *Meter, in map[K]*Counter) map[K]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[K]int64, len(in))
	for k, v := range in {
		out[k] = v.Value()
	}
	return out
}

// latencies returns a copy of the histograms by kind.
func (m *Meter) latencies() map[string]*Histogram {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.latency)
}

// rpcs returns a copy of the counts by operation and method.
func (m *Meter) rpcs() map[rpcKey]*rpcCounts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.firestore)
}
