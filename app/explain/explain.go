package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/solver"
)

// Request says what to explain.
type Request struct {
	Order domain.OrderID
	// At is the time to explain. Zero means now for an open order, and for one that is over the
	// time at which a first cycle could see it.
	At time.Time
	// AreaRadius groups depots as the optimizers do, in km.
	AreaRadius float64
	// Confidence is that of the optimizers; 0 means their default.
	Confidence float64
	// Limits are those of the optimizers; a field that is zero stands for the contract's value.
	Limits policy.Limits
	WhatIf planner.WhatIf
	// List is how many of the nearest drones to list; 0 means the planner's default.
	List int
	// SolveLimit is how long each plan may search, with Workers goroutines; 0 means the
	// solver's default.
	SolveLimit time.Duration
	Workers    int
	Service    time.Duration // of a drone at each stop
}

// firstCycle is how long after its creation an order that is over is looked at by default:
// the interval between cycles.
const firstCycle = 10 * time.Second

// OrderExplanation is why an order waited or was late.
type OrderExplanation struct {
	OrderID  domain.OrderID `json:"orderId"`
	ReadTime time.Time      `json:"readTime"` // the past that was looked at
	Status   string         `json:"status"`   // of the order then
	Priority string         `json:"priority"`
	WeightKg entity.Number  `json:"weightKg"`
	Deadline time.Time      `json:"deadline"`
	// Outcome says in one sentence what became of the order, as far as was known then.
	Outcome string         `json:"outcome"`
	DepotID domain.DepotID `json:"depotId"` // of the area that plans it
	// Recorded is why it waited in the last cycle before that time that lists it.
	Recorded        string         `json:"recorded,omitempty"`
	RecordedByCycle domain.CycleID `json:"recordedByCycle,omitempty"`
	// LearnedUntil is when the speeds, stays and delays that the plans use were learned, if
	// that was after ReadTime.
	LearnedUntil *time.Time `json:"learnedUntil,omitempty"`
	// EarliestArrival is when EarliestDroneID could deliver it if no other order waited; absent for
	// an order that was not pending then, and if no drone could. All areas' drones count.
	EarliestArrival *time.Time     `json:"earliestArrival,omitempty"`
	EarliestDroneID domain.DroneID `json:"earliestDroneId,omitempty"`
	// Held says that the order was held then; the plans suppose that it is released.
	Held bool `json:"held,omitempty"`
	// Why is absent for an order that was aboard its drone then. For one that was assigned and not
	// yet picked up, it compares the other drones with its mission.
	Why *planner.Explanation `json:"why,omitempty"`
}

// ErrNotOpen says that there was nothing to explain at that time.
var ErrNotOpen = errors.New("was not open")

// Order explains one order, with what the optimizers have learned by now.
//
// Cost: that of firestoretx.Store.Order, PastAt and Learned; up to three plans of the area.
func Order(ctx context.Context, store *firestoretx.Store, q Request) (OrderExplanation, error) {
	now, err := store.Order(ctx, q.Order)
	if err != nil {
		return OrderExplanation{}, err
	}
	at := q.At
	if at.IsZero() {
		at = store.Now()
		if now.Status == domain.OrderDelivered || now.Status == domain.OrderCancelled {
			at = now.CreatedAt.Add(firstCycle)
		}
	}
	past, err := store.PastAt(ctx, at)
	if err != nil {
		return OrderExplanation{}, err
	}
	i := slices.IndexFunc(past.Orders, func(o domain.Order) bool { return o.ID == q.Order })
	if i < 0 {
		return OrderExplanation{}, fmt.Errorf("order %s %w at %s; give a time between its creation, %s, and its end", q.Order, ErrNotOpen,
			past.ReadTime.UTC().Format(time.RFC3339), now.CreatedAt.UTC().Format(time.RFC3339))
	}
	then := past.Orders[i]
	area, err := areaOf(past.Depots, q.AreaRadius, then)
	if err != nil {
		return OrderExplanation{}, err
	}
	r := OrderExplanation{
		OrderID: then.ID, ReadTime: past.ReadTime.UTC(), Status: string(then.Status), Priority: then.Priority.String(), WeightKg: entity.Number(then.WeightKg),
		Deadline: then.Deadline, DepotID: area.Depots[0].ID, Outcome: outcomeOf(then, now),
	}
	r.Recorded, r.RecordedByCycle = recorded(past.Cycles, then.ID)
	if then.Status != domain.OrderPending && then.Status != domain.OrderAssigned {
		return r, nil
	}
	r.Held, then.Held = then.Held, false
	learned, _, err := store.Learned(ctx) // without what is damaged
	if err != nil {
		return r, err
	}
	if until := learned.Travel.Until.UTC(); until.After(past.ReadTime) {
		r.LearnedUntil = &until
	}
	params := solver.Params{PickupService: q.Service, DeliveryService: q.Service}
	cfg := planner.Config{
		Options: solver.Options{TimeLimit: q.SolveLimit, Workers: q.Workers},
		Params:  params, Limits: q.Limits,
		Learned: learning.Estimate(learned, planner.Assumed(params), cmp.Or(q.Confidence, learning.DefaultConfidence)),
	}
	offered := store.DronePolicy(q.Limits.WithDefaults())
	if then.Status == domain.OrderPending {
		soonest := planner.NewArrivals(cfg, offered, planner.Fleet{
			Now: past.ReadTime, Drones: past.Drones, Missions: past.Missions, Orders: past.Orders, Depots: past.Depots, Warehouses: past.Warehouses,
		}).Earliest(then)
		if at := soonest.At.UTC(); soonest.DroneID != "" {
			r.EarliestArrival, r.EarliestDroneID = &at, soonest.DroneID
		}
	}
	moment := momentOf(past, area, offered)
	moment.List = q.List
	switch {
	case then.Status == domain.OrderAssigned:
		moment.Assigned = &then
	case r.Held:
		moment.Snapshot.Orders = append(moment.Snapshot.Orders, then)
	}
	e, err := planner.Explain(ctx, cfg, time.Now, moment, then.ID, q.WhatIf)
	r.Why = &e
	return r, err
}

