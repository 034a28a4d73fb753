package meter

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// Outcomes of a message.
const (
	Applied    = "applied"
	Rejected   = "rejected"    // a final answer with a reason
	DeadLetter = "dead_letter" // poison, kept with its reason
	Nacked     = "nacked"      // to be delivered again
)

// Settlement identifies a kind of settled message.
type Settlement struct {
	Kind    string // telemetry, orders, decisions
	Outcome string
	Reason  string // empty when applied
}

// Meter holds every count. The zero value is not ready; use New.
type Meter struct {
	mu        sync.Mutex
	settled   map[Settlement]*atomic.Int64
	latency   map[string]*Histogram // publish to commit, by kind
	firestore map[rpcKey]*rpcCounts
	counts    map[string]*atomic.Int64
	durations map[string]*Histogram
	gauges    map[string]*atomic.Int64
}

type rpcKey struct{ operation, method string }

type rpcCounts struct{ calls, failed, reads, writes atomic.Int64 }

// New returns an empty meter.
func New() *Meter {
	return &Meter{
		settled:   map[Settlement]*atomic.Int64{},
		latency:   map[string]*Histogram{},
		firestore: map[rpcKey]*rpcCounts{},
		counts:    map[string]*atomic.Int64{},
		durations: map[string]*Histogram{},
		gauges:    map[string]*atomic.Int64{},
	}
}

// entry finds or makes the value of key, which then lives as long as the meter.
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

// Settle counts a settled message.
func (m *Meter) Settle(s Settlement) { entry(m, m.settled, s).Add(1) }

// Latency is the histogram of the time from publish to commit of one kind.
func (m *Meter) Latency(kind string) *Histogram { return entry(m, m.latency, kind) }

// Add counts n of something else, such as cycles by outcome. The name is a
// metric name in snake case.
func (m *Meter) Add(name string, n int64) { entry(m, m.counts, name).Add(n) }

// Set records the present value of something, such as a queue's length.
func (m *Meter) Set(name string, v int64) { entry(m, m.gauges, name).Store(v) }

// Time records how long something else took.
func (m *Meter) Time(name string, d time.Duration) { entry(m, m.durations, name).Record(d) }

// Durations is the histogram Time records into.
func (m *Meter) Durations(name string) *Histogram { return entry(m, m.durations, name) }

// Settled is a copy of all settlement counts.
func (m *Meter) Settled() map[Settlement]int64 { return load(m, m.settled) }

// Count is the present value of a count; 0 if it was never added to.
func (m *Meter) Count(name string) int64 { return load(m, m.counts)[name] }

func load[K comparable](m *Meter, in map[K]*atomic.Int64) map[K]int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[K]int64, len(in))
	for k, v := range in {
		out[k] = v.Load()
	}
	return out
}

// Firestore sums up the round trips to Firestore.
type Firestore struct {
	RPCs   int64 `json:"rpcs"`
	Reads  int64 `json:"reads"`  // documents returned, and lookups that found none
	Writes int64 `json:"writes"` // documents written
}

// FirestoreTotals sums all operations.
func (m *Meter) FirestoreTotals() Firestore {
	var t Firestore
	for _, f := range m.FirestoreByOperation() {
		t.RPCs += f.RPCs
		t.Reads += f.Reads
		t.Writes += f.Writes
	}
	return t
}

// FirestoreByOperation sums by the operation named in the call's context.
func (m *Meter) FirestoreByOperation() map[string]Firestore {
	m.mu.Lock()
	counts := maps.Clone(m.firestore)
	m.mu.Unlock()
	out := map[string]Firestore{}
	for k, c := range counts {
		f := out[k.operation]
		f.RPCs += c.calls.Load()
		f.Reads += c.reads.Load()
		f.Writes += c.writes.Load()
		out[k.operation] = f
	}
	return out
}
