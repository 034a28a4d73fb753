package firestoretx

import (
	"context"
	"errors"
	"slices"

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

// misplacedMissions bounds how many missions MisplacedStops looks at.
const misplacedMissions = 1000

// MisplacedStops describes, for each ACTIVE mission, a stop ahead that would be rejected in a
// decision today. Earlier versions did not compare stops with addresses. It looks at the first
// 1,000 missions.
//
// Cost: 2 RPCs and one for every 300 orders; a read for each mission, order and warehouse.
func (s *Store) MisplacedStops(ctx context.Context) (map[domain.MissionID]string, error) {
	missions, err := s.Missions(ctx, domain.MissionActive, Page{Limit: misplacedMissions})
	if err := unlessMalformed(err); err != nil || len(missions) == 0 {
		return nil, err
	}
	list, err := s.Warehouses(ctx)
	if err := unlessMalformed(err); err != nil {
		return nil, err
	}
	warehouses := map[domain.WarehouseID]domain.Warehouse{}
	for _, w := range list {
		warehouses[w.ID] = w
	}
	var ids []domain.OrderID
	for _, m := range missions {
		ids = append(ids, m.OrderIDs...)
	}
	orders := map[domain.OrderID]domain.Order{}
	for chunk := range slices.Chunk(ids, 300) {
		snaps, err := s.client.GetAll(ctx, refs(s, Orders, chunk))
		if err != nil {
			return nil, wrap(err, "orders of active missions")
		}
		for _, snap := range snaps {
			if o, err := orderCodec.decode(snap); snap.Exists() && err == nil {
				orders[o.ID] = o
			}
		}
	}
	misplaced := map[domain.MissionID]string{}
	for _, m := range missions {
		if why := s.assignment.MisplacedStop(m, orders, warehouses); why != "" {
			misplaced[m.ID] = why
		}
	}
	return misplaced, nil
}

// unlessMalformed returns nil for an error about malformed documents, and other errors as they are.
func unlessMalformed(err error) error {
	if _, malformed := errors.AsType[*MalformedError](err); malformed {
		return nil
	}
	return err
}
