package planner

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

// Barrier is something that keeps every drone from an order for as long as the order, the places and
// the drones stay as they are.
type Barrier struct {
	Reason string // of the solver, such as out_of_range
	Field  string // of the order, as in JSON
	Detail string // what is wrong, after the field's name
}

// Barriers lists what keeps every drone from an order. Each drone is judged as if it were charged at
// its depot, as by JudgeByAllDrones. Without depots or drones it says only whether a warehouse
// supplies the product.
func Barriers(depots []domain.Depot, warehouses []domain.Warehouse, drones []domain.Drone, o domain.Order) (list []Barrier) {
	known := len(depots) > 0 && len(drones) > 0
	for {
		b := barrier(depots, warehouses, drones, o)
		switch solver.Reason(b.Reason) {
		case solver.NoCompatibleWarehouse: // what else is wrong is judged as if one were at the delivery
			o.Pickup = &o.Delivery
		case solver.OverCapacity:
			o.WeightKg = 0
		case solver.NoDroneAllowed:
			o.ColdChain = false
		case solver.OutOfRange:
			return append(list, b)
		default:
			return list
		}
		list = append(list, b)
		if !known {
			return list
		}
	}
}

// barrier is the first barrier that the solver finds; its reason is another if there is none.
func barrier(depots []domain.Depot, warehouses []domain.Warehouse, drones []domain.Drone, o domain.Order) Barrier {
	stocked := slices.DeleteFunc(slices.Clone(warehouses), func(w domain.Warehouse) bool { return !w.Stocks(o.ProductType) })
	p := ProblemOf(domain.Snapshot{Neighbours: depots, Warehouses: stocked, Drones: drones, Orders: []domain.Order{o}}, o.CreatedAt, solver.Params{})
	f := newDirectFlights(&p)
	for i, d := range p.Drones {
		p.Drones[i] = f.charged(d)
	}
	u := solver.Screen(p).Unserved[0]
	b := Barrier{Reason: string(u.Reason)}
	switch u.Reason {
	case solver.NoCompatibleWarehouse:
		b.Field, b.Detail = "productType", fmt.Sprintf("is %q, which no warehouse stocks; %s", o.ProductType, productsOf(warehouses))
		if len(stocked) > 0 {
			b.Field, b.Detail = "requiresColdChain", fmt.Sprintf("is true, and no warehouse that stocks %q has cold storage", o.ProductType)
		}
	case solver.OverCapacity:
		most := 0.0
		for _, d := range drones {
			most = max(most, d.PayloadCapacityKg)
		}
		b.Field, b.Detail = "packageWeightKg", fmt.Sprintf("is %v, and no drone carries more than %v kg; split the order", o.WeightKg, most)
	case solver.NoDroneAllowed:
		b.Field, b.Detail = "requiresColdChain", "is true, and no drone has a cold box"
	case solver.OutOfRange:
		least := math.Inf(1)
		for _, d := range depots {
			least = min(least, d.Position.DistanceMetres(o.Delivery))
		}
		b.Field, b.Detail = "deliveryLocation", fmt.Sprintf("is %.0f km from the nearest depot; with the way to pick the parcel up that is too far for every drone", least/1000)
		if inRangeSwapped(p, 0) {
			b.Detail = "is too far for every drone, and within reach with lat and lon exchanged; exchange them"
		}
	}
	return b
}

// productsNamed is how many products a text lists.
const productsNamed = 10

// productsOf lists for people what the warehouses stock.
func productsOf(warehouses []domain.Warehouse) string {
	products := map[string]bool{}
	for _, w := range warehouses {
		for _, p := range w.ProductTypes {
			products[p] = true
		}
	}
	names := slices.Sorted(maps.Keys(products))
	switch n := len(names); {
	case n == 0:
		return "no warehouse has products yet"
	case n > productsNamed:
		return fmt.Sprintf("give one of %s or %d others", strings.Join(names[:productsNamed], ", "), n-productsNamed)
	}
	return "give one of " + strings.Join(names, ", ")
}
