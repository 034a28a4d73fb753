package policy

import (
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// CanAcceptMission tells whether a drone can be given a mission that is expected to
// use consumption percent of its charge, planned on a snapshot taken at seen. The
// error, if any, is a Rejection with the first reason against it, in this order:
// DRONE_GROUNDED, DRONE_NOT_IDLE, DRONE_SILENT, LOW_BATTERY, DRONE_CHANGED.
func (p DronePolicy) CanAcceptMission(d domain.Drone, consumption float64, seen, now time.Time) error {
	refuse := func(reason Reason, format string, args ...any) error {
		return reject(reason, string(d.ID), format, args...)
	}
	silent, landing := now.Sub(d.SeenAt), d.Battery-consumption
	switch {
	case d.Grounded:
		return refuse(ReasonDroneGrounded, "drone %s is grounded: %s", d.ID, d.GroundedReason)
	case d.Bound():
		return refuse(ReasonDroneNotIdle, "drone %s is %s on mission %s", d.ID, d.Status, d.CurrentMissionID)
	case d.Status != domain.DroneIdle:
		return refuse(ReasonDroneNotIdle, "drone %s is %s", d.ID, d.Status)
	case silent > p.MaxSilence:
		return refuse(ReasonDroneSilent, "drone %s was last heard of %s ago", d.ID, silent.Round(time.Second))
	case !(d.Battery > p.MinBattery && landing >= p.MinBattery-rounding): // or NaN
		return refuse(ReasonLowBattery, "drone %s has %.1f %% and would land with %.1f %%, under %.0f %%", d.ID, d.Battery, landing, p.MinBattery)
	case d.IdleSince.After(seen):
		return refuse(ReasonDroneChanged, "drone %s has been away since the snapshot", d.ID)
	}
	return nil
}
