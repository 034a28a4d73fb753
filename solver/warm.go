package solver

// repairWarm repairs the previous plan: the stops of each route that still name
// pending orders and still fit keep their sequence, the other orders are inserted
// while there is time. It returns nil without a previous plan.
func (r *run) repairWarm() []plannedRoute {
	if r.opts.Warm == nil {
		return nil
	}
	drones := map[string]int32{}
	for i := range r.drones {
		drones[r.problem.Drones[r.drones[i].index].ID] = int32(i)
	}
	orders := map[string]int32{}
	for i := range r.orders {
		orders[r.problem.Orders[r.orders[i].index].ID] = int32(i)
	}
	var routes []plannedRoute
	flying, taken := map[int32]bool{}, map[int32]bool{}
	for _, old := range r.opts.Warm.Routes {
		d, ok := drones[old.DroneID]
		if !ok || flying[d] {
			continue
		}
		flying[d] = true
		if route := r.translate(old, d, orders, taken); len(route.stops) > 0 {
			routes = append(routes, route)
		}
	}
	return r.insertMissing(routes, indices(len(r.orders)), r.budget.over, false)
}

// translate returns an old route in terms of the prepared problem. It drops in pairs the
// stops that no longer name a pending order or one of its sources, those of orders that the
// drone must not carry, and those beyond the size of a route.
func (r *run) translate(old Route, drone int32, orders map[string]int32, taken map[int32]bool) plannedRoute {
	route := plannedRoute{drone: drone}
	aboard := map[int32]bool{}
	for _, s := range old.Stops {
		o, ok := orders[s.OrderID]
		if !ok {
			continue
		}
		switch s.Kind {
		case WarehousePickup:
			k := r.sourceIndex(o, s.WarehouseID)
			if k < 0 || !r.orders[o].mayCarry(drone) || taken[o] || aboard[o] || len(aboard) == r.params.MaxOrdersPerRoute {
				continue
			}
			aboard[o] = true
			route.stops = append(route.stops, plannedStop{o, int8(k)})
		case Delivery:
			if aboard[o] && !taken[o] {
				taken[o] = true
				route.stops = append(route.stops, plannedStop{o, -1})
			}
		}
	}
	stops := route.stops[:0]
	for _, s := range route.stops {
		if taken[s.order] {
			stops = append(stops, s)
		}
	}
	route.stops = stops
	return route
}

// sourceIndex returns which source of an order a warehouse is, -1 if none; the
// order's own pickup point has no warehouse.
func (r *run) sourceIndex(o int32, warehouse string) int {
	for k, s := range r.orders[o].sources {
		if s.warehouse < 0 && warehouse == "" || s.warehouse >= 0 && r.problem.Warehouses[s.warehouse].ID == warehouse {
			return k
		}
	}
	return -1
}
