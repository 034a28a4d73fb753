package operator

import (
	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/domain"
)

// PrintMission prints a mission after it was recalled.
func (d *Desk) PrintMission(changed Changed[domain.Mission], err error) error {
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
		d.say("%smission %s is recalled; its orders are PENDING again when drone %s has left it", changed.already(), m.ID, m.DroneID)
	default:
		d.say("%smission %s is recalled; drone %s first delivers what is aboard", changed.already(), m.ID, m.DroneID)
	}
	return nil
}
