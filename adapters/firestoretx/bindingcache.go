package firestoretx

import (
	"maps"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// bindingCache holds drones as the last commit of each left them.
type bindingCache map[domain.DroneID]*cachedBinding

// cachedBinding is a drone's binding as of one version of its document.
type cachedBinding struct {
	binding policy.Binding
	version time.Time
	used    time.Time
	// mustRead says that a waiting report's change needs a transaction.
	mustRead bool
}

// forgetAfter is how long a silent drone stays in the cache.
const forgetAfter = 10 * time.Minute

// put replaces what is known of a drone.
func (c bindingCache) put(b policy.Binding, version, now time.Time) {
	c[b.Drone.ID] = &cachedBinding{binding: b, version: version, used: now}
}

// evict drops the drones that have been silent for long.
func (c bindingCache) evict(now time.Time) {
	maps.DeleteFunc(c, func(_ domain.DroneID, k *cachedBinding) bool { return now.Sub(k.used) > forgetAfter })
}
