package policy

import (
	"fmt"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// CanAcceptMission reports whether a drone can be given a mission that is expected to use
// consumption percent of its charge, planned on a snapshot taken at seen. The error, if any, is a
// Rejection with the first reason that applies of: DRONE_UNREGISTERED, DRONE_GROUNDED, DRONE_DUE,
// DRONE_IDENTITY, DRONE_NOT_IDLE, DRONE_SILENT, LOW_BATTERY, DRONE_CHANGED.
func (p DronePolicy) CanAcceptMission(d domain.Drone, consumption float64, seen, now time.Time) error {
	return p.canAccept(d, p.tooLow(d, consumption), seen, now)
}

// Fit reports whether a free drone can be given a mission: it is registered and charged, has
// reported lately, is not grounded, and no maintenance is due.
func (p DronePolicy) Fit(d domain.Drone, now time.Time) bool {
	return p.InService(d, now) && d.Battery > p.MinBattery && now.Sub(d.SeenAt) <= p.MaxSilence
}

// InService reports whether a drone can be given missions once it is charged and has reported: it is
// registered and not grounded, and no maintenance is due.
func (p DronePolicy) InService(d domain.Drone, now time.Time) bool {
	return p.Planned(d) && !d.Grounded && Due(d, now) == "" && !d.OtherIdentity()
}

// Planned reports whether the fleet plans with a drone: it is registered and not retired.
func (p DronePolicy) Planned(d domain.Drone) bool { return p.unplanned(d) == "" }

// unplanned says why the fleet does not plan with a drone, "" if it does.
func (p DronePolicy) unplanned(d domain.Drone) string {
	switch {
	case d.Retired():
		return fmt.Sprintf("drone %s was retired at %s", d.ID, d.RetiredAt.UTC().Format(time.RFC3339))
	case d.Unregistered && !p.PlanUnregistered:
		return fmt.Sprintf("drone %s is known only by its reports; register it", d.ID)
	}
	return ""
}

// otherIdentity says that a drone reports a serial number that is not its own, "" if it does not.
func otherIdentity(d domain.Drone) string {
	if !d.OtherIdentity() {
		return ""
	}
	return fmt.Sprintf("drone %s reports serial number %q, and is registered with %q", d.ID, d.ReportedSerial, d.SerialNumber)
}

// tooLow says that a drone's charge does not suffice for a mission with this consumption, "" if it
// does.
func (p DronePolicy) tooLow(d domain.Drone, consumption float64) string {
	landing := d.Battery - consumption
	if d.Battery > p.MinBattery && landing >= p.MinBattery-rounding { // not NaN
		return ""
	}
	return fmt.Sprintf("drone %s has %.1f %% and would land with %.1f %%, under %.0f %%", d.ID, d.Battery, landing, p.MinBattery)
}

// canAccept is CanAcceptMission with the text of tooLow, "" if the charge suffices.
func (p DronePolicy) canAccept(d domain.Drone, tooLow string, seen, now time.Time) error {
	refuse := func(reason Reason, format string, args ...any) error {
		return reject(reason, string(d.ID), format, args...)
	}
	silent, unplanned, due, other := now.Sub(d.SeenAt), p.unplanned(d), Due(d, now), otherIdentity(d)
	switch {
	case unplanned != "":
		return refuse(ReasonDroneUnregistered, "%s", unplanned)
	case d.Grounded:
		return refuse(ReasonDroneGrounded, "drone %s is grounded: %s", d.ID, d.GroundedReason)
	case due != "":
		return refuse(ReasonDroneDue, "drone %s needs maintenance: %s", d.ID, due)
	case other != "":
		return refuse(ReasonDroneIdentity, "%s", other)
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

// homebound reports whether a drone can take its next mission before it has landed: its mission is
// COMPLETED, it flies, and it supports amendments.
func homebound(d domain.Drone) bool {
	return d.Homebound && d.SupportsAmendments && d.MissionAcked && d.FaultSince.IsZero() && isFlying(d.Status)
}
