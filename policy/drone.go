package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// ClearDrone lifts the latch of an emergency; the drone's next report sets its
// status.
func ClearDrone(drone *domain.Drone, id domain.DroneID, why string, now time.Time) (Change, error) {
	return commandDrone(drone, id, why, now, func(d *domain.Drone) error {
		if !d.EmergencyLatched {
			return reject(ReasonNotEmergency, string(id), "the drone is %s and has no emergency to clear", d.Status)
		}
		d.EmergencyLatched, d.FaultSince, d.Status = false, time.Time{}, domain.DroneUnknown
		if d.Bound() {
			d.Status = domain.DroneMoving
		}
		return nil
	})
}

// GroundDrone keeps a drone from new missions, whatever it reports. The drone finishes its current
// mission.
func GroundDrone(drone *domain.Drone, id domain.DroneID, why string, now time.Time) (Change, error) {
	return commandDrone(drone, id, why, now, func(d *domain.Drone) error {
		if d.Grounded {
			return reject(ReasonAlreadyGrounded, string(id), "%s", d.GroundedReason)
		}
		d.Grounded, d.GroundedReason = true, why
		return nil
	})
}

// ReleaseDrone lets a grounded drone take missions again.
func ReleaseDrone(drone *domain.Drone, id domain.DroneID, why string, now time.Time) (Change, error) {
	return commandDrone(drone, id, why, now, func(d *domain.Drone) error {
		if !d.Grounded {
			return reject(ReasonNotGrounded, string(id), "the drone is %s and not grounded", d.Status)
		}
		d.Grounded, d.GroundedReason = false, ""
		return nil
	})
}

// commandDrone is an operator's change of a drone.
func commandDrone(drone *domain.Drone, id domain.DroneID, why string, now time.Time, change func(*domain.Drone) error) (Change, error) {
	if drone == nil {
		return Change{}, reject(ReasonNotFound, string(id), "no such drone")
	}
	d := *drone
	if err := change(&d); err != nil {
		return Change{}, err
	}
	r := &recorder{now: now, cause: domain.CauseOperator}
	r.drone(drone, &d, d.CurrentMissionID, why)
	return r.change, nil
}
