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
	// shared is until when another process, which wrote the document between two writes of this one,
	// is taken to get reports of the drone as well. The document may then say something else.
	shared time.Time
	// mustRead says that a waiting report's change needs a transaction, or that a commit failed.
	mustRead bool
}

// forgetAfter is how long a silent drone stays in the cache.
const forgetAfter = 10 * time.Minute

// sharedFor is how long a drone counts as shared.
const sharedFor = time.Minute

// put replaces what is known of a drone by what was written.
func (c bindingCache) put(b policy.Binding, version, now time.Time) {
	k := &cachedBinding{binding: b, written: b.Drone, version: version, used: now}
	if was, known := c[b.Drone.ID]; known {
		k.shared = was.shared
	}
	c[b.Drone.ID] = k
}

// catchUp adds to a binding that was read what reports say that were not due, unless another process
// has written a report meanwhile. Otherwise an older report would move the drone back.
func (c bindingCache) catchUp(read policy.Binding) policy.Binding {
	if k, known := c[read.Drone.ID]; known && read.Drone.LastUpdate.Equal(k.written.LastUpdate) {
		read.Drone = policy.WithWhereaboutsOf(read.Drone, &k.binding.Drone)
	}
	return read
}

// noteOthers notes whether another process has written a report of the drone. Decisions write none.
func (c bindingCache) noteOthers(stored domain.Drone, now time.Time) {
	if k, known := c[stored.ID]; known && !stored.LastUpdate.Equal(k.written.LastUpdate) {
		k.shared = now.Add(sharedFor)
	}
}

// evict drops the drones that have been silent for long.
func (c bindingCache) evict(now time.Time) {
	maps.DeleteFunc(c, func(_ domain.DroneID, k *cachedBinding) bool { return now.Sub(k.used) > forgetAfter })
}
