package planner

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// Learn makes the planner plan with what was learned of the fleet: the speed of each drone,
// how long they stay at stops, by how much flights are late, and the demand of the hour.
// Estimates of a fleet without a past change nothing.
func (p *Planner) Learn(e learning.Estimates) {
	p.learned = e
	p.demand.expected = e.Demand
}

// Assumed is what plans use until something has been learned.
func Assumed(params solver.Params) learning.Assumed {
	params = params.WithDefaults()
	return learning.Assumed{SpeedKmh: model.DefaultSpeedKmh, Pickup: params.PickupService, Deliver: params.DeliveryService}
}

// learnedParams are the parameters with the stays that were learned, if any were.
func (p *Planner) learnedParams() solver.Params {
	params := p.cfg.Params
	if p.learned.SpeedKmh > 0 {
		params.PickupService, params.DeliveryService = p.learned.Pickup, p.learned.Deliver
	}
	return params
}

// withMargins moves deadlines to when a drone must plan to arrive, so as to be in time though
// flights are late by the margin. Where no drone of the problem could plan so, the deadline
// stays: better late by chance than given up.
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

// The share of the observed time by which what was learned of an hour weighs against what a
// planner saw itself, and the most of it.
const (
	expectedShare   = 0.1
	expectedMinutes = 20.0
)

// urgentPrior is the rate of CRITICAL orders to assume at a time, in orders a minute, and how
// many minutes of observation it counts for.
func (m *demand) urgentPrior(now time.Time) (perMinute, minutes float64) {
	orders, observed := m.expected.At(now, domain.PriorityCritical)
	seen := observed.Minutes()
	perMinute = (orders + priorUrgentPerMinute*priorMinutes) / (seen + priorMinutes)
	return perMinute, min(priorMinutes+expectedShare*seen, max(expectedMinutes, priorMinutes))
}

// expectedSample is an order for each place where orders are expected, the busiest last, as
// a planner remembers orders that it has seen.
func expectedSample(expected learning.DemandEstimates) (sample []solver.Order) {
	for _, p := range slices.Backward(expected.Places[:min(len(expected.Places), maxSample)]) {
		sample = append(sample, orderAt(p))
	}
	return sample
}

// orderAt is an order like those of a place. It has no id.
func orderAt(p domain.PlaceDemand) solver.Order {
	return solver.Order{Delivery: location(p.Position), ProductType: p.ProductType, ColdChain: p.ColdChain, WeightKg: p.WeightKg}
}
