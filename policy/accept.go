package policy

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// CanAcceptMission tells whether a drone can be given a mission that is expected to
// use consumption percent of its charge, planned on a snapshot taken at seen. The
// error, if any, is a Rejection with the first reason against it, in this order:
// DRONE_GROUNDED, DRONE_NOT_IDLE, DRONE_SILENT, LOW_BATTERY, DRONE_CHANGED.
func (p DronePolicy) CanAcceptMission(d domain.Drone, consumption float64, seen, now time.Time) error {
	return p.canAccept(d, p.tooLow(d, consumption), seen, now)
}

// Fit reports whether a drone that is free can be given a mission: it has charge, was heard
// of lately and is not grounded.
func (p DronePolicy) Fit(d domain.Drone, now time.Time) bool {
	return !d.Grounded && d.Battery > p.MinBattery && now.Sub(d.SeenAt) <= p.MaxSilence
}

// tooLow says that a drone's charge does not suffice for a mission that uses so much of it,
// "" if it does.
func (p DronePolicy) tooLow(d domain.Drone, consumption float64) string {
	landing := d.Battery - consumption
	if d.Battery > p.MinBattery && landing >= p.MinBattery-rounding { // not NaN
		return ""
	}
	return fmt.Sprintf("drone %s has %.1f %% and would land with %.1f %%, under %.0f %%", d.ID, d.Battery, landing, p.MinBattery)
}

// canAccept is CanAcceptMission for a mission for which tooLow says whether the charge
// suffices.
func (p DronePolicy) canAccept(d domain.Drone, tooLow string, seen, now time.Time) error {
	refuse := func(reason Reason, format string, args ...any) error {
		return reject(reason, string(d.ID), format, args...)
	}
	silent := now.Sub(d.SeenAt)
	switch {
	case d.Grounded:
		return refuse(ReasonDroneGrounded, "drone %s is grounded: %s", d.ID, d.GroundedReason)
	case d.Bound() && !homebound(d):
		return refuse(ReasonDroneNotIdle, "drone %s is %s on mission %s", d.ID, d.Status, d.CurrentMissionID)
	case d.Status != domain.DroneIdle && !homebound(d):
		return refuse(ReasonDroneNotIdle, "drone %s is %s", d.ID, d.Status)
	case silent > p.MaxSilence:
		return refuse(ReasonDroneSilent, "drone %s was last heard of %s ago", d.ID, silent.Round(time.Second))
	case tooLow != "":
		return refuse(ReasonLowBattery, "%s", tooLow)
	case later(d.IdleSince, d.HomeboundSince).After(seen):
		return refuse(ReasonDroneChanged, "drone %s has been away since the snapshot", d.ID)
	}
	return nil
}

// homebound reports whether a drone can take its next mission before it has landed: its
// mission is COMPLETED, it flies, and it obeys what it is told under way.
func homebound(d domain.Drone) bool {
	return d.Homebound && d.SupportsAmendments && d.MissionAcked && d.FaultSince.IsZero() && isFlying(d.Status)
}
