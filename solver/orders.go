package solver

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dronefleet/dronefleet/solver/internal/pdp"
	"github.com/dronefleet/dronefleet/solver/model"
)

// badOrder says what is wrong with the first wrong field, or returns "".
func badOrder(o Order) string {
	if bad := badLocation(o.Delivery); bad != "" {
		return "delivery: " + bad
	}
	if o.Pickup != nil {
		if bad := badLocation(*o.Pickup); bad != "" {
			return "pickup: " + bad
		}
	}
	switch {
	case !(o.WeightKg >= 0 && o.WeightKg <= model.MaxWeightKg):
		return fmt.Sprintf("weightKg %v is outside [0,%v]", o.WeightKg, model.MaxWeightKg)
	case o.Priority < 0 || int(o.Priority) >= model.PriorityCount:
		return fmt.Sprintf("priority %d is unknown", o.Priority)
	case o.Pickup == nil && o.ProductType == "":
		return "productType is empty and there is no pickup point"
	}
	return ""
}

func (pr *prepared) prepareOrders() {
	seen := map[string]bool{}
	pr.orders = make([]readyOrder, 0, len(pr.problem.Orders))
	for i, o := range pr.problem.Orders {
		bad := badIdentity(o.ID, seen)
		if bad == "" {
			bad = badOrder(o)
		}
		if bad != "" {
			pr.reject(i, InvalidInput, bad)
			continue
		}
		ro := readyOrder{index: i, delivery: toVec(o.Delivery), weight: o.WeightKg}
		if !pr.restrict(&ro, &o) {
			pr.reject(i, NoDroneAllowed, withoutColdBox(&o))
			continue
		}
		due := o.Due(pr.problem.Now).Sub(pr.problem.Now).Seconds()
		if ro.sources = pr.sourcesOf(o, ro.delivery); len(ro.sources) == 0 {
			pr.reject(i, NoCompatibleWarehouse, "")
			continue
		}
		fit, by, reason := pr.feasibility(&ro, due)
		if reason != "" {
			pr.reject(i, reason, "")
			continue
		}
		ro.due, ro.rank = due, model.PriorityCount-1-int(o.Priority)
		if fit == onlyLate {
			ro.due = math.Inf(1)
			ro.overdue = max(0, -due)
			ro.rank += model.PriorityCount
			if due < 0 {
				steps := int(min(float64(model.RankCount+maxExtra), -due/pr.params.AgingStep.Seconds()))
				ro.extra = max(0, min(maxExtra, steps-ro.rank))
				ro.rank = max(0, ro.rank-steps)
			}
		}
		ro.sources = slices.Clone(ro.sources[:min(len(ro.sources), maxSources)])
		if by >= maxSources { // keep the source that makes the order possible
			ro.sources[maxSources-1] = pr.sources[by]
		}
		pr.orders = append(pr.orders, ro)
	}
}

// restrict keeps an order from the drones that must not carry it. It returns false
// if there are drones and none may.
func (pr *prepared) restrict(ro *readyOrder, o *Order) bool {
	ro.pinned = -1
	if !o.Restricted() && !(o.ColdChain && pr.noColdBox) || len(pr.drones) == 0 {
		return true
	}
	ro.barred = pdp.NewSet(len(pr.drones))
	allowed := 0
	for k := range pr.drones {
		if !o.MayGoBy(&pr.problem.Drones[pr.drones[k].index]) {
			ro.barred.Add(int32(k))
			continue
		}
		if allowed++; allowed == 1 {
			ro.pinned = int32(k)
		} else {
			ro.pinned = -1
		}
	}
	return allowed > 0
}

// withoutColdBox is the detail of an order that no drone may carry, if all lack a cold box.
func withoutColdBox(o *Order) string {
	if o.Restricted() || !o.ColdChain {
		return ""
	}
	return "no drone has a cold box"
}

// mayCarry reports whether an order is allowed on a drone.
func (o *readyOrder) mayCarry(drone int32) bool { return o.barred == nil || !o.barred.Has(drone) }

func (pr *prepared) reject(i int, reason Reason, detail string) {
	pr.unserved = append(pr.unserved, Unserved{
		OrderID: pr.problem.Orders[i].ID, Index: i, Reason: reason, Detail: detail})
}

