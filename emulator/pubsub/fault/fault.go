package fault

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Plan says how often each fault happens, as a probability from 0 to 1.
type Plan struct {
	// Duplicate delivers a message twice at once. The second copy has its own ack
	// id, and the ack of either settles the message, as at the service; the copy
	// cannot be extended or nacked. No effect with exactly-once delivery.
	Duplicate float64
	// Reorder shuffles the messages of one response. No effect with message
	// ordering. Delay reorders across responses.
	Reorder float64
	// Drop loses a delivery on its way: the message comes again after its ack
	// deadline.
	Drop float64
	// Delay holds back the first delivery of a published message for DelayFor. A
	// message with an ordering key is delayed only if it is the first of its key.
	Delay    float64
	DelayFor time.Duration
	// LoseAnswer applies a publish and answers UNAVAILABLE.
	LoseAnswer float64
	// BreakStream ends a streaming pull with UNAVAILABLE after a response.
	BreakStream float64
	// Resources limits the plan to these topics (LoseAnswer) and
	// subscriptions (all others), by full name; empty means all.
	Resources []string
}

// Kind is a kind of fault.
type Kind string

// The faults a plan gives a probability.
const (
	Duplicate   Kind = "duplicate"
	Reorder     Kind = "reorder"
	Drop        Kind = "drop"
	Delay       Kind = "delay"
	LoseAnswer  Kind = "lose answer"
	BreakStream Kind = "break stream"
)

func (p *Plan) probability(kind Kind) float64 {
	switch kind {
	case Duplicate:
		return p.Duplicate
	case Reorder:
		return p.Reorder
	case Drop:
		return p.Drop
	case Delay:
		return p.Delay
	case LoseAnswer:
		return p.LoseAnswer
	case BreakStream:
		return p.BreakStream
	}
	return 0
}

// Injector holds the plan of a server. Its methods are safe for concurrent use.
type Injector struct {
	seed uint64
	plan atomic.Pointer[Plan]

	mu     sync.Mutex
	down   chan struct{} // closed while an outage lasts
	counts map[Kind]int
}

// New makes an injector without a plan.
func New(seed uint64) *Injector {
	return &Injector{seed: seed, down: make(chan struct{}), counts: map[Kind]int{}}
}

// Set replaces the plan; the zero Plan ends all faults but an outage.
func (i *Injector) Set(plan Plan) {
	plan.Resources = slices.Clone(plan.Resources)
	i.plan.Store(&plan)
}

// Active says whether any fault of the plan may concern this resource.
func (i *Injector) Active(resource string) bool {
	plan := i.plan.Load()
	return plan != nil && (len(plan.Resources) == 0 || slices.Contains(plan.Resources, resource))
}

// Hit decides whether the fault happens to subject number n of a resource: the
// message id for Delay and LoseAnswer, the lease number for the others.
func (i *Injector) Hit(kind Kind, resource string, n uint64) bool {
	if !i.Active(resource) {
		return false
	}
	probability := i.plan.Load().probability(kind)
	if probability <= 0 || i.fraction(kind, resource, n) >= probability {
		return false
	}
	i.mu.Lock()
	i.counts[kind]++
	i.mu.Unlock()
	return true
}

// DelayFor is how long a message hit by Delay is held back.
func (i *Injector) DelayFor() time.Duration {
	if plan := i.plan.Load(); plan != nil {
		return plan.DelayFor
	}
	return 0
}

// Pick returns a repeatable number below limit, which must be positive.
func (i *Injector) Pick(kind Kind, resource string, n uint64, limit int) int {
	return int(i.hash(kind, resource, n) % uint64(limit))
}

// Counts says how often each fault has happened.
func (i *Injector) Counts() map[Kind]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make(map[Kind]int, len(i.counts))
	for kind, n := range i.counts {
		out[kind] = n
	}
	return out
}

// BeginOutage makes the server answer every call UNAVAILABLE and break its streams,
// until EndOutage. State is kept, and ack deadlines continue to run.
func (i *Injector) BeginOutage() {
	i.mu.Lock()
	defer i.mu.Unlock()
	select {
	case <-i.down:
	default:
		close(i.down)
	}
}

// EndOutage lets the server answer again.
func (i *Injector) EndOutage() {
	i.mu.Lock()
	defer i.mu.Unlock()
	select {
	case <-i.down:
		i.down = make(chan struct{})
	default:
	}
}

// Outage returns a channel that is closed while an outage lasts. Call it again for
// each wait.
func (i *Injector) Outage() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.down
}

func (i *Injector) fraction(kind Kind, resource string, n uint64) float64 {
	return float64(i.hash(kind, resource, n)) / float64(math.MaxUint64)
}

func (i *Injector) hash(kind Kind, resource string, n uint64) uint64 {
	h := fnv.New64a()
	var numbers [16]byte
	binary.LittleEndian.PutUint64(numbers[:], i.seed)
	binary.LittleEndian.PutUint64(numbers[8:], n)
	_, _ = h.Write(numbers[:])
	_, _ = h.Write([]byte(kind))
	_, _ = h.Write([]byte(resource))
	return mix(h.Sum64())
}

// mix spreads the bits of close inputs over the whole range, which FNV alone
// does not; it is the finalizer of MurmurHash3.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
