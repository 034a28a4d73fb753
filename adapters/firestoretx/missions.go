package firestoretx

import (
	"context"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// RecallMission has a mission given up once nothing is aboard.
func (s *Store) RecallMission(ctx context.Context, id domain.MissionID, why string) error {
	return s.transact(ctx, nil, func(t *txn) error {
		if err := t.readMissions(id); err != nil {
			return err
		}
		var mission *domain.Mission
		var binding policy.Binding
		if m, ok := t.missions[id]; ok {
			mission = &m
		}
		if mission != nil && mission.DroneID != "" {
			drone := mission.DroneID
			if err := t.readDrones(drone); err != nil {
				return err
			}
			if d := t.drones[drone]; d.err != nil {
				return d.err
			}
			binding = t.binding(drone)
		}
		change, err := policy.RecallMission(binding, mission, id, why, t.now)
		if err != nil {
			return err
		}
		return t.write(change)
	})
}
