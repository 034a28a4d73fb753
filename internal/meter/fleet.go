package meter

import (
	"maps"
	"sync"
	"time"
)

// Outcomes of a delivery.
const (
	OnTime = "on_time"
	Late   = "late"
)

// Fleet holds the latest counts of the fleet's documents, and its deliveries.
type Fleet struct {
	mu         sync.Mutex
	deliveries map[delivery]*Counter
	took       map[string]*Histogram // from creation to delivery, by priority
	standing   Standing
	goodUntil  time.Time // machine time; the zero time if there is no standing
}

type delivery struct{ priority, outcome string }

// Standing is how a fleet stands at one moment, as counted in the store.
type Standing struct {
	Orders map[string]int64 // by status, without those that are over
	Held   int64            // pending orders that wait for an operator
	Drones map[string]int64 // by status
	// Unregistered are the drones that report and that nobody has registered.
	Unregistered int64
	// Overdue are the open orders that are past their deadline, by priority.
	Overdue map[string]int64
	// Waiting is the age of the oldest order that waits for a drone, by priority; 0 if
	// none does.
	Waiting map[string]func() time.Duration
}

// ExpectDeliveries makes the counts of these priorities exist before the first
// delivery: a rate needs the count before it.
func (f *Fleet) ExpectDeliveries(priorities ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range priorities {
		f.of(p)
	}
}

// of finds or makes the counts of a priority. The caller holds the lock.
func (f *Fleet) of(priority string) *Histogram {
	if f.took == nil {
		f.took, f.deliveries = map[string]*Histogram{}, map[delivery]*Counter{}
	}
	if f.took[priority] == nil {
		f.took[priority] = new(Histogram)
		for _, outcome := range []string{OnTime, Late} {
			f.deliveries[delivery{priority, outcome}] = new(Counter)
		}
	}
	return f.took[priority]
}

// Delivered counts a delivery, which took that long from the order's creation.
func (f *Fleet) Delivered(priority string, late bool, took time.Duration) {
	outcome := OnTime
	if late {
		outcome = Late
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.of(priority).Record(took)
	f.deliveries[delivery{priority, outcome}].Inc()
}

// Stands stores how the fleet stands. It is shown for the time goodFor: no figure is
// better than an old one.
func (f *Fleet) Stands(s Standing, goodFor time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.standing, f.goodUntil = s, time.Now().Add(goodFor)
}

func (f *Fleet) collect(c collector) {
	f.mu.Lock()
	deliveries, took := maps.Clone(f.deliveries), maps.Clone(f.took)
	standing, good := f.standing, time.Now().Before(f.goodUntil)
	f.mu.Unlock()
	for d, n := range deliveries {
		c.count(deliveriesTotal, n.Value(), d.priority, d.outcome)
	}
	for priority, h := range took {
		c.durations(deliverySeconds, h, longBuckets, priority)
	}
	if !good {
		return
	}
	for status, n := range standing.Orders {
		c.value(orders, float64(n), status)
	}
	c.value(ordersHeld, float64(standing.Held))
	for status, n := range standing.Drones {
		c.value(drones, float64(n), status)
	}
	c.value(dronesUnregistered, float64(standing.Unregistered))
	for priority, n := range standing.Overdue {
		c.value(ordersOverdue, float64(n), priority)
	}
	for priority, age := range standing.Waiting {
		c.value(oldestWaitingSeconds, age().Seconds(), priority)
	}
}
