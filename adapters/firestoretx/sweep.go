package firestoretx

import (
	"context"
	"errors"
	"slices"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// SweepResult counts what a sweep changed.
type SweepResult struct {
	MissionsFailed int
	DronesUnknown  int // silent ones that failed no mission by that, EMERGENCY if that is latched
	OrdersLate     int
}

// Sweep handles what no message will: silent drones, stalled missions, orders
// past their deadline. It works from ACTIVE missions, bound and IDLE drones,
// and open orders, which need no index on a time. One document that cannot be
// swept does not keep it from the others; the errors are joined.
func (s *Store) Sweep(ctx context.Context) (SweepResult, error) {
	var result SweepResult
	var errs []error
	bindings, err := s.glance(ctx)
	errs = append(errs, err)
	for _, b := range bindings {
		if ctx.Err() != nil {
			return result, ctx.Err()
		}
		if s.drone.SweepBinding(b, s.now()).Empty() {
			continue
		}
		change, err := s.sweepBinding(ctx, b.Drone.ID, b.Mission.ID)
		errs = append(errs, wrap(err, "mission %s", b.Mission.ID))
		switch {
		case err != nil || change.Drone == nil: // at most a command was dated anew
		case slices.ContainsFunc(change.Missions, func(m domain.Mission) bool { return m.Status == domain.MissionFailed }):
			result.MissionsFailed++
		default: // it was on its way home
			result.DronesUnknown++
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
	open := slices.DeleteFunc(slices.Clone(domain.OrderStatuses), domain.OrderStatus.Final)
	orders, err := collect(s.client.Collection(Orders).Where("status", "in", open).Where("late", "==", false).Documents(ctx), decodeOrder)
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
	return result, errors.Join(errs...)
}

// glance reads every binding without a transaction: hardly any needs one. It
// sees the bound drones with their missions, which are ACTIVE or, when the drone
// is on its way home, over. Orders are left out. With an error come all bindings
// that can be understood.
//
// Cost: 3 RPCs, a read per ACTIVE mission, bound drone, and drone on its way
// home.
func (s *Store) glance(ctx context.Context) ([]policy.Binding, error) {
	active, err := s.Missions(ctx, domain.MissionActive, Page{})
	errs := []error{err}
	drones, err := collect(s.client.Collection(Drones).Where("currentMissionId", ">", "").Documents(ctx), decodeKnownDrone)
	errs = append(errs, wrap(err, "bound drones"))
	missions := make(map[domain.MissionID]domain.Mission, len(active))
	for _, m := range active {
		missions[m.ID] = m
	}
	var over []domain.MissionID
	for _, d := range drones {
		if _, known := missions[d.CurrentMissionID]; !known {
			over = append(over, d.CurrentMissionID)
		}
	}
	ended, err := many(ctx, s, Missions, over, decodeMission)
	errs = append(errs, err)
	for _, m := range ended {
		missions[m.ID] = m
	}
	var bindings []policy.Binding
	for _, d := range drones {
		if m, ok := missions[d.CurrentMissionID]; ok {
			bindings = append(bindings, policy.Binding{Drone: d, Mission: &m})
		}
	}
	return bindings, errors.Join(errs...)
}

// sweepBinding ends a binding for the reason the policy finds, if it still
// finds one.
func (s *Store) sweepBinding(ctx context.Context, drone domain.DroneID, mission domain.MissionID) (policy.Change, error) {
	var change policy.Change
	err := s.transact(ctx, nil, func(t *txn) error {
		change = policy.Change{}
		b, err := t.readBinding(drone)
		if err != nil || b.Drone.CurrentMissionID != mission {
			return err
		}
		change = s.drone.SweepBinding(b, t.now)
		return t.write(change)
	})
	return change, err
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
