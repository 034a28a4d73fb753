package operator

import (
	"context"
	"fmt"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// ListDrones prints one page of drones.
func (d *Desk) ListDrones(ctx context.Context, filter firestoretx.DroneFilter, page firestoretx.Page) error {
	l, err := d.Store.ListDrones(ctx, filter, page)
	if err != nil {
		return err
	}
	none := nothing("drones", string(filter.Status), false)
	if filter.Legacy {
		none = "Every drone is registered or known as unregistered."
	}
	header := []string{"DRONE", "STATUS", "REPORTED", "BATTERY", "POSITION", "SEEN", "DEPOT", "MISSION", "FLAGS"}
	return printPage(d, "drones", none, l, func(x domain.Drone) entity.Drone { return entity.OfDroneNow(x, d.Now()) }, header, func(x domain.Drone) []string {
		return []string{
			string(x.ID), string(x.Status), string(x.ReportedStatus), fmt.Sprintf("%.0f %%", x.Battery), d.whereabouts(x), d.ago(x.SeenAt),
			string(x.HomeDepotID), string(x.CurrentMissionID),
			flags("unregistered", x.Unregistered, "retired", x.Retired(), "due", policy.Due(x, d.Now()) != "", "other serial number", x.OtherIdentity(), "emergency latched", x.EmergencyLatched, "grounded", x.Grounded, "not acked", x.Bound() && !x.MissionAcked, "ghost of "+string(x.GhostMissionID), x.GhostMissionID != ""),
		}
	})
}

// whereabouts is where a drone is, if it ever reported.
func (d *Desk) whereabouts(x domain.Drone) string {
	if !x.Heard() {
		return "never heard of"
	}
	return degrees(x.WhereaboutsAt(d.Now()).Position)
}

func degrees(p domain.Position) string { return fmt.Sprintf("%.5f,%.5f", p.Lat, p.Lon) }

// PrintCleared prints a drone whose emergency was cleared.
func (d *Desk) PrintCleared(changed Changed[domain.Drone], err error) error {
	return d.printDrone(changed, err, " until its next report")
}

// PrintDrone prints a drone after a command.
func (d *Desk) PrintDrone(changed Changed[domain.Drone], err error) error {
	return d.printDrone(changed, err, "")
}

// printDrone adds until if the command changed the drone.
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
