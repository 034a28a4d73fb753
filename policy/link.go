package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// ApplyLink notes whether a drone has a session at a gateway. What is not newer than what is
// known changes nothing: messages come in any order, and again. A drone that is not known has
// no document yet.
func ApplyLink(d *domain.Drone, s domain.LinkState) Change {
	lost := s.Status == domain.LinkLost
	switch {
	case d == nil, s.Status == domain.LinkOpened, !s.At.After(d.LinkChangedAt):
		return Change{}
	}
	changed := *d
	changed.LinkChangedAt, changed.LinkLostAt = s.At, time.Time{}
	if lost {
		changed.LinkLostAt = s.At
	}
	return Change{Drone: &changed}
}
