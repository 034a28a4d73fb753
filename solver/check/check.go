package check

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver/model"
)

// Tolerances of the replay: the rounding of stored values, nothing more.
const (
	timeTolerance    = 5 * time.Millisecond
	batteryTolerance = 1e-6 // percent
	kmTolerance      = 1e-6
	degreeTolerance  = 1e-9
	// limitTolerance, in kilograms and percent, is what the assignment policy
	// accepts: a plan that exceeds it would be published and refused.
	limitTolerance = 1e-9
)

// Violation is one broken rule.
type Violation struct {
	Rule    string // stable name, such as "precedence"
	DroneID string // empty when the violation is not in a route
	OrderID string // empty when no single order is to blame
	Detail  string
}

// Violations lists every broken rule of a plan; it is an error when not empty.
type Violations []Violation

// Error lists the first violations on one line.
func (f Violations) Error() string {
	const shown = 5
	var b strings.Builder
	fmt.Fprintf(&b, "plan breaks %d rules:", len(f))
	for i, x := range f {
		if i == shown {
			b.WriteString(" ...")
			break
		}
		fmt.Fprintf(&b, " [%s drone=%q order=%q %s]", x.Rule, x.DroneID, x.OrderID, x.Detail)
	}
	return b.String()
}

// Plan replays the plan against the problem and returns nil, or Violations naming
// every rule it breaks. A late delivery is not a violation, but the counts in the
// plan's objective must agree with the replay.
func Plan(p model.Problem, plan model.Plan) error {
	r := newReplay(p)
	for _, route := range plan.Routes {
		r.route(route)
	}
	for _, a := range plan.Amendments {
		r.amendment(a)
	}
	for _, s := range plan.Standby {
		r.standby(s)
	}
	r.slots(plan)
	r.orders(plan)
	r.objective(plan.Objective)
	if len(r.violations) == 0 {
		return nil
	}
	return r.violations
}

// replay is one check of a plan.
type replay struct {
	problem    model.Problem
	params     model.Params
	violations Violations

	drones     map[string]model.Drone
	depots     map[string]model.Depot
	warehouses map[string]model.Warehouse
	ordersByID map[string]model.Order // the first record with that id
	firstOf    map[string]int         // its index

	flights         map[string]model.Flight         // by drone
	standbyMissions map[string]model.StandbyMission // by drone
	inFlight        map[string]string               // orders of flights to the drone

	flown     map[string]bool      // drones that have a route
	delivered map[string]time.Time // arrival by order
	unserved  [model.PriorityCount]int
	totalKm   float64
	longestKm float64
}

func newReplay(p model.Problem) *replay {
	r := &replay{
		problem: p, params: p.Params.WithDefaults(),
		drones: map[string]model.Drone{}, depots: map[string]model.Depot{},
		warehouses: map[string]model.Warehouse{}, ordersByID: map[string]model.Order{}, firstOf: map[string]int{},
		flights: map[string]model.Flight{}, standbyMissions: map[string]model.StandbyMission{}, inFlight: map[string]string{},
		flown: map[string]bool{}, delivered: map[string]time.Time{},
	}
	for _, d := range p.Drones {
		if _, seen := r.drones[d.ID]; !seen {
			r.drones[d.ID] = d
		}
	}
	for _, d := range p.Depots {
		if _, seen := r.depots[d.ID]; !seen {
			r.depots[d.ID] = d
		}
	}
	for _, w := range p.Warehouses {
		if _, seen := r.warehouses[w.ID]; !seen {
			r.warehouses[w.ID] = w
		}
	}
	for i, o := range p.Orders {
		if _, seen := r.ordersByID[o.ID]; !seen {
			r.ordersByID[o.ID], r.firstOf[o.ID] = o, i
		}
	}
	for _, s := range p.StandbyMissions {
		r.standbyMissions[s.DroneID] = s
	}
	r.addFlights()
	return r
}

func (r *replay) violation(rule, drone, order, format string, args ...any) {
	r.violations = append(r.violations, Violation{Rule: rule, DroneID: drone, OrderID: order, Detail: fmt.Sprintf(format, args...)})
}

