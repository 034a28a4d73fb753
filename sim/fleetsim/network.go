package fleetsim

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/domain"
)

// NetworkFaults are the shares of messages, 0 to 1, that a network loses, repeats or delays.
type NetworkFaults struct {
	Lose      float64 // reports and commands that never arrive; hospitals repeat orders until they do
	Duplicate float64 // messages that arrive twice
	Reorder   float64 // messages that later ones overtake
}

// NetworkStats counts what the network did.
type NetworkStats struct {
	Lost       int64 `json:"lost"`
	Duplicated int64 `json:"duplicated"`
	Reordered  int64 `json:"reordered"`
}

// reorderDelay is how much later an overtaken message arrives, by the clock: later than
// the next report.
const reorderDelay = 2500 * time.Millisecond

// Network is an unreliable way from drones and hospitals to a publisher, and back. Its
// methods are safe for concurrent use.
type Network struct {
	faults    NetworkFaults
	clock     clockwork.Clock
	publisher Publisher

	mu     sync.Mutex
	random *rand.Rand
	stats  NetworkStats
}

// NewNetwork returns a network in front of p. Equal seeds give equal faults.
func NewNetwork(p Publisher, faults NetworkFaults, seed uint64, clock clockwork.Clock) *Network {
	return &Network{faults: faults, clock: clock, publisher: p, random: randomFor(seed, streamNetwork)}
}

// draw decides what happens to a message.
func (n *Network) draw(mayLose bool) (lost, twice, late bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if mayLose && n.random.Float64() < n.faults.Lose {
		n.stats.Lost++
		return true, false, false
	}
	if twice = n.random.Float64() < n.faults.Duplicate; twice {
		n.stats.Duplicated++
	}
	if late = n.random.Float64() < n.faults.Reorder; late {
		n.stats.Reordered++
	}
	return false, twice, late
}

// errLost is the result of a lost message.
var errLost = errors.New("lost on the simulated network")

// Publish implements Publisher.
func (n *Network) Publish(ctx context.Context, topic string, data []byte, attrs map[string]string, orderingKey string) Result {
	lost, twice, late := n.draw(orderingKey != "")
	if lost {
		return results{func(context.Context) (string, error) { return "", errLost }}
	}
	sent := results{n.send(ctx, late, topic, data, attrs, orderingKey)}
	if twice {
		sent = append(sent, n.send(ctx, false, topic, data, attrs, orderingKey))
	}
	return sent
}

// send publishes, after a while if late, and returns what waits for the answer.
func (n *Network) send(ctx context.Context, late bool, topic string, data []byte, attrs map[string]string, key string) func(context.Context) (string, error) {
	if !late {
		return n.publisher.Publish(ctx, topic, data, attrs, key).Wait
	}
	answer := make(chan Result, 1)
	n.clock.AfterFunc(reorderDelay, func() {
		answer <- n.publisher.Publish(context.WithoutCancel(ctx), topic, data, attrs, key)
	})
	return func(ctx context.Context) (string, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case r := <-answer:
			return r.Wait(ctx)
		}
	}
}

// results is a message that was sent once or more.
type results []func(context.Context) (string, error)

// Wait waits for all of them and returns the first answer without an error: one copy is
// enough.
func (r results) Wait(ctx context.Context) (id string, err error) {
	for _, wait := range r {
		another, failed := wait(ctx)
		if failed != nil {
			err = failed
		} else if id == "" {
			id = another
		}
	}
	if id != "" {
		return id, nil
	}
	return "", err
}

// Deliver gives a command that arrived over the network to deliver.
func (n *Network) Deliver(c domain.Command, deliver func(domain.Command) bool) {
	lost, twice, late := n.draw(true)
	switch {
	case lost:
		return
	case late:
		n.clock.AfterFunc(reorderDelay, func() { deliver(c) })
	default:
		deliver(c)
	}
	if twice {
		deliver(c)
	}
}

// Stats returns the counts so far.
func (n *Network) Stats() NetworkStats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stats
}