// sourcesOf lists where an order can be fetched, most promising first: near the delivery,
// and near some drone. It leaves out those from which no drone could reach the delivery, if
// there are others. The list is valid until the next call.
func (pr *prepared) sourcesOf(o Order, delivery vec) []source {
	if o.Pickup != nil {
		return []source{{at: toVec(*o.Pickup), warehouse: -1, ready: -1}}
	}
	type scored struct {
		w     int
		score float64
	}
	var buf [16]scored
	list, within := buf[:0], 0 // those within reach come first
	for _, w := range pr.stock[o.ProductType] {
		wh := &pr.warehouses[w]
		if o.ColdChain && !wh.cold {
			continue
		}
		leg := wh.at.metres(delivery)
		list = append(list, scored{w, leg + min(wh.approach, 1e9)/2})
		if wh.approach+leg <= pr.longestReach {
			last := len(list) - 1
			list[within], list[last] = list[last], list[within]
			within++
		}
	}
	if within > 0 {
		list = list[:within]
	}
	slices.SortFunc(list, func(a, b scored) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.w, b.w))
	})
	pr.sources = pr.sources[:0]
	for _, s := range list {
		pr.sources = append(pr.sources, source{pr.warehouses[s.w].at, pr.warehouses[s.w].index, s.w})
	}
	return pr.sources
}

// fit is how an order can be served.
type fit int

const (
	inTime fit = iota
	onlyLate
)

// feasibility tells whether some drone alone could serve the order in time or only late, and
// by which source, the first of several. The reason says why no drone can, or is empty. It
// looks only at the drones of a source that can change the result: there may be hundreds of
// sources and thousands of drones.
func (pr *prepared) feasibility(o *readyOrder, due float64) (_ fit, by int, _ Reason) {
	if len(pr.drones) == 0 {
		return 0, 0, NoDroneFree
	}
	pickupService := pr.params.PickupService.Seconds()
	service := pickupService + pr.params.DeliveryService.Seconds()
	late, ifCharged := false, false
	for i, s := range o.sources {
		leg := s.at.metres(o.delivery)
		near, sorted := pr.dronesNear(s, o.barred != nil)
		for _, a := range near {
			there := a.metres + leg
			if there > pr.longestReach || ifCharged && there > pr.farthestNow || late && there*pr.fastest+pickupService > due {
				if sorted {
					break
				}
				continue
			}
			d := &pr.drones[a.drone]
			if o.weight > d.capacity || there > d.fullReach || !o.mayCarry(a.drone) {
				continue
			}
			total := there + o.delivery.metres(d.home)
			if total > d.fullReach || total*d.pace+service > d.maxTime {
				continue
			}
			ifCharged = true
			if total > d.reach {
				continue
			}
			if there*d.pace+pickupService <= due {
				return inTime, i, ""
			}
			if !late {
				late, by = true, i
			}
		}
		if s.ready >= 0 {
			pr.warehouses[s.ready].misses++
		}
	}
	switch {
	case late:
		return onlyLate, by, ""
	case ifCharged:
		return 0, 0, NoDroneFree
	case !pr.someLifts(o):
		return 0, 0, OverCapacity
	}
	return 0, 0, OutOfRange
}

// fewMisses is after how many misses the best drones are worth finding.
const fewMisses = 4

// dronesNear lists how far drones are from a source. For a warehouse it lists only those
// that could get there, nearest first, and unless all are wanted perhaps only the best. The
// list is valid until the next call.
func (pr *prepared) dronesNear(s source, all bool) (list []approach, sorted bool) {
	if s.ready >= 0 {
		w := &pr.warehouses[s.ready]
		if all || w.misses < fewMisses {
			return w.near, true
		}
		if w.best == nil {
			w.best = pr.best(w.near)
		}
		return w.best, true
	}
	pr.approaches = pr.approaches[:0]
	for k := range pr.drones {
		pr.approaches = append(pr.approaches, approach{int32(k), pr.drones[k].at.metres(s.at)})
	}
	return pr.approaches, false
}

// someLifts reports whether some drone may carry the order and can lift it.
func (pr *prepared) someLifts(o *readyOrder) bool {
	for k := range pr.drones {
		if o.weight <= pr.drones[k].capacity && o.mayCarry(int32(k)) {
			return true
		}
	}
	return false
}
