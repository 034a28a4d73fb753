package policy

import (
	"maps"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Binding is a drone with the mission that holds it and that mission's orders:
// the unit that telemetry, the sweeper and cancellations change as one.
type Binding struct {
	Drone domain.Drone
	// Mission is the one Drone.CurrentMissionID names; nil when unbound, or
	// when its document is gone.
	Mission *domain.Mission
	// Orders holds the mission's orders by id.
	Orders map[domain.OrderID]domain.Order
}

// clone copies what a policy may change in place, so that a rerun starts from the caller's value. A
// mission's orders and route are only ever replaced.
func (b Binding) clone() Binding {
	b.Drone.FailedMissions = slices.Clone(b.Drone.FailedMissions)
	if b.Drone.Track != nil {
		t := *b.Drone.Track
		b.Drone.Track = &t
	}
	if b.Mission != nil {
		m := *b.Mission
		b.Mission = &m
	}
	b.Orders = maps.Clone(b.Orders)
	return b
}

// Change lists what to write: each changed entity once, in its new state, and the events that
// explain it. It commits in one transaction.
type Change struct {
	Drone    *domain.Drone
	Missions []domain.Mission
	Orders   []domain.Order
	Events   []domain.Event
	// Revoke names earlier missions of the drone whose revocation must be sent
	// again.
	Revoke []domain.MissionID
}

// Empty reports whether there is nothing to write.
func (c Change) Empty() bool {
	return c.Drone == nil && len(c.Missions) == 0 && len(c.Orders) == 0 && len(c.Events) == 0 && len(c.Revoke) == 0
}

// OnlyWhereabouts reports whether the change has no event: a new position, or
// evidence that does not count yet.
func (c Change) OnlyWhereabouts() bool { return len(c.Events) == 0 && len(c.Revoke) == 0 }

// WithinDrone reports whether only the drone's document changes, with its events. Its mission and
// orders stay as they are.
func (c Change) WithinDrone() bool {
	return c.Drone != nil && len(c.Missions) == 0 && len(c.Orders) == 0 && len(c.Revoke) == 0
}

// Merge adds a later change of the same binding. An entity's later state replaces the earlier one;
// the events of both are kept.
func (c Change) Merge(later Change) Change {
	if later.Drone != nil {
		c.Drone = later.Drone
	}
	for _, m := range later.Missions {
		c.Missions = upsert(c.Missions, m, func(x domain.Mission) bool { return x.ID == m.ID })
	}
	for _, o := range later.Orders {
		c.Orders = upsert(c.Orders, o, func(x domain.Order) bool { return x.ID == o.ID })
	}
	c.Events = append(slices.Clip(c.Events), later.Events...)
	c.Revoke = append(slices.Clip(c.Revoke), later.Revoke...)
	return c
}

// recorder turns state changes into events and revisions, so that no policy can
// change a state without an event. Changes of bindings go by its policy.
type recorder struct {
	DronePolicy
	now    time.Time
	cause  domain.Cause
	change Change
	// decision and cycle go into every event of an assignment.
	decision domain.DecisionID
	cycle    domain.CycleID
}

// drone records after as the drone's new state. Position, battery and times are
// not part of the state and change without an event.
func (r *recorder) drone(before, after *domain.Drone, mission domain.MissionID, reason string) {
	if before.Status != after.Status || !domain.SameDroneState(before, after) {
		after.Revision = before.Revision + 1
		r.change.Events = append(r.change.Events, domain.Event{
			Entity: domain.EntityDrone, ID: string(after.ID), Revision: after.Revision,
			From: string(before.Status), To: string(after.Status),
			Cause: r.cause, Reason: reason, Time: r.now,
			DroneID: after.ID, MissionID: mission, DecisionID: r.decision, CycleID: r.cycle,
			State: domain.DroneState(*after),
		})
	}
	d := *after
	r.change.Drone = &d
}

// order records after as the order's new state.
func (r *recorder) order(before domain.Order, after *domain.Order, reason string) {
	after.Revision = before.Revision + 1
	drone, mission := after.AssignedDroneID, after.AssignedMissionID
	if mission == "" {
		drone, mission = before.AssignedDroneID, before.AssignedMissionID
	}
	r.change.Events = append(r.change.Events, domain.Event{
		Entity: domain.EntityOrder, ID: string(after.ID), Revision: after.Revision,
		From: string(before.Status), To: string(after.Status),
		Cause: r.cause, Reason: reason, Time: r.now,
		OrderID: after.ID, DroneID: drone, MissionID: mission, DecisionID: r.decision, CycleID: r.cycle,
		State: domain.OrderState(*after),
	})
	o := *after
	r.change.Orders = upsert(r.change.Orders, o, func(x domain.Order) bool { return x.ID == o.ID })
}

// mission records after as the mission's new state.
func (r *recorder) mission(before domain.Mission, after *domain.Mission, reason string) {
	after.Revision = before.Revision + 1
	decision, cycle := after.DecisionID, after.CycleID
	if r.decision != "" { // it amends the mission
		decision, cycle = r.decision, r.cycle
	}
	r.change.Events = append(r.change.Events, domain.Event{
		Entity: domain.EntityMission, ID: string(after.ID), Revision: after.Revision,
		From: string(before.Status), To: string(after.Status),
		Cause: r.cause, Reason: reason, Time: r.now,
		DroneID: after.DroneID, MissionID: after.ID, DecisionID: decision, CycleID: cycle,
		State: domain.MissionState(*after),
	})
	m := *after
	r.change.Missions = upsert(r.change.Missions, m, func(x domain.Mission) bool { return x.ID == m.ID })
}

// note records a refusal that leaves the order unchanged; refused, if not nil, is
// the event's state.
func (r *recorder) note(o domain.Order, reason Reason, refused map[string]any) {
	r.change.Events = append(r.change.Events, domain.Event{
		Entity: domain.EntityOrder, ID: string(o.ID), From: string(o.Status), To: string(o.Status),
		Cause: r.cause, Reason: string(reason), Time: r.now, OrderID: o.ID,
		DroneID: o.AssignedDroneID, MissionID: o.AssignedMissionID, State: refused,
	})
}

// keepMission writes a mission whose evidence grew, even if its state did not change.
func (r *recorder) keepMission(m domain.Mission) {
	r.change.Missions = upsert(r.change.Missions, m, func(x domain.Mission) bool { return x.ID == m.ID })
}

func upsert[T any](list []T, v T, same func(T) bool) []T {
	if i := slices.IndexFunc(list, same); i >= 0 {
		list = slices.Clone(list)
		list[i] = v
		return list
	}
	return append(slices.Clip(list), v)
}

func minus[T comparable](list, others []T) (rest []T) {
	for _, x := range list {
		if !slices.Contains(others, x) {
			rest = append(rest, x)
		}
	}
	return rest
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
