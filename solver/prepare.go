package solver

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver/internal/pdp"
)

// energyMargin, in metres, keeps rounding errors from using the landing reserve.
const energyMargin = 1e-4

// maxReach bounds how far a drone flies, in metres: a quarter of the way around the earth.
// Between nearly opposite points the distance has fewer exact digits than a plan and its
// replay must share.
const maxReach = 1e7

// readyDrone is a drone that passed validation.
type readyDrone struct {
	index     int // in Problem.Drones
	at, home  vec
	depot     int     // in Problem.Depots
	reach     float64 // metres it can fly and still land with the reserve
	fullReach float64 // the same with a full battery
	pace      float64 // seconds per metre
	capacity  float64 // kg, +Inf if unlimited
	maxTime   float64 // seconds, +Inf if unlimited
}

// source is a place where an order can be fetched.
type source struct {
	at        vec
	warehouse int // in Problem.Warehouses, -1: the order's own point
	ready     int // in prepared.warehouses
}

// readyOrder is an order that passed validation and that some drone can serve.
type readyOrder struct {
	index    int // in Problem.Orders
	delivery vec
	sources  []source // best first, at most maxSources
	due      float64  // seconds from now; +Inf when it is too late for every drone
	weight   float64
	rank     int
	overdue  float64 // seconds past the deadline, 0 if not late
	extra    int     // aging steps beyond the highest rank
	barred   pdp.Set // of prepared.drones, those that must not carry it; nil if all may
	pinned   int32   // in prepared.drones, the only one that may carry it; -1 if there are several
}

// maxExtra bounds how many orders of the highest rank one long overdue order can
// outweigh.
const maxExtra = 15

// prepared is the problem without the records and orders that are impossible.
type prepared struct {
	scalarGoal bool // minimise the reference optimizer's scalar
	problem    Problem
	params     Params
	depots     []vec
	drones     []readyDrone
	orders     []readyOrder
	unserved   []Unserved
	ignored    []Ignored

	warehouses   []readyWarehouse
	stock        map[string][]int // product type -> warehouses
	longestReach float64          // greatest fullReach of any drone
	farthestNow  float64          // greatest reach of any drone
	fastest      float64          // seconds per metre of the fastest drone
	noColdBox    bool             // some drone has none
	sources      []source         // scratch of sourcesOf
	approaches   []approach       // scratch of feasibility
}

type readyWarehouse struct {
	index int
	at    vec
	cold  bool
	// approach is the distance to the nearest drone, in metres.
	approach float64
	// near are the drones that could fetch something there with a full battery, nearest
	// first.
	near []approach
	// misses counts the orders that none of these could deliver in time. After a few, it pays
	// to know the best: those that no nearer drone equals or beats in everything.
	misses int
	best   []approach
}

// approach is how far a drone is from a place.
type approach struct {
	drone  int32 // in prepared.drones
	metres float64
}

// maxSources is how many warehouses an order may choose from: as many as the
// engine has pickup alternatives.
const maxSources = pdp.MaxPickups

func prepare(p Problem) *prepared {
	pr := &prepared{problem: p, params: p.Params.WithDefaults(), stock: map[string][]int{}, fastest: math.Inf(1)}
	depotByID := pr.prepareDepots()
	pr.prepareDrones(depotByID)
	pr.prepareWarehouses()
	pr.prepareOrders()
	return pr
}

func (pr *prepared) ignore(kind, id string, index int, detail string) {
	pr.ignored = append(pr.ignored, Ignored{Kind: kind, ID: id, Index: index, Detail: detail})
}

// badLocation says which coordinate is wrong, or returns "".
func badLocation(l Location) string {
	switch {
	case !(l.Lat >= -90 && l.Lat <= 90):
		return fmt.Sprintf("lat %v is outside [-90,90]", l.Lat)
	case !(l.Lon >= -180 && l.Lon <= 180):
		return fmt.Sprintf("lon %v is outside [-180,180]", l.Lon)
	}
	return ""
}

// badIdentity says what is wrong with an id: no decision can carry it, or it is
// repeated. It adds good ids to seen.
func badIdentity(id string, seen map[string]bool) string {
	if err := domain.CheckID(id); err != nil {
		return "id " + err.Error()
	}
	if seen[id] {
		return "id is a duplicate of an earlier record"
	}
	seen[id] = true
	return ""
}

