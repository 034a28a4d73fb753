package firestoretx

import (
	"context"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// ClearDrone lifts the latch of a drone's emergency.
func (s *Store) ClearDrone(ctx context.Context, id domain.DroneID, why string) error {
	return s.changeDrone(ctx, id, why, policy.ClearDrone)
}

// GroundDrone keeps a drone from new missions.
func (s *Store) GroundDrone(ctx context.Context, id domain.DroneID, why string) error {
	return s.changeDrone(ctx, id, why, policy.GroundDrone)
}

// ReleaseDrone lets a grounded drone take missions again.
func (s *Store) ReleaseDrone(ctx context.Context, id domain.DroneID, why string) error {
	return s.changeDrone(ctx, id, why, policy.ReleaseDrone)
}

// changeDrone runs decide on a drone in one transaction; nil if there is none.
func (s *Store) changeDrone(ctx context.Context, id domain.DroneID, why string,
	decide func(*domain.Drone, domain.DroneID, string, time.Time) (policy.Change, error)) error {
	return s.transact(ctx, nil, func(t *txn) error {
		if err := t.readDrones(id); err != nil {
			return err
		}
		drone, err := t.drone(id)
		if err != nil {
			return err
		}
		change, err := decide(drone, id, why, t.now)
		if err != nil {
			return err
		}
		return t.write(change)
	})
}

// ApplyLinkState notes that a drone's session at a gateway was lost or restored.
//
// Cost: 2 RPCs, a read and a write; nothing for a session that has only begun.
func (s *Store) ApplyLinkState(ctx context.Context, link domain.LinkState) error {
	if link.Status == domain.LinkOpened {
		return nil
	}
	return s.transact(ctx, nil, func(t *txn) error {
		if err := t.readDrones(link.DroneID); err != nil {
			return err
		}
		drone, err := t.drone(link.DroneID)
		if err != nil {
			return err
		}
		return t.write(policy.ApplyLink(drone, link))
	})
}
