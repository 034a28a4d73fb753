package invariant

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// clocks checks I4: no read of a drone document, the final one included, shows an
// older lastUpdate than an earlier read.
func (c *checker) clocks() {
	newest := make(map[domain.DroneID]time.Time)
	for _, o := range c.Observations {
		c.expect(!o.LastUpdate.Before(newest[o.DroneID]), "I4", drone(o.DroneID), "lastUpdate went back from %s to %s",
			newest[o.DroneID].Format(time.RFC3339Nano), o.LastUpdate.Format(time.RFC3339Nano))
		newest[o.DroneID] = o.LastUpdate
	}
	for _, d := range c.Drones {
		c.expect(!d.LastUpdate.Before(newest[d.ID]), "I4", drone(d.ID), "lastUpdate ended at %s after %s had been seen",
			d.LastUpdate.Format(time.RFC3339Nano), newest[d.ID].Format(time.RFC3339Nano))
	}
}