func (pr *prepared) prepareDepots() map[string]int {
	seen, byID := map[string]bool{}, map[string]int{}
	pr.depots = make([]vec, len(pr.problem.Depots))
	for i, d := range pr.problem.Depots {
		bad := badIdentity(d.ID, seen)
		if bad == "" {
			if bad = badLocation(d.At); bad != "" {
				bad = "at: " + bad
			}
		}
		if bad != "" {
			pr.ignore("depot", d.ID, i, bad)
			continue
		}
		byID[d.ID] = i
		pr.depots[i] = toVec(d.At)
	}
	return byID
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// badDrone says what is wrong with the first wrong field, or returns "".
func badDrone(d Drone) string {
	if bad := badLocation(d.At); bad != "" {
		return "at: " + bad
	}
	switch {
	case !(d.BatteryPercent >= 0 && d.BatteryPercent <= 100):
		return fmt.Sprintf("batteryPercent %v is outside [0,100]", d.BatteryPercent)
	case d.ConsumptionPercentPerKm != 0 && !(d.ConsumptionPercentPerKm >= 0.001 && d.ConsumptionPercentPerKm <= 1000):
		return fmt.Sprintf("consumptionPercentPerKm %v is neither 0 nor in [0.001,1000]", d.ConsumptionPercentPerKm)
	case !(d.ConsumptionPercentPerKmKg >= 0 && d.ConsumptionPercentPerKmKg <= 1000):
		return fmt.Sprintf("consumptionPercentPerKmKg %v is outside [0,1000]", d.ConsumptionPercentPerKmKg)
	case !finite(d.CapacityKg) || d.CapacityKg < 0:
		return fmt.Sprintf("capacityKg %v is not a finite number >= 0", d.CapacityKg)
	case d.ConsumptionPercentPerKmKg > 0 && d.CapacityKg == 0:
		return "consumptionPercentPerKmKg is given, and capacityKg is not; give both"
	case !(d.Consumption() <= 1000): // the rounding of a distance would be charge that counts
		return fmt.Sprintf("a full load of capacityKg %v makes consumptionPercentPerKm %v, above 1000", d.CapacityKg, d.Consumption())
	case d.SpeedKmh != 0 && !(d.SpeedKmh >= 1 && d.SpeedKmh <= 1000):
		return fmt.Sprintf("speedKmh %v is neither 0 nor in [1,1000]", d.SpeedKmh)
	case d.MaxFlight < 0:
		return fmt.Sprintf("maxFlight %v is negative", d.MaxFlight)
	}
	return ""
}

func (pr *prepared) prepareDrones(depotByID map[string]int) {
	seen := map[string]bool{}
	reserve := pr.params.ReservePercent
	for i, d := range pr.problem.Drones {
		bad := badIdentity(d.ID, seen)
		if bad == "" {
			bad = badDrone(d)
		}
		depot := -1
		at := toVec(d.At)
		if bad == "" {
			depot, bad = pr.homeOf(d, at, depotByID)
		}
		if bad == "" && d.BatteryPercent <= reserve {
			bad = fmt.Sprintf("batteryPercent %v is not above the reserve of %v", d.BatteryPercent, reserve)
		}
		if bad != "" {
			pr.ignore("drone", d.ID, i, bad)
			continue
		}
		r := readyDrone{
			index: i, at: at, home: pr.depots[depot], depot: depot,
			reach:     min(maxReach, max(0, (d.BatteryPercent-reserve)/d.Consumption()*1000-energyMargin)),
			fullReach: min(maxReach, max(0, (100-reserve)/d.Consumption()*1000-energyMargin)),
			pace:      3.6 / d.Speed(),
			capacity:  d.CapacityKg, maxTime: d.MaxFlight.Seconds(),
		}
		if d.CapacityKg == 0 {
			r.capacity = math.Inf(1)
		}
		if d.MaxFlight == 0 {
			r.maxTime = math.Inf(1)
		}
		pr.longestReach, pr.farthestNow = max(pr.longestReach, r.fullReach), max(pr.farthestNow, r.reach)
		pr.fastest, pr.noColdBox = min(pr.fastest, r.pace), pr.noColdBox || d.NoColdBox
		pr.drones = append(pr.drones, r)
	}
}

// homeOf returns the drone's depot: the named one, or the nearest.
func (pr *prepared) homeOf(d Drone, at vec, byID map[string]int) (int, string) {
	if d.HomeDepotID != "" {
		if i, ok := byID[d.HomeDepotID]; ok {
			return i, ""
		}
		return -1, fmt.Sprintf("homeDepotId %q names no valid depot", d.HomeDepotID)
	}
	best, nearest := -1, math.Inf(1)
	for i, depot := range pr.problem.Depots {
		if j, ok := byID[depot.ID]; !ok || j != i {
			continue
		}
		if m := at.metres(pr.depots[i]); m < nearest {
			best, nearest = i, m
		}
	}
	if best < 0 {
		return -1, "homeDepotId is empty and there is no depot"
	}
	return best, ""
}

// best lists the drones that decide whether any drone can serve an order that all may carry.
// They are few in a fleet that stands at its depot.
func (pr *prepared) best(near []approach) []approach {
	var best []approach
	for _, a := range near {
		d := &pr.drones[a.drone]
		if !slices.ContainsFunc(best, func(b approach) bool { return pr.drones[b.drone].atLeast(d) }) {
			best = append(best, a)
		}
	}
	return best
}

// atLeast reports whether a drone can do all that another could from the same place.
func (d *readyDrone) atLeast(o *readyDrone) bool {
	return d.depot == o.depot && d.reach >= o.reach && d.fullReach >= o.fullReach && d.pace <= o.pace &&
		d.capacity >= o.capacity && d.maxTime >= o.maxTime
}

func (pr *prepared) prepareWarehouses() {
	seen := map[string]bool{}
	for i, w := range pr.problem.Warehouses {
		bad := badIdentity(w.ID, seen)
		if bad == "" {
			if bad = badLocation(w.At); bad != "" {
				bad = "at: " + bad
			}
		}
		if bad != "" {
			pr.ignore("warehouse", w.ID, i, bad)
			continue
		}
		rw := readyWarehouse{index: i, at: toVec(w.At), cold: w.ColdStorage, approach: math.Inf(1)}
		for k := range pr.drones {
			d := rw.at.metres(pr.drones[k].at)
			if rw.approach = min(rw.approach, d); d <= pr.longestReach {
				rw.near = append(rw.near, approach{int32(k), d})
			}
		}
		slices.SortFunc(rw.near, func(a, b approach) int {
			return cmp.Or(cmp.Compare(a.metres, b.metres), cmp.Compare(a.drone, b.drone))
		})
		for k, t := range w.ProductTypes {
			if !slices.Contains(w.ProductTypes[:k], t) {
				pr.stock[t] = append(pr.stock[t], len(pr.warehouses))
			}
		}
		pr.warehouses = append(pr.warehouses, rw)
	}
}
