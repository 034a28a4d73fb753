package firestoretx

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// ErrClockSet says that the clock was set while a sweep judged by it.
var ErrClockSet = errors.New("the clock was set during the sweep")

// SweepResult counts what a sweep changed.
type SweepResult struct {
	MissionsFailed int
	DronesUnknown  int // silent drones without an active mission
	OrdersLate     int
	OrdersAdopted  int // no depot planned them
}

func (r *SweepResult) add(more SweepResult) {
	r.MissionsFailed += more.MissionsFailed
	r.DronesUnknown += more.DronesUnknown
	r.OrdersLate += more.OrdersLate
	r.OrdersAdopted += more.OrdersAdopted
}

// Sweep handles what no message reports: silent drones, stalled missions, and orders past their
// deadline or without a planning depot. It queries by status alone, which needs no index on a time.
// One failure does not stop the rest; the errors are joined.
//
// holds, if not nil, is called after each reading of the clock. Once it returns false, nothing more
// changes and the error is ErrClockSet: a clock set forward would make every drone look silent.
func (s *Store) Sweep(ctx context.Context, holds func() bool) (SweepResult, error) {
	if holds == nil {
		holds = func() bool { return true }
	}
	var result SweepResult
	var errs []error
	note := func(swept SweepResult, err error) {
		result.add(swept)
		errs = append(errs, err)
	}
	bindings, unflown, err := s.glance(ctx)
	errs = append(errs, err)
	bindings = slices.DeleteFunc(bindings, func(b policy.Binding) bool { return s.drone.SweepBinding(b, s.now()).Empty() })
	note(sweepEach(ctx, bindings, func(b policy.Binding) (SweepResult, error) {
		change, err := s.sweepBinding(ctx, b.Drone.ID, b.Mission.ID, holds)
		switch {
		case err != nil || change.Drone == nil: // at most a command got a new expiry
			return SweepResult{}, wrap(err, "mission %s", b.Mission.ID)
		case slices.ContainsFunc(change.Missions, func(m domain.Mission) bool { return m.Status == domain.MissionFailed }):
			return SweepResult{MissionsFailed: 1}, nil
		}
		return SweepResult{DronesUnknown: 1}, nil // it was on its way home
	}))
	note(sweepEach(ctx, unflown, func(m domain.Mission) (SweepResult, error) {
		change, err := s.sweepUnflown(ctx, m, holds)
		if err != nil || change.Empty() {
			return SweepResult{}, wrap(err, "mission %s", m.ID)
		}
		return SweepResult{MissionsFailed: 1}, nil
	}))
	drones, err := s.Drones(ctx, domain.DroneIdle, Page{})
	errs = append(errs, err)
	drones = slices.DeleteFunc(drones, func(d domain.Drone) bool { return s.drone.SweepIdle(d, s.now()).Empty() })
	note(sweepEach(ctx, drones, func(d domain.Drone) (SweepResult, error) {
		change, err := s.sweepIdle(ctx, d.ID, holds)
		if err != nil || change.Empty() {
			return SweepResult{}, wrap(err, "drone %s", d.ID)
		}
		return SweepResult{DronesUnknown: 1}, nil
	}))
	note(s.sweepOrders(ctx, holds))
	return result, errors.Join(errs...)
}

// sweepOrders handles orders past their deadline and those that no depot plans.
func (s *Store) sweepOrders(ctx context.Context, holds func() bool) (result SweepResult, _ error) {
	var errs []error
	depots, err := s.Depots(ctx)
	errs = append(errs, err)
	pending, err := s.Orders(ctx, domain.OrderPending, Page{})
	errs = append(errs, wrap(err, "pending orders"))
	underWay := slices.DeleteFunc(slices.Clone(domain.OrderStatuses), func(status domain.OrderStatus) bool {
		return status.Final() || status == domain.OrderPending
	})
	orders, err := collect(s.client.Collection(Orders).Where("status", "in", underWay).Where("late", "==", false).Documents(ctx), orderCodec.decode)
	errs = append(errs, wrap(err, "orders under way"))
	for _, pass := range []struct {
		orders []domain.Order
		sweep  func(domain.Order, time.Time) policy.Change
		counts SweepResult
	}{
		{pending, func(o domain.Order, now time.Time) policy.Change {
			return policy.SweepPlanningDepot(o, depots.Items, now)
		}, SweepResult{OrdersAdopted: 1}},
		{append(orders, pending...), policy.SweepOrder, SweepResult{OrdersLate: 1}},
	} {
		due := slices.DeleteFunc(slices.Clone(pass.orders), func(o domain.Order) bool { return pass.sweep(o, s.now()).Empty() })
		swept, err := sweepEach(ctx, due, func(o domain.Order) (SweepResult, error) {
			if _, err := s.sweepOrder(ctx, o.ID, holds, pass.sweep); err != nil {
				return SweepResult{}, wrap(err, "order %s", o.ID)
			}
			return pass.counts, nil
		})
		result.add(swept)
		errs = append(errs, err)
	}
	return result, errors.Join(errs...)
}

