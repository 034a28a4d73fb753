package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
	"github.com/dronefleet/dronefleet/solver/model"
)

// flownRoute is what a rival has a drone do.
type flownRoute struct {
	DroneID string      `json:"droneId"`
	Stops   []flownStop `json:"stops"`
}

// flownStop is a pickup where it names a warehouse, and a delivery otherwise.
type flownStop struct {
	Order     string `json:"order"`
	Warehouse string `json:"warehouse,omitempty"`
}

// planOf turns routes into a plan of the problem with times, batteries and objective,
// for the checker to judge. The objective's ranks are those of orders in time; orders
// that are too late for every drone are in no rank.
func planOf(p solver.Problem, routes []flownRoute) (solver.Plan, error) {
	b := newPlanBuilder(p)
	for _, route := range routes {
		if err := b.fly(route); err != nil {
			return solver.Plan{}, err
		}
	}
	inTime := possibleInTime(p)
	for i, o := range p.Orders {
		late, served := b.lateBy[o.ID]
		if !served {
			b.out.Unserved = append(b.out.Unserved, solver.Unserved{OrderID: o.ID, Index: i, Reason: model.NoDroneFree})
			b.out.Objective.Unserved[o.Priority]++
		}
		if late > model.LateTolerance {
			b.out.Objective.Late[o.Priority]++
		}
		if inTime[i] && (!served || late > model.LateTolerance) {
			b.out.Objective.MissedByRank[model.PriorityCount-1-int(o.Priority)]++
		}
	}
	return b.out, nil
}

// planBuilder flies routes one after the other.
type planBuilder struct {
	problem    solver.Problem
	drones     map[string]model.Drone
	homes      map[string]model.Location
	orders     map[string]model.Order
	warehouses map[string]model.Warehouse
	lateBy     map[string]time.Duration // of the orders delivered
	out        solver.Plan
}

func newPlanBuilder(p solver.Problem) *planBuilder {
	b := &planBuilder{problem: p, drones: map[string]model.Drone{}, homes: map[string]model.Location{},
		orders: map[string]model.Order{}, warehouses: map[string]model.Warehouse{}, lateBy: map[string]time.Duration{}}
	for _, d := range p.Drones {
		b.drones[d.ID] = d
	}
	for _, d := range p.Depots {
		b.homes[d.ID] = d.At
	}
	for _, o := range p.Orders {
		b.orders[o.ID] = o
	}
	for _, w := range p.Warehouses {
		b.warehouses[w.ID] = w
	}
	return b
}

// fly adds a route to the plan.
func (b *planBuilder) fly(route flownRoute) error {
	drone, known := b.drones[route.DroneID]
	if !known {
		return fmt.Errorf("droneId %q is not in the problem", route.DroneID)
	}
	out := solver.Route{DroneID: drone.ID}
	at, clock, load := drone.At, b.problem.Now, 0.0
	add := func(s solver.Stop) {
		km := kilometres(at, s.At)
		clock = clock.Add(time.Duration(km / drone.Speed() * float64(time.Hour)))
		out.DistanceKm += km
		out.BatteryUsePercent += km * drone.ConsumptionWith(load)
		at = s.At
		s.ETA, s.DistanceKm, s.BatteryPercent = clock, out.DistanceKm, drone.BatteryPercent-out.BatteryUsePercent
		out.Stops = append(out.Stops, s)
	}
	add(solver.Stop{Kind: model.DepotStart, At: drone.At})
	for _, stop := range route.Stops {
		order, known := b.orders[stop.Order]
		if !known {
			return fmt.Errorf("drone %q: order %q is not in the problem", drone.ID, stop.Order)
		}
		if stop.Warehouse != "" {
			add(solver.Stop{Kind: model.WarehousePickup, OrderID: order.ID, WarehouseID: stop.Warehouse, At: b.warehouses[stop.Warehouse].At})
			clock = clock.Add(b.problem.Params.PickupService)
			load += order.WeightKg
			continue
		}
		add(solver.Stop{Kind: model.Delivery, OrderID: order.ID, At: order.Delivery})
		b.lateBy[order.ID] = clock.Sub(order.Due(b.problem.Now))
		clock = clock.Add(b.problem.Params.DeliveryService)
		load -= order.WeightKg
	}
	add(solver.Stop{Kind: model.DepotReturn, At: b.homes[drone.HomeDepotID]})
	out.Duration = clock.Sub(b.problem.Now)
	b.out.Routes = append(b.out.Routes, out)
	b.out.Objective.DistanceKm += out.DistanceKm
	b.out.Objective.LongestKm = math.Max(b.out.Objective.LongestKm, out.DistanceKm)
	return nil
}

// possibleInTime tells for each order whether some drone alone could deliver it in
// time and fly home.
func possibleInTime(p solver.Problem) []bool {
	params := p.Params.WithDefaults()
	homes := map[string]model.Location{}
	for _, d := range p.Depots {
		homes[d.ID] = d.At
	}
	approach := make([][]float64, len(p.Warehouses)) // km to each from each drone
	for w := range approach {
		for _, d := range p.Drones {
			approach[w] = append(approach[w], kilometres(d.At, p.Warehouses[w].At))
		}
	}
	out := make([]bool, len(p.Orders))
	for i, o := range p.Orders {
		left := o.Due(p.Now).Sub(p.Now).Hours()
		back := map[string]float64{}
		for id, home := range homes {
			back[id] = kilometres(o.Delivery, home)
		}
		for w := range p.Warehouses {
			if !p.Warehouses[w].Supplies(o) {
				continue
			}
			leg := kilometres(p.Warehouses[w].At, o.Delivery)
			for k := range p.Drones {
				d := &p.Drones[k]
				there := approach[w][k] + leg
				total := there + back[d.HomeDepotID]
				if (d.CapacityKg == 0 || o.WeightKg <= d.CapacityKg) && d.BatteryPercent-total*d.Consumption() >= params.ReservePercent &&
					there/d.Speed()+params.PickupService.Hours() <= left &&
					(d.MaxFlight == 0 || total/d.Speed()+(params.PickupService+params.DeliveryService).Hours() <= d.MaxFlight.Hours()) {
					out[i] = true
					break
				}
			}
		}
	}
	return out
}

// only returns the problem with nothing but the orders that the routes deliver.
func only(p solver.Problem, routes []flownRoute) solver.Problem {
	served := map[string]bool{}
	for _, route := range routes {
		for _, s := range route.Stops {
			served[s.Order] = true
		}
	}
	p.Orders = slices.DeleteFunc(slices.Clone(p.Orders), func(o model.Order) bool { return !served[o.ID] })
	return p
}

func kilometres(a, b model.Location) float64 {
	return domain.Position(a).DistanceMetres(domain.Position(b)) / 1000
}
