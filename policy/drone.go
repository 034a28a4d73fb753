package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// ClearDrone lifts the latch of an emergency; the drone's next report sets its
// status.
func ClearDrone(drone *domain.Drone, id domain.DroneID, why string, now time.Time) (Change, error) {
	switch {
	case drone == nil:
		return Change{}, reject(ReasonNotFound, string(id), "no such drone")
	case !drone.EmergencyLatched:
		return Change{}, reject(ReasonNotEmergency, string(id), "the drone is %s and has no emergency to clear", drone.Status)
	}
	d := *drone
	d.EmergencyLatched, d.FaultSince = false, time.Time{}
	if d.Bound() {
		d.Status = domain.DroneMoving
	} else {
		d.Status = domain.DroneUnknown
	}
	return byOperator(*drone, d, why, now), nil
}

// GroundDrone keeps a drone from new missions, whatever it reports. It finishes the one
// that it flies.
func GroundDrone(drone *domain.Drone, id domain.DroneID, why string, now time.Time) (Change, error) {
	switch {
	case drone == nil:
		return Change{}, reject(ReasonNotFound, string(id), "no such drone")
	case drone.Grounded:
		return Change{}, reject(ReasonAlreadyGrounded, string(id), "%s", drone.GroundedReason)
	}
	d := *drone
	d.Grounded, d.GroundedReason = true, why
	return byOperator(*drone, d, why, now), nil
}

// ReleaseDrone lets a grounded drone take missions again.
func ReleaseDrone(drone *domain.Drone, id domain.DroneID, why string, now time.Time) (Change, error) {
	switch {
	case drone == nil:
		return Change{}, reject(ReasonNotFound, string(id), "no such drone")
	case !drone.Grounded:
		return Change{}, reject(ReasonNotGrounded, string(id), "the drone is %s and not grounded", drone.Status)
	}
	d := *drone
	d.Grounded, d.GroundedReason = false, ""
	return byOperator(*drone, d, why, now), nil
}

// byOperator is an operator's change of a drone.
func byOperator(before, after domain.Drone, why string, now time.Time) Change {
	r := &recorder{now: now, cause: domain.CauseOperator}
	r.drone(before, &after, after.CurrentMissionID, why)
	return r.change
}
