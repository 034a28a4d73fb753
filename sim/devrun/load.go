package devrun

import (
	"fmt"

	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// LoadSummary compares the rate of orders with what the fleet could carry.
type LoadSummary struct {
	OrdersPerMinute float64 `json:"ordersPerMinute"` // as configured; opening orders are left out
	// CapacityPerMinute estimates the orders that the fleet could carry for hours.
	CapacityPerMinute float64 `json:"capacityPerMinute"`
	KmPerOrder        float64 `json:"kmPerOrder"` // flight, on which the capacity rests
	Drones            int     `json:"drones"`
}

// fullLoadKmPerOrder is the flight per order of the reference fleet when it is busy,
// with about six orders to a mission. A fleet with time to spare flies further for
// each, 7.5 km at four orders a minute and 40 drones, so that its own flight says
// little about its capacity.
const fullLoadKmPerOrder = 4.5

// measuredOrders is how many orders must have been assigned before the flight per
// order is measured: opening orders are shorter than others.
const measuredOrders = 200

// loadOf estimates the capacity from flight and charging. For each kilometre a drone
// flies 60/CruiseKmh minutes and charges ConsumptionPerKm/rate minutes; at
// each of an order's two stops it stays for Dwell:
//
//	capacity = drones / (km per order * minutes per km + 2 * dwell)
//
// It cannot be more than what the slots can charge, if they are limited:
//
//	capacity = slots * percent per minute / (km per order * ConsumptionPerKm)
//
// km is the planned flight of all missions, assigned the number of their orders.
func loadOf(ordersPerMinute float64, drones int, c charging, km float64, assigned int) LoadSummary {
	r := LoadSummary{OrdersPerMinute: ordersPerMinute, KmPerOrder: fullLoadKmPerOrder, Drones: drones}
	if assigned >= measuredOrders {
		r.KmPerOrder = min(r.KmPerOrder, km/float64(assigned))
	}
	minutesPerKm := 60/fleetsim.CruiseKmh + fleetsim.ConsumptionPerKm/c.rate
	r.CapacityPerMinute = float64(drones) / (r.KmPerOrder*minutesPerKm + 2*fleetsim.Dwell.Minutes())
	if c.slots > 0 {
		r.CapacityPerMinute = min(r.CapacityPerMinute, float64(c.slots)*c.rate/(r.KmPerOrder*fleetsim.ConsumptionPerKm))
	}
	return r
}

// charging is how many drones can charge at once, 0 for all, and what each gains a minute.
type charging struct {
	slots int
	rate  float64
}

// print describes the load for people.
func (r LoadSummary) print() string {
	if r.Drones == 0 {
		return fmt.Sprintf("%g orders/min; no simulated drones", r.OrdersPerMinute)
	}
	text := fmt.Sprintf("%g orders/min; %d drones could carry about %.1f/min", r.OrdersPerMinute, r.Drones, r.CapacityPerMinute)
	if r.OrdersPerMinute > r.CapacityPerMinute {
		text += ", so the backlog grows; lower --orders-per-minute or raise --drones"
	}
	return text
}