// areaOf is the area that plans the order or, if none does, the one with the depot that is
// nearest to its delivery.
func areaOf(depots []domain.Depot, radius float64, o domain.Order) (nearest domain.Area, err error) {
	areas := policy.AreasOf(depots, radius)
	if len(areas) == 0 {
		return nearest, errors.New("the store had no depot at that time")
	}
	if area, ok := policy.AreaOf(areas, o.PlanningDepotID); ok {
		return area, nil
	}
	distance := func(a domain.Area) float64 {
		least := a.Depots[0].Position.DistanceMetres(o.Delivery)
		for _, d := range a.Depots {
			least = min(least, d.Position.DistanceMetres(o.Delivery))
		}
		return least
	}
	return slices.MinFunc(areas, func(a, b domain.Area) int { return cmp.Compare(distance(a), distance(b)) }), nil
}

// momentOf is an area's part of the past, with the drones and orders that a cycle saw. An area that
// has all depots has all drones, also those without a home.
func momentOf(p firestoretx.Past, area domain.Area, offered policy.DronePolicy) planner.Moment {
	m := planner.Moment{Missions: p.Missions, Snapshot: domain.Snapshot{
		ReadTime: p.ReadTime, Depot: area.Depots[0], Neighbours: area.Depots[1:], Warehouses: p.Warehouses,
	}}
	missions, orders := map[domain.MissionID]domain.Mission{}, map[domain.OrderID]domain.Order{}
	for _, mission := range p.Missions {
		missions[mission.ID] = mission
	}
	for _, o := range p.Orders {
		orders[o.ID] = o
	}
	alone := len(area.Depots) == len(p.Depots)
	for _, d := range p.Drones {
		if !alone && !area.Has(d.HomeDepotID) || !offered.Planned(d) {
			continue
		}
		m.Drones = append(m.Drones, d)
		if d.Status == domain.DroneIdle && !d.Bound() && offered.Fit(d, p.ReadTime) {
			m.Snapshot.Drones = append(m.Snapshot.Drones, d)
		}
		if flown := missions[d.CurrentMissionID]; d.Bound() && offered.Amendable(d, flown, p.ReadTime) {
			m.Snapshot.Flights = append(m.Snapshot.Flights, planner.FlightOf(d, flown, orders))
		}
	}
	known := domain.Area{Depots: p.Depots}
	for _, o := range p.Orders {
		if o.Waits() && (area.Has(o.PlanningDepotID) || !known.Has(o.PlanningDepotID)) {
			m.Snapshot.Orders = append(m.Snapshot.Orders, o)
		}
	}
	return m
}

// outcomeOf says what became of an order that was then as given.
func outcomeOf(then, now domain.Order) string {
	switch {
	case now.Status == domain.OrderDelivered && now.DeliveredAt.After(now.Deadline):
		return fmt.Sprintf("delivered %.1f min late by drone %s", now.DeliveredAt.Sub(now.Deadline).Minutes(), now.AssignedDroneID)
	case now.Status == domain.OrderDelivered:
		return fmt.Sprintf("delivered in time by drone %s", now.AssignedDroneID)
	case now.Status == domain.OrderCancelled:
		return "cancelled"
	case then.Held:
		return "held: " + then.HeldReason
	case then.Status != domain.OrderPending:
		return fmt.Sprintf("with drone %s, mission %s", then.AssignedDroneID, then.AssignedMissionID)
	}
	return "pending"
}

// recorded is why the latest cycle that lists an order let it wait.
func recorded(cycles []domain.Cycle, id domain.OrderID) (reason string, by domain.CycleID) {
	for _, c := range cycles { // the latest first
		for _, u := range c.Unserved {
			if u.OrderID != id {
				continue
			}
			reason = u.Reason
			if u.Obstacles.Counted() {
				reason += "; " + u.Obstacles.String()
			}
			return reason, c.ID
		}
	}
	return "", ""
}
