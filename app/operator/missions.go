package operator

import (
	"context"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/domain"
)

// RecallMission has a mission given up once nothing is aboard, and prints it. The error
// is a *policy.Rejection if the mission is over.
func (d *Desk) RecallMission(ctx context.Context, id domain.MissionID, reason string) error {
	changed, err := d.commands().RecallMission(ctx, id, reason)
	if err != nil {
		return err
	}
	m := changed.Now
	switch {
	case d.JSON:
		return d.printJSON(entity.OfMission(m))
	case m.Status != domain.MissionActive:
		d.say("%smission %s is %s", changed.already(), m.ID, m.Status)
	case m.Revoked():
		d.say("%smission %s is recalled; its orders are free when drone %s has left it", changed.already(), m.ID, m.DroneID)
	default:
		d.say("%smission %s is recalled; drone %s first delivers what is aboard", changed.already(), m.ID, m.DroneID)
	}
	return nil
}