// route flies one route from raw coordinates.
func (r *replay) route(route model.Route) {
	id := route.DroneID
	drone, known := r.drones[id]
	if !known {
		r.violation("drone", id, "", "unknown drone")
		return
	}
	if r.flown[id] {
		r.violation("drone", id, "", "has two routes")
	}
	r.flown[id] = true
	if !r.ends(route, drone) {
		return
	}

	f := flown{drone: drone, now: r.problem.Now, at: drone.At, aboard: map[string]bool{}}
	r.fly(&f, route)
	if f.orders == 0 {
		r.violation("empty", id, "", "route serves no order")
	}
	if f.orders > r.params.MaxOrdersPerRoute || len(route.Stops) > model.MaxWaypointsPerDecision {
		r.violation("size", id, "", "%d orders, %d stops", f.orders, len(route.Stops))
	}
	r.landing(route, drone, f.km, f.used, f.now.Sub(r.problem.Now))
	r.totalKm += f.km
	r.longestKm = math.Max(r.longestKm, f.km)
}

// flown is a drone part of the way along a route.
type flown struct {
	drone    model.Drone
	now      time.Time
	at       model.Location
	km, load float64
	used     float64 // of the charge, in percent
	aboard   map[string]bool
	orders   int // picked up
}

// fly flies the stops of a route from where the drone is.
func (r *replay) fly(f *flown, route model.Route) {
	id := f.drone.ID
	for i, stop := range route.Stops {
		leg := haversineKm(f.at, stop.At)
		f.km += leg
		f.now = f.now.Add(time.Duration(leg / f.drone.Speed() * float64(time.Hour)))
		f.at = stop.At
		f.used += leg * f.drone.ConsumptionWith(f.load)
		r.stored(route, i, f.now, f.km, f.drone.BatteryPercent-f.used)

		switch stop.Kind {
		case model.WarehousePickup:
			f.orders++
			order := r.pickup(id, stop, f.aboard)
			if !allowed(order, id) {
				r.violation("allowed", id, stop.OrderID, "pinned to drone %q, forbidden to %q", order.PinnedDroneID, order.ForbiddenDroneIDs)
			}
			if order.ColdChain && f.drone.NoColdBox {
				r.violation("cold", id, stop.OrderID, "the drone has no cold box")
			}
			f.load += order.WeightKg
			if f.drone.CapacityKg != 0 && !(f.load <= f.drone.CapacityKg+limitTolerance) {
				r.violation("capacity", id, stop.OrderID, "%.3f kg aboard, capacity %.3f", f.load, f.drone.CapacityKg)
			}
			f.now = f.now.Add(r.params.PickupService)
		case model.Delivery:
			order := r.deliver(id, stop, f.aboard, f.now)
			f.load -= order.WeightKg
			f.now = f.now.Add(r.params.DeliveryService)
		}
	}
	for order := range f.aboard {
		r.violation("pairing", id, order, "picked up, never delivered")
	}
}

// ends checks the first and the last stop. It returns false if the route cannot be
// replayed.
func (r *replay) ends(route model.Route, drone model.Drone) bool {
	id, n := route.DroneID, len(route.Stops)
	if n < 2 || route.Stops[0].Kind != model.DepotStart || route.Stops[n-1].Kind != model.DepotReturn {
		r.violation("ends", id, "", "route must start with DEPOT_START and end with DEPOT_RETURN")
		return false
	}
	for i, stop := range route.Stops[1 : n-1] {
		if stop.Kind != model.WarehousePickup && stop.Kind != model.Delivery {
			r.violation("ends", id, "", "stop %d is a %s inside the route", i+1, stop.Kind)
			return false
		}
	}
	if !same(route.Stops[0].At, drone.At) {
		r.violation("ends", id, "", "does not start at the drone's position")
	}
	last := route.Stops[n-1].At
	if drone.HomeDepotID != "" {
		if home, ok := r.depots[drone.HomeDepotID]; !ok || !same(last, home.At) {
			r.violation("ends", id, "", "does not end at home depot %q", drone.HomeDepotID)
		}
		return true
	}
	for _, depot := range r.problem.Depots {
		if same(last, depot.At) {
			return true
		}
	}
	r.violation("ends", id, "", "does not end at a depot")
	return true
}

