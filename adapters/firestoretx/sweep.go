package firestoretx

import (
	"context"
	"errors"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// SweepResult counts what a sweep changed.
type SweepResult struct {
	MissionsFailed int
	DronesUnknown  int
	OrdersLate     int
}

// Sweep handles what no message will: silent drones, stalled missions, orders
// past their deadline. It works from ACTIVE missions, IDLE drones and open
// orders, which need no index on a time. One document that cannot be swept does
// not keep it from the others; the errors are joined.
func (s *Store) Sweep(ctx context.Context) (SweepResult, error) {
	var result SweepResult
	var errs []error
	missions, err := s.Missions(ctx, domain.MissionActive, Page{})
	errs = append(errs, err)
	for _, m := range missions {
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		failed, err := s.sweepMission(ctx, m)
		errs = append(errs, wrap(err, "mission %s", m.ID))
		if failed {
			result.MissionsFailed++
		}
	}
	drones, err := s.Drones(ctx, domain.DroneIdle, Page{})
	errs = append(errs, err)
	for _, d := range drones {
		if s.drone.SweepIdle(d, s.now()).Empty() {
			continue
		}
		changed, err := s.sweepIdle(ctx, d.ID)
		errs = append(errs, wrap(err, "drone %s", d.ID))
		if changed {
			result.DronesUnknown++
		}
	}
	for _, status := range []domain.OrderStatus{domain.OrderPending, domain.OrderAssigned, domain.OrderInDelivery} {
		q := s.where(Orders, "status", string(status)).Where("late", "==", false)
		orders, err := collect(q.Documents(ctx), decodeOrder)
		errs = append(errs, wrap(err, "open orders"))
		for _, o := range orders {
			if policy.SweepOrder(o, s.now()).Empty() {
				continue
			}
			err := s.SweepOrder(ctx, o.ID)
			errs = append(errs, wrap(err, "order %s", o.ID))
			if err == nil {
				result.OrdersLate++
			}
		}
	}
	return result, errors.Join(errs...)
}

// sweepMission fails a mission whose drone is silent or which takes too long.
// The drone is read without a transaction first: hardly any needs one.
func (s *Store) sweepMission(ctx context.Context, m domain.Mission) (bool, error) {
	drone, err := s.Drone(ctx, m.DroneID)
	if err != nil {
		return false, err
	}
	glance := policy.Binding{Drone: drone, Mission: &m}
	if drone.CurrentMissionID != m.ID || s.drone.SweepBinding(glance, s.now()).Empty() {
		return false, nil
	}
	var failed bool
	err = s.transact(ctx, nil, func(t *txn) error {
		failed = false
		b, err := t.readBinding(m.DroneID)
		if err != nil || b.Drone.CurrentMissionID != m.ID {
			return err
		}
		change := s.drone.SweepBinding(b, t.now)
		failed = !change.Empty()
		return t.write(change)
	})
	return failed, err
}

func (s *Store) sweepIdle(ctx context.Context, id domain.DroneID) (bool, error) {
	var changed bool
	err := s.transact(ctx, nil, func(t *txn) error {
		changed = false
		if err := t.readDrones(id); err != nil || t.drones[id].err != nil || !t.drones[id].exists {
			return err
		}
		change := s.drone.SweepIdle(t.drones[id].Drone, t.now)
		changed = !change.Empty()
		return t.write(change)
	})
	return changed, err
}
