package fleetsim

import (
	"slices"
	"sync"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// Confirmations holds every message that a server confirmed to its sender: the
// State Manager now owes it an effect or a recorded reason. It is safe for
// concurrent use.
//
// Memory is bounded: above maxTelemetry the older half of the telemetry is
// reduced to the newest message of each drone. A drone's time only rises, so an
// effect of that message implies the fate of the ones before it.
type Confirmations struct {
	mu        sync.Mutex
	telemetry []invariant.Message
	others    []invariant.Message
	bound     int
}

// maxTelemetry is how many telemetry messages are kept one by one, about 10 MB.
const maxTelemetry = 50_000

// NewConfirmations returns an empty list.
func NewConfirmations() *Confirmations { return &Confirmations{bound: maxTelemetry} }

// Add appends a message that the server accepted.
func (c *Confirmations) Add(m invariant.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.DroneID == "" {
		c.others = append(c.others, m)
		return
	}
	c.telemetry = append(c.telemetry, m)
	if len(c.telemetry) >= c.bound {
		c.reduce()
	}
}

func (c *Confirmations) reduce() {
	half := len(c.telemetry) / 2
	seen := make(map[domain.DroneID]bool)
	var kept []invariant.Message
	for _, m := range slices.Backward(c.telemetry[:half]) {
		if !seen[m.DroneID] {
			seen[m.DroneID] = true
			kept = append(kept, m)
		}
	}
	slices.Reverse(kept)
	c.telemetry = append(kept, c.telemetry[half:]...)
	// With more drones than the bound, reducing frees nothing: wait until the
	// list has doubled before trying again.
	c.bound = max(maxTelemetry, 2*len(c.telemetry))
}

// Messages returns the confirmed messages, telemetry first, each kind in the
// order of confirmation.
func (c *Confirmations) Messages() []invariant.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Concat(c.telemetry, c.others)
}
