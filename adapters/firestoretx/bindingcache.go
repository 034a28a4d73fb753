package firestoretx

import (
	"maps"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// bindingCache holds drones as their latest reports left them.
type bindingCache map[domain.DroneID]*cachedBinding

// cachedBinding is a drone's binding as of one version of its document, and the reports since then
// that were not due.
type cachedBinding struct {
	binding policy.Binding
	written domain.Drone // as the document has it
	version time.Time
	used    time.Time
	// mustRead says that a waiting report's change needs a transaction.
	mustRead bool
}

// forgetAfter is how long a silent drone stays in the cache.
const forgetAfter = 10 * time.Minute

// put replaces what is known of a drone by what was written.
func (c bindingCache) put(b policy.Binding, version, now time.Time) {
	c[b.Drone.ID] = &cachedBinding{binding: b, written: b.Drone, version: version, used: now}
}

// evict drops the drones that have been silent for long.
func (c bindingCache) evict(now time.Time) {
	maps.DeleteFunc(c, func(_ domain.DroneID, k *cachedBinding) bool { return now.Sub(k.used) > forgetAfter })
}
