package model

import (
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Location is a WGS 84 point in degrees.
type Location struct {
	Lat float64 `json:"lat"`
	Lon float64 `json:"lon"`
}

// Priority is the medical urgency of an order: its place in domain.Priorities, so
// that it can index an array. The zero value is Standard.
type Priority int

// Priorities in rising urgency.
const (
	Standard Priority = iota
	High
	Critical
)

// PriorityCount is the number of priorities.
const PriorityCount = len(domain.Priorities)

// PriorityOf is the solver's form of a priority; Standard for none.
func PriorityOf(p domain.Priority) Priority {
	return Priority(max(0, slices.Index(domain.Priorities[:], p)))
}

// String returns the wire's short name.
func (p Priority) String() string {
	if p < 0 || int(p) >= PriorityCount {
		return "UNKNOWN"
	}
	return domain.Priorities[p].String()
}

// Window is how long after its creation an order of this priority is due when
// it names no deadline; that of Standard for an unknown one.
func (p Priority) Window() time.Duration {
	if p < 0 || int(p) >= PriorityCount {
		return Standard.Window()
	}
	return domain.Priorities[p].Window()
}

// Drone is one drone that is free to start at Problem.Now from where it is: idle, or on a
// mission without orders, see StandbyMission.
type Drone struct {
	ID string   `json:"id"`
	At Location `json:"at"`
	// HomeDepotID is where the route ends; empty means the nearest depot.
	HomeDepotID string `json:"homeDepotId,omitempty"`
	// BatteryPercent is the state of charge in [0,100].
	BatteryPercent float64 `json:"batteryPercent"`
	// ConsumptionPercentPerKm of flight, in [0.001,1000]; 0 means
	// DefaultConsumptionPercentPerKm.
	ConsumptionPercentPerKm float64 `json:"consumptionPercentPerKm,omitempty"`
	// ConsumptionPercentPerKmKg is what each kilogram aboard adds to that, at most 1000 with a
	// full load; above 0 it needs a CapacityKg.
	ConsumptionPercentPerKmKg float64 `json:"consumptionPercentPerKmKg,omitempty"`
	// CapacityKg is the most payload aboard at any time; 0 means unlimited.
	CapacityKg float64 `json:"capacityKg,omitempty"`
	// SpeedKmh is the cruise speed, in [1,1000]; 0 means DefaultSpeedKmh.
	SpeedKmh float64 `json:"speedKmh,omitempty"`
	// MaxFlight bounds the whole route including service; 0 means unlimited.
	MaxFlight time.Duration `json:"maxFlight,omitempty"`
	// SupportsStandby says that the drone takes missions without orders.
	SupportsStandby bool `json:"supportsStandby,omitempty"`
	// ChargePercentPerMinute is what it gains in a charging slot; 0 means
	// domain.DefaultChargeRate.
	ChargePercentPerMinute float64 `json:"chargePercentPerMinute,omitempty"`
	// NoColdBox says that it cannot carry orders that require a cold chain.
	NoColdBox bool `json:"noColdBox,omitempty"`
}

// Defaults of the fields that a drone leaves at zero.
const (
	DefaultConsumptionPercentPerKm = 2.5
	DefaultSpeedKmh                = 50.0
)

// Consumption returns the battery use in percent per km of the fully loaded drone, default
// applied: what to plan with before the load of a leg is known.
func (d Drone) Consumption() float64 { return d.ConsumptionWith(d.CapacityKg) }

// ConsumptionWith returns the battery use in percent per km with kilograms aboard.
func (d Drone) ConsumptionWith(kg float64) float64 {
	empty := d.ConsumptionPercentPerKm
	if empty == 0 {
		empty = DefaultConsumptionPercentPerKm
	}
	return empty + kg*d.ConsumptionPercentPerKmKg
}

// ChargePerMinute returns what the drone gains in a charging slot, default applied.
func (d Drone) ChargePerMinute() float64 {
	if d.ChargePercentPerMinute == 0 {
		return domain.DefaultChargeRate
	}
	return d.ChargePercentPerMinute
}

// Speed returns the cruise speed in km/h, default applied.
func (d Drone) Speed() float64 {
	if d.SpeedKmh == 0 {
		return DefaultSpeedKmh
	}
	return d.SpeedKmh
}

// Flight is a drone on a mission whose rest can be changed. What is behind it is not
// in the problem.
type Flight struct {
	// Drone is the drone as it is predicted for Problem.Now: where it is, with which
	// charge, and how long it may still fly.
	Drone     Drone  `json:"drone"`
	MissionID string `json:"missionId"`
	// Revision of the mission that a change is planned on.
	Revision int `json:"revision"`
	// Ready is when the drone can leave Drone.At: later than Problem.Now while it
	// serves a stop there.
	Ready time.Time `json:"ready"`
	// Stops are those ahead, the way home last, with kind, place, order and warehouse.
	// The first Committed of them cannot be changed any more.
	Stops     []Stop `json:"stops"`
	Committed int    `json:"committed,omitempty"`
	// Orders are those of Stops. An order without a pickup in Stops is aboard.
	Orders []Order `json:"orders"`
	// StopsBehind and OrdersDelivered belong to the same mission and count for the
	// limits of a decision.
	StopsBehind     int `json:"stopsBehind,omitempty"`
	OrdersDelivered int `json:"ordersDelivered,omitempty"`
}

// Aboard lists the orders that the drone carries at Problem.Now.
func (f Flight) Aboard() []Order {
	var aboard []Order
	for _, o := range f.Orders {
		if !slices.ContainsFunc(f.Stops, func(s Stop) bool { return s.Kind == WarehousePickup && s.OrderID == o.ID }) {
			aboard = append(aboard, o)
		}
	}
	return aboard
}

// StandbyMission is the mission without orders of one of Problem.Drones. A route of the drone
// changes the mission.
type StandbyMission struct {
	DroneID   string `json:"droneId"`
	MissionID string `json:"missionId"`
	// Revision of the mission that a change is planned on.
	Revision int `json:"revision"`
	// Stops are those ahead: where it charges or waits, and the way home.
	Stops []Stop `json:"stops"`
}

// Order is one pending delivery.
type Order struct {
	ID       string   `json:"id"`
	Delivery Location `json:"delivery"`
	// Pickup, when set, is the only place the parcel can be fetched. Otherwise
	// any warehouse that stocks ProductType (and is cold if ColdChain) will do.
	Pickup      *Location `json:"pickup,omitempty"`
	ProductType string    `json:"productType,omitempty"`
	WeightKg    float64   `json:"weightKg,omitempty"`
	ColdChain   bool      `json:"coldChain,omitempty"`
	Priority    Priority  `json:"priority"`
	// CreatedAt starts the order's clock; zero means Problem.Now.
	CreatedAt time.Time `json:"createdAt,omitzero"`
	// Deadline is the latest arrival at Delivery; zero means
	// CreatedAt + Priority.Window().
	Deadline time.Time `json:"deadline,omitzero"`
	// PinnedDroneID, when set, is the only drone that may carry the order.
	PinnedDroneID string `json:"pinnedDroneId,omitempty"`
	// ForbiddenDroneIDs are drones that must not carry the order.
	ForbiddenDroneIDs []string `json:"forbiddenDroneIds,omitempty"`
}

// Restricted reports whether some drones must not carry the order, whatever they
// can lift and reach.
func (o *Order) Restricted() bool { return o.PinnedDroneID != "" || len(o.ForbiddenDroneIDs) > 0 }

// Allows reports whether a drone may carry the order.
func (o *Order) Allows(drone string) bool {
	if o.PinnedDroneID != "" && o.PinnedDroneID != drone {
		return false
	}
	return len(o.ForbiddenDroneIDs) == 0 || !slices.Contains(o.ForbiddenDroneIDs, drone)
}

// MayGoBy reports whether a drone may carry the order: it is allowed, and has the cold box
// that the order needs.
func (o *Order) MayGoBy(d *Drone) bool { return o.Allows(d.ID) && !(o.ColdChain && d.NoColdBox) }

// Due returns the deadline, defaults applied.
func (o Order) Due(now time.Time) time.Time {
	if !o.Deadline.IsZero() {
		return o.Deadline
	}
	if o.CreatedAt.IsZero() {
		return now.Add(o.Priority.Window())
	}
	return o.CreatedAt.Add(o.Priority.Window())
}

// Warehouse stocks product types without limit of quantity.
type Warehouse struct {
	ID           string   `json:"id"`
	At           Location `json:"at"`
	ProductTypes []string `json:"productTypes"`
	ColdStorage  bool     `json:"coldStorage,omitempty"`
}

// Supplies reports whether the order's parcel can be fetched here.
func (w Warehouse) Supplies(o Order) bool {
	if o.ColdChain && !w.ColdStorage {
		return false
	}
	for _, t := range w.ProductTypes {
		if t == o.ProductType {
			return true
		}
	}
	return false
}

// Depot is a landing place.
type Depot struct {
	ID string   `json:"id"`
	At Location `json:"at"`
	// ChargingSlots is how many drones can charge at once; 0 means no limit is known.
	ChargingSlots int `json:"chargingSlots,omitempty"`
	// SlotsTaken is how many of them drones without a mission have, or wait for.
	SlotsTaken int `json:"slotsTaken,omitempty"`
}

// Params are the rules common to a whole problem.
type Params struct {
	// ReservePercent is the least charge at landing; 0 means 20, negative means no
	// reserve.
	ReservePercent float64 `json:"reservePercent,omitempty"`
	// PickupService and DeliveryService are spent at each such stop; default 0,
	// at most MaxService.
	PickupService   time.Duration `json:"pickupService,omitempty"`
	DeliveryService time.Duration `json:"deliveryService,omitempty"`
	// MaxOrdersPerRoute bounds one route; 0 means MaxOrdersPerDecision, which
	// it never exceeds.
	MaxOrdersPerRoute int `json:"maxOrdersPerRoute,omitempty"`
	// AgingStep is the overdue time that raises an order by one rank, so that no
	// feasible order waits forever; 0 means 10 minutes.
	AgingStep time.Duration `json:"agingStep,omitempty"`
}

// Limits of one published decision.
const (
	MaxOrdersPerDecision    = 64
	MaxWaypointsPerDecision = 256
)

// MaxWeightKg of an order is more than any drone carries.
const MaxWeightKg = domain.MaxWeightKg

// MaxWait bounds how long a mission without orders waits, from Problem.Now.
const MaxWait = 30 * time.Minute

// MaxService bounds the service at one stop.
const MaxService = 24 * time.Hour

// WithDefaults returns the parameters with every zero replaced and every value
// brought into its range.
func (p Params) WithDefaults() Params {
	if p.ReservePercent == 0 || p.ReservePercent != p.ReservePercent { // unset or NaN
		p.ReservePercent = 20
	}
	p.ReservePercent = min(100, max(0, p.ReservePercent))
	p.PickupService = min(MaxService, max(0, p.PickupService))
	p.DeliveryService = min(MaxService, max(0, p.DeliveryService))
	if p.MaxOrdersPerRoute <= 0 || p.MaxOrdersPerRoute > MaxOrdersPerDecision {
		p.MaxOrdersPerRoute = MaxOrdersPerDecision
	}
	if p.AgingStep <= 0 {
		p.AgingStep = 10 * time.Minute
	}
	return p
}

// Problem is everything that the solver knows, at one instant.
type Problem struct {
	Now             time.Time        `json:"now"`
	Depots          []Depot          `json:"depots"`
	Warehouses      []Warehouse      `json:"warehouses"`
	Drones          []Drone          `json:"drones"`
	Flights         []Flight         `json:"flights,omitempty"`
	StandbyMissions []StandbyMission `json:"standbyMissions,omitempty"`
	Orders          []Order          `json:"orders"`
	Params          Params           `json:"params,omitzero"`
}
