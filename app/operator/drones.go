package operator

import (
	"context"
	"fmt"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

// ListDrones prints one page of drones; status may be empty.
func (d *Desk) ListDrones(ctx context.Context, status domain.DroneStatus, page firestoretx.Page) error {
	l, err := d.Store.ListDrones(ctx, status, page)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.printJSON(entity.Page("drones", entity.Each(l.Items, entity.OfDrone), l.Next, l.Malformed))
	}
	if len(l.Items) == 0 {
		fmt.Fprintln(d.Out, nothing("drones", string(status), false))
		d.footer("drones", l.Next, l.Malformed)
		return nil
	}
	t := d.table("DRONE", "STATUS", "REPORTED", "BATTERY", "POSITION", "SEEN", "DEPOT", "MISSION", "FLAGS")
	for _, x := range l.Items {
		t.row(string(x.ID), string(x.Status), string(x.ReportedStatus), fmt.Sprintf("%.0f %%", x.Battery), degrees(x.Position), d.ago(x.SeenAt),
			string(x.HomeDepotID), string(x.CurrentMissionID),
			flags("emergency latched", x.EmergencyLatched, "grounded", x.Grounded, "not acked", x.Bound() && !x.MissionAcked, "ghost of "+string(x.GhostMissionID), x.GhostMissionID != ""))
	}
	if err := t.flush(); err != nil {
		return err
	}
	d.footer("drones", l.Next, l.Malformed)
	return nil
}

func degrees(p domain.Position) string { return fmt.Sprintf("%.5f,%.5f", p.Lat, p.Lon) }

// ClearDrone clears a drone's latched emergency and prints the drone.
func (d *Desk) ClearDrone(ctx context.Context, id domain.DroneID, reason string) error {
	changed, err := d.commands().ClearDrone(ctx, id, reason)
	return d.printDrone(changed, err, " until its next report")
}

// GroundDrone keeps a drone from new missions and prints it.
func (d *Desk) GroundDrone(ctx context.Context, id domain.DroneID, reason string) error {
	changed, err := d.commands().GroundDrone(ctx, id, reason)
	return d.printDrone(changed, err, "")
}

// ReleaseDrone lets a grounded drone take missions again and prints it.
func (d *Desk) ReleaseDrone(ctx context.Context, id domain.DroneID, reason string) error {
	changed, err := d.commands().ReleaseDrone(ctx, id, reason)
	return d.printDrone(changed, err, "")
}

// printDrone prints a drone after a command; until is added if the command changed it.
func (d *Desk) printDrone(changed Changed[domain.Drone], err error, until string) error {
	if err != nil {
		return err
	}
	drone := changed.Now
	if d.JSON {
		return d.printJSON(entity.OfDrone(drone))
	}
	if changed.Already {
		until = ""
	}
	line := fmt.Sprintf("%sdrone %s is %s%s", changed.already(), drone.ID, drone.Status, until)
	if drone.Grounded {
		line += ", grounded: " + drone.GroundedReason
		if drone.Bound() {
			line += "; it finishes mission " + string(drone.CurrentMissionID)
		}
	}
	d.say("%s", line)
	return nil
}