// stored compares the stored values of a stop with the replay.
func (r *replay) stored(route model.Route, i int, now time.Time, km, battery float64) {
	stop := route.Stops[i]
	if diff := stop.ETA.Sub(now); diff > timeTolerance || diff < -timeTolerance {
		r.violation("eta", route.DroneID, stop.OrderID, "stop %d says %s, replay %s", i, stop.ETA, now)
	}
	if !(math.Abs(stop.DistanceKm-km) <= kmTolerance) {
		r.violation("distance", route.DroneID, stop.OrderID, "stop %d says %.6f km, replay %.6f", i, stop.DistanceKm, km)
	}
	if !(math.Abs(stop.BatteryPercent-battery) <= batteryTolerance) {
		r.violation("battery", route.DroneID, stop.OrderID, "stop %d says %.6f %%, replay %.6f", i, stop.BatteryPercent, battery)
	}
}

func (r *replay) pickup(drone string, stop model.Stop, aboard map[string]bool) model.Order {
	order, known := r.ordersByID[stop.OrderID]
	if !known {
		r.violation("order", drone, stop.OrderID, "unknown order")
		return order
	}
	if _, done := r.delivered[order.ID]; done || aboard[order.ID] {
		r.violation("once", drone, order.ID, "picked up again")
	}
	aboard[order.ID] = true
	if carrier, flies := r.inFlight[order.ID]; flies {
		r.carriedOn(carrier, drone, stop)
		return order
	}
	if order.Pickup != nil {
		if !same(stop.At, *order.Pickup) {
			r.violation("stock", drone, order.ID, "not picked up at the order's pickup point")
		}
		return order
	}
	w, known := r.warehouses[stop.WarehouseID]
	switch {
	case !known:
		r.violation("stock", drone, order.ID, "unknown warehouse %q", stop.WarehouseID)
	case !same(stop.At, w.At):
		r.violation("stock", drone, order.ID, "stop is not at warehouse %q", w.ID)
	case order.ColdChain && !w.ColdStorage:
		r.violation("stock", drone, order.ID, "warehouse %q is not cold", w.ID)
	case !stocks(w, order.ProductType):
		r.violation("stock", drone, order.ID, "warehouse %q does not stock %q", w.ID, order.ProductType)
	}
	return order
}

func (r *replay) deliver(drone string, stop model.Stop, aboard map[string]bool, now time.Time) model.Order {
	order, known := r.ordersByID[stop.OrderID]
	if !known {
		r.violation("order", drone, stop.OrderID, "unknown order")
		return order
	}
	if !aboard[order.ID] {
		r.violation("precedence", drone, order.ID, "delivered before its pickup")
	}
	delete(aboard, order.ID)
	if !same(stop.At, order.Delivery) {
		r.violation("pairing", drone, order.ID, "delivered to another place")
	}
	r.delivered[order.ID] = now
	return order
}

// landing checks the state at the end of a route, after the leg home.
func (r *replay) landing(route model.Route, drone model.Drone, km, used float64, took time.Duration) {
	if left := drone.BatteryPercent - math.Max(used, route.BatteryUsePercent); !(left >= r.params.ReservePercent-limitTolerance) {
		r.violation("reserve", route.DroneID, "", "lands with %.3f %%, reserve %.3f %%", left, r.params.ReservePercent)
	}
	if drone.MaxFlight > 0 && took-timeTolerance > drone.MaxFlight {
		r.violation("flight", route.DroneID, "", "takes %s, at most %s", took, drone.MaxFlight)
	}
	if !(math.Abs(route.DistanceKm-km) <= kmTolerance) || !(math.Abs(route.BatteryUsePercent-used) <= batteryTolerance) {
		r.violation("totals", route.DroneID, "", "says %.6f km %.6f %%, replay %.6f km %.6f %%",
			route.DistanceKm, route.BatteryUsePercent, km, used)
	}
	if diff := route.Duration - took; diff > timeTolerance || diff < -timeTolerance {
		r.violation("totals", route.DroneID, "", "says %s, replay %s", route.Duration, took)
	}
}

