package planner

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// maxFlightMinutes is longer than any drone can fly and fits a Duration.
const maxFlightMinutes = 1e6

// ProblemOf is what the planner plans for a snapshot, if drones begin at start: the idle drones
// with the speeds that were learned of them, and those on missions as predicted for that time.
func (p *Planner) ProblemOf(snap domain.Snapshot, start time.Time) solver.Problem {
	problem := ProblemOf(snap, start, p.learnedParams())
	problem.Drones = dronesOf(snap.Drones, p.learned)
	p.addFlights(&problem, amendable(snap))
	p.addStandbyMissions(&problem, snap.Flights)
	return problem
}

// ProblemOf turns a snapshot into a problem for the solver, without missions under way. The
// drones keep the solver's default cruise speed: the reported speed is the present one.
func ProblemOf(s domain.Snapshot, now time.Time, params solver.Params) solver.Problem {
	p := solver.Problem{Now: now, Params: params, Drones: dronesOf(s.Drones, learning.Estimates{})}
	for _, d := range s.Depots() {
		depot := solver.Depot{ID: string(d.ID), At: location(d.Position), ChargingSlots: max(0, d.ChargingSlots)}
		for _, charging := range s.Charging {
			if charging.HomeDepotID == d.ID {
				depot.SlotsTaken++
			}
		}
		p.Depots = append(p.Depots, depot)
	}
	for _, w := range s.Warehouses {
		p.Warehouses = append(p.Warehouses, solver.Warehouse{
			ID: string(w.ID), At: location(w.Position), ProductTypes: w.ProductTypes, ColdStorage: w.ColdStorage,
		})
	}
	for _, o := range s.Orders {
		p.Orders = append(p.Orders, orderOf(o))
	}
	return p
}

func orderOf(o domain.Order) solver.Order {
	order := solver.Order{
		ID: string(o.ID), Delivery: location(o.Delivery), ProductType: o.ProductType,
		WeightKg: o.WeightKg, ColdChain: o.ColdChain, Priority: model.PriorityOf(o.Priority),
		CreatedAt: o.CreatedAt, Deadline: o.Deadline, PinnedDroneID: string(o.PinnedDroneID),
	}
	for _, id := range o.ForbiddenDroneIDs {
		order.ForbiddenDroneIDs = append(order.ForbiddenDroneIDs, string(id))
	}
	if o.Pickup != nil {
		at := location(*o.Pickup)
		order.Pickup = &at
	}
	return order
}

// dronesOf converts drones as droneOf does.
func dronesOf(drones []domain.Drone, learned learning.Estimates) []solver.Drone {
	var list []solver.Drone
	for _, d := range drones {
		list = append(list, droneOf(d, learned))
	}
	return list
}

// droneOf converts a drone, with the speed that was learned for it. If none was, the solver uses
// its default.
func droneOf(d domain.Drone, learned learning.Estimates) solver.Drone {
	return solver.Drone{
		ID: string(d.ID), At: location(d.Position), HomeDepotID: string(d.HomeDepotID),
		BatteryPercent: d.Battery, ConsumptionPercentPerKm: d.ConsumptionPerKm, ConsumptionPercentPerKmKg: d.ConsumptionPerKmKg,
		CapacityKg:      d.PayloadCapacityKg,
		MaxFlight:       time.Duration(min(d.MaxFlightTimeMinutes, maxFlightMinutes)) * time.Minute,
		SupportsStandby: d.SupportsStandby, ChargePercentPerMinute: d.ChargeRate, NoColdBox: !d.CarriesCold(),
		SpeedKmh: learned.SpeedOf(d.ID),
	}
}

func location(p domain.Position) solver.Location { return solver.Location{Lat: p.Lat, Lon: p.Lon} }

// learnedParams are the parameters with the learned service times, if there are any.
func (p *Planner) learnedParams() solver.Params {
	params := p.cfg.Params
	if p.learned.SpeedKmh > 0 {
		params.PickupService, params.DeliveryService = p.learned.Pickup, p.learned.Deliver
	}
	return params
}

// withMargins moves deadlines earlier, so that a drone that is late by the learned margin is
// still in time. If no drone could meet the earlier deadline, the deadline stays.
func (p *Planner) withMargins(problem solver.Problem) solver.Problem {
	if p.learned.Margin <= 0 || len(problem.Orders) == 0 {
		return problem
	}
	usable := problem
	for _, f := range problem.Flights {
		usable.Drones = append(slices.Clone(usable.Drones), f.Drone)
	}
	f := newDirectFlights(&usable)
	problem.Orders = slices.Clone(problem.Orders)
	for i := range problem.Orders {
		o := &problem.Orders[i]
		left := o.Due(problem.Now).Sub(problem.Now)
		planned := time.Duration(float64(left) / (1 + p.learned.Margin))
		if left <= 0 {
			continue
		}
		if took, _ := f.earliest(o, usable.Drones); took <= planned {
			o.Deadline = problem.Now.Add(planned)
		}
	}
	return problem
}
