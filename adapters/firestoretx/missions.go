package firestoretx

import (
	"context"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// RecallMission makes a drone give its mission up once nothing is aboard.
func (s *Store) RecallMission(ctx context.Context, id domain.MissionID, why string) error {
	return s.transact(ctx, nil, func(t *txn) error {
		if err := t.readMissions(id); err != nil {
			return err
		}
		mission := found(t.missions, id)
		var binding policy.Binding
		if mission != nil && mission.DroneID != "" {
			if err := t.readDrones(mission.DroneID); err != nil {
				return err
			}
			if _, err := t.drone(mission.DroneID); err != nil {
				return err
			}
			binding = t.binding(mission.DroneID)
		}
		change, err := policy.RecallMission(binding, mission, id, why, t.now)
		if err != nil {
			return err
		}
		return t.write(change)
	})
}