// sweepAtOnce bounds the concurrent transactions of a sweep. After an outage thousands are due; one
// at a time they would delay silent drones and owed commands by minutes.
const sweepAtOnce = 16

// sweepEach sweeps independent entities concurrently, until ctx ends.
func sweepEach[T any](ctx context.Context, due []T, sweep func(T) (SweepResult, error)) (SweepResult, error) {
	results, errs := make([]SweepResult, len(due)), make([]error, len(due))
	var g errgroup.Group
	g.SetLimit(sweepAtOnce)
	for i, one := range due {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			results[i], errs[i] = sweep(one)
			return nil
		})
	}
	_ = g.Wait() // no sweep returns an error
	var sum SweepResult
	for _, r := range results {
		sum.add(r)
	}
	return sum, errors.Join(some(errs), ctx.Err())
}

// maxErrors is how many failures of one kind an error lists. In an outage thousands are alike, too
// many for a log line.
const maxErrors = 10

// some joins the first errors and counts the rest.
func some(errs []error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// glance reads every bound drone with its mission, but no orders and without a transaction, because
// few bindings are due. unflown are the ACTIVE missions that hold no drone. Beside an error it
// returns everything that can be decoded.
//
// Cost: 3 RPCs, a read per ACTIVE mission, bound drone and drone on its way home.
func (s *Store) glance(ctx context.Context) (bindings []policy.Binding, unflown []domain.Mission, _ error) {
	active, err := s.Missions(ctx, domain.MissionActive, Page{})
	errs := []error{err}
	drones, err := collect(s.client.Collection(Drones).Where("currentMissionId", ">", "").Documents(ctx), decodeKnownDrone)
	errs = append(errs, wrap(err, "bound drones"))
	held := make(map[domain.MissionID]bool, len(drones))
	for _, d := range drones {
		held[d.CurrentMissionID] = true
	}
	if _, malformed := errors.AsType[*MalformedError](err); err == nil || malformed { // else drones are missing
		unflown = slices.DeleteFunc(slices.Clone(active), func(m domain.Mission) bool { return held[m.ID] })
	}
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
	ended, err := many(ctx, s, Missions, over, missionCodec.decode)
	errs = append(errs, err)
	for _, m := range ended {
		missions[m.ID] = m
	}
	for _, d := range drones {
		if m, ok := missions[d.CurrentMissionID]; ok {
			bindings = append(bindings, policy.Binding{Drone: d, Mission: &m})
		}
	}
	return bindings, unflown, errors.Join(errs...)
}

// sweepOne applies what judge decides on the present state, which may have changed since the entity
// was found due.
func (s *Store) sweepOne(ctx context.Context, holds func() bool, judge func(*txn) (policy.Change, error)) (change policy.Change, err error) {
	err = s.transact(ctx, nil, func(t *txn) (err error) {
		change = policy.Change{}
		if !holds() {
			return ErrClockSet
		}
		if change, err = judge(t); err != nil {
			return err
		}
		return t.write(change)
	})
	return change, err
}

// sweepBinding sweeps the binding of a drone to a mission.
func (s *Store) sweepBinding(ctx context.Context, drone domain.DroneID, mission domain.MissionID, holds func() bool) (policy.Change, error) {
	return s.sweepOne(ctx, holds, func(t *txn) (change policy.Change, _ error) {
		b, err := t.readBinding(drone)
		if err != nil || b.Drone.CurrentMissionID != mission {
			return change, err
		}
		return s.drone.SweepBinding(b, t.now), nil
	})
}

// sweepUnflown fails a mission that holds no drone.
func (s *Store) sweepUnflown(ctx context.Context, m domain.Mission, holds func() bool) (policy.Change, error) {
	return s.sweepOne(ctx, holds, func(t *txn) (change policy.Change, _ error) {
		if m.DroneID != "" {
			if err := t.readDrones(m.DroneID); err != nil {
				return change, err
			}
		}
		drone, err := t.drone(m.DroneID)
		if err == nil {
			err = t.readMissions(m.ID)
		}
		if err != nil {
			return change, err
		}
		return policy.SweepUnflown(t.missions[m.ID], t.orders, drone, t.now), nil
	})
}

// sweepIdle sweeps a drone without a mission. One whose document is malformed stays.
func (s *Store) sweepIdle(ctx context.Context, id domain.DroneID, holds func() bool) (policy.Change, error) {
	return s.sweepOne(ctx, holds, func(t *txn) (change policy.Change, _ error) {
		if err := t.readDrones(id); err != nil {
			return change, err
		}
		drone, malformed := t.drone(id)
		if drone == nil || malformed != nil {
			return change, nil
		}
		return s.drone.SweepIdle(*drone, t.now), nil
	})
}

func (s *Store) sweepOrder(ctx context.Context, id domain.OrderID, holds func() bool, sweep func(domain.Order, time.Time) policy.Change) (policy.Change, error) {
	return s.sweepOne(ctx, holds, func(t *txn) (change policy.Change, _ error) {
		if err := t.readOrders(id); err != nil {
			return change, err
		}
		order := found(t.orders, id)
		if order == nil {
			return change, nil
		}
		return sweep(*order, t.now), nil
	})
}
