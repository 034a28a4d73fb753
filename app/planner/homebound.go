package planner

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// landingMargin is how long before its landing a drone can be given its next mission. Later
// it may have landed when the decision is applied, which is then refused.
const landingMargin = 10 * time.Second

// isHomebound reports whether a drone in flight has served its mission. What is added to the
// rest of it, the way home, is its next mission. Such a drone is not planned like an idle
// one: that would use up its charge on orders that can wait for a full drone.
func isHomebound(f domain.Flight) bool { return f.Mission.Status == domain.MissionCompleted }