// orders checks that every order record is in the routes or in the unserved
// list exactly once. Of records that share an id only the first can be served.
func (r *replay) orders(plan model.Plan) {
	listed := make([]int, len(r.problem.Orders))
	for _, u := range plan.Unserved {
		if u.Index < 0 || u.Index >= len(listed) || r.problem.Orders[u.Index].ID != u.OrderID {
			r.violation("bank", "", u.OrderID, "unserved entry with index %d names no order", u.Index)
			continue
		}
		switch u.Reason {
		case model.NoCompatibleWarehouse, model.OutOfRange, model.NoDroneFree, model.KeptForCritical,
			model.WaitsForBetterRoute, model.DeadlineUnreachable, model.OverCapacity, model.NoDroneAllowed:
		case model.InvalidInput: // does not count as an order
			if r.valid(u.Index) {
				r.violation("bank", "", u.OrderID, "reason is invalid_input, but the order is valid")
			}
		default:
			r.violation("bank", "", u.OrderID, "unknown reason %q", u.Reason)
		}
		listed[u.Index]++
		if p := r.problem.Orders[u.Index].Priority; u.Reason != model.InvalidInput && validPriority(p) {
			r.unserved[p]++
		}
	}
	for i, o := range r.problem.Orders {
		n := listed[i]
		if _, done := r.delivered[o.ID]; done && r.firstOf[o.ID] == i {
			n++
		}
		if n != 1 {
			r.violation("conservation", "", o.ID, "order %d is accounted for %d times", i, n)
		}
	}
}

// objective recomputes what does not depend on the solver's ranks: distance,
// longest route, late deliveries, unserved orders.
func (r *replay) objective(o model.Objective) {
	var late [model.PriorityCount]int
	for id, at := range r.delivered {
		order := r.ordersByID[id]
		if _, flies := r.inFlight[id]; flies { // it did not wait
			continue
		}
		if at.After(order.Due(r.problem.Now).Add(model.LateTolerance)) && validPriority(order.Priority) {
			late[order.Priority]++
		}
	}
	if late != o.Late {
		r.violation("objective", "", "", "says late %v, replay %v", o.Late, late)
	}
	if r.unserved != o.Unserved {
		r.violation("objective", "", "", "says unserved %v, lists %v", o.Unserved, r.unserved)
	}
	slack := kmTolerance * float64(len(r.flown)+1)
	if !(math.Abs(o.DistanceKm-r.totalKm) <= slack) || !(math.Abs(o.LongestKm-r.longestKm) <= slack) {
		r.violation("objective", "", "", "says %.6f km longest %.6f, replay %.6f and %.6f",
			o.DistanceKm, o.LongestKm, r.totalKm, r.longestKm)
	}
}

// valid reports whether a record is an order that a decision could name.
func (r *replay) valid(i int) bool {
	o := r.problem.Orders[i]
	named := domain.CheckID(o.ID) == nil && r.firstOf[o.ID] == i
	placed := onEarth(o.Delivery) && (o.Pickup == nil && o.ProductType != "" || o.Pickup != nil && onEarth(*o.Pickup))
	return named && placed && o.WeightKg >= 0 && o.WeightKg <= model.MaxWeightKg && validPriority(o.Priority)
}

func onEarth(l model.Location) bool {
	return math.Abs(l.Lat) <= 90 && math.Abs(l.Lon) <= 180
}

func validPriority(p model.Priority) bool { return p >= 0 && int(p) < model.PriorityCount }

func stocks(w model.Warehouse, product string) bool {
	for _, t := range w.ProductTypes {
		if t == product {
			return true
		}
	}
	return false
}

// allowed reports whether an order's pin and prohibitions let a drone carry it.
func allowed(o model.Order, drone string) bool {
	for _, forbidden := range o.ForbiddenDroneIDs {
		if forbidden == drone {
			return false
		}
	}
	return o.PinnedDroneID == "" || o.PinnedDroneID == drone
}

func same(a, b model.Location) bool {
	return math.Abs(a.Lat-b.Lat) <= degreeTolerance && math.Abs(a.Lon-b.Lon) <= degreeTolerance
}

// haversineKm is the great-circle distance on the mean sphere of 6371 km.
func haversineKm(a, b model.Location) float64 {
	const radius, rad = 6371.0, math.Pi / 180
	sinLat := math.Sin((b.Lat - a.Lat) * rad / 2)
	sinLon := math.Sin((b.Lon - a.Lon) * rad / 2)
	h := sinLat*sinLat + math.Cos(a.Lat*rad)*math.Cos(b.Lat*rad)*sinLon*sinLon
	return 2 * radius * math.Asin(math.Min(1, math.Sqrt(h)))
}
