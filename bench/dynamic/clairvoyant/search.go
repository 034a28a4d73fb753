package clairvoyant

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// Result is what the search found.
type Result struct {
	OnTime  [4]int // orders delivered in time, by domain.Priority
	FlownKm float64
	Steps   int
}

// worth is what an order in time counts for, by domain.Priority. One CRITICAL order
// outweighs any HIGH ones that a drone could deliver instead, and a HIGH order outweighs
// STANDARD ones.
var worth = [4]float64{domain.PriorityStandard: 1, domain.PriorityHigh: 50, domain.PriorityCritical: 5000}

// secondCost is what a second of flight costs: less than any order is worth.
const secondCost = 0.0004

// The search's temperatures, in units of worth; the share of insertions that it blinks at,
// so that it does not always make the same ones; how many orders one step takes out; and
// how many orders without a drone it tries beside them.
const (
	hottest, coldest = 3.0, 0.02
	blink            = 0.02
	minRuin, maxRuin = 4, 24
	fromBank         = 8
)

// solution is one way to fly the day.
type solution struct {
	plans []*schedule // by drone
	by    []int       // by order: the drone that serves it, or nobody
	value float64     // higher is better
}

const nobody = -1

func (s *solution) clone() *solution {
	return &solution{slices.Clone(s.plans), slices.Clone(s.by), s.value}
}

type search struct {
	*problem
	random  *rand.Rand
	scratch trip
}

// Search serves the orders of a day that begins at a time. More steps find more.
func Search(ctx context.Context, w *fleetsim.World, orders []domain.Order, begin time.Time, seed uint64, steps int) (Result, error) {
	s := &search{problem: newProblem(w, orders, begin), random: rand.New(rand.NewPCG(seed, 2718))}
	best, err := s.run(ctx, steps)
	result := Result{Steps: steps}
	for i, by := range best.by {
		if by != nobody {
			result.OnTime[orders[i].Priority]++
		}
	}
	for _, plan := range best.plans {
		for _, f := range plan.flights {
			result.FlownKm += f.flown / 3600 * fleetsim.CruiseKmh
		}
	}
	return result, err
}

// run is simulated annealing over ruins and recreates. It ends early when every order is
// in time.
func (s *search) run(ctx context.Context, steps int) (*solution, error) {
	current := s.start()
	best := current
	for step := range steps {
		if step%64 == 0 && ctx.Err() != nil {
			return best, context.Cause(ctx)
		}
		next := current.clone()
		s.recreate(next, s.ruin(next))
		heat := hottest * math.Pow(coldest/hottest, float64(step)/float64(steps))
		if next.value < current.value && s.random.Float64() >= math.Exp((next.value-current.value)/heat) {
			continue
		}
		if current = next; current.value > best.value {
			best = current
		}
		if !slices.Contains(best.by, nobody) {
			break
		}
	}
	return best, nil
}

// start is the solution that inserts every order once, the most urgent first.
func (s *search) start() *solution {
	first := &solution{by: slices.Repeat([]int{nobody}, len(s.orders))}
	for i := range s.drones {
		first.plans = append(first.plans, s.drones[i].empty())
	}
	all := make([]int, len(s.orders))
	for i := range all {
		all[i] = i
	}
	s.recreate(first, all)
	return first
}

// ruin takes orders that are near each other in time and place from their drones. It
// returns them, and some that nobody serves from the same hours.
func (s *search) ruin(sol *solution) []int {
	if len(s.orders) == 0 {
		return nil
	}
	seed := s.random.IntN(len(s.orders))
	// Half of the time begin where an order is not served.
	if s.random.IntN(2) == 0 {
		for range 20 {
			if i := s.random.IntN(len(s.orders)); sol.by[i] == nobody {
				seed = i
				break
			}
		}
	}
	type near struct {
		order    int
		distance float64
	}
	var served, waiting []near
	o := &s.orders[seed]
	for i := range s.orders {
		v := &s.orders[i]
		apart := math.Abs(v.created-o.created) + s.flight[o.delivery][v.delivery] + 300*s.random.Float64()
		if sol.by[i] != nobody {
			served = append(served, near{i, apart})
		} else if i != seed {
			waiting = append(waiting, near{i, apart * float64(1+int(domain.PriorityCritical-v.priority))})
		}
	}
	nearest := func(a, b near) int { return cmp.Compare(a.distance, b.distance) }
	slices.SortFunc(served, nearest)
	slices.SortFunc(waiting, nearest)
	out := map[int]bool{}
	list := []int{seed}
	out[seed] = sol.by[seed] != nobody
	for _, n := range served[:min(len(served), minRuin+s.random.IntN(maxRuin-minRuin+1))] {
		if n.order != seed {
			out[n.order] = true
			list = append(list, n.order)
		}
	}
	for _, n := range waiting[:min(len(waiting), fromBank)] {
		list = append(list, n.order)
	}
	s.remove(sol, out)
	return list
}

// remove takes orders from their drones.
func (s *search) remove(sol *solution, out map[int]bool) {
	touched := map[int]bool{}
	for i, gone := range out {
		if gone {
			touched[sol.by[i]] = true
			sol.by[i] = nobody
			sol.value -= worth[s.orders[i].priority]
		}
	}
	for d := range touched {
		old := sol.plans[d]
		var trips []trip
		for _, t := range old.trips {
			kept := slices.DeleteFunc(slices.Clone(t), func(v stop) bool { return out[v.order] })
			if len(kept) > 0 {
				trips = append(trips, kept)
			}
		}
		// Fewer stops are never later, but waiting differently may charge less: then the
		// drone's day begins anew.
		next := s.extend(&s.drones[d], old, 0, trips)
		if next == nil {
			next = s.drones[d].empty()
			for _, t := range trips {
				for _, v := range t {
					if sol.by[v.order] != nobody {
						sol.by[v.order] = nobody
						sol.value -= worth[s.orders[v.order].priority]
					}
				}
			}
		}
		s.replace(sol, d, next)
	}
}

// replace gives a drone another schedule.
func (s *search) replace(sol *solution, d int, next *schedule) {
	for _, f := range sol.plans[d].flights {
		sol.value += secondCost * f.flown
	}
	for _, f := range next.flights {
		sol.value -= secondCost * f.flown
	}
	sol.plans[d] = next
}

// recreate inserts the orders where they cost least, one after the other.
func (s *search) recreate(sol *solution, orders []int) {
	key := make(map[int]float64, len(orders))
	how := s.random.IntN(3)
	for _, i := range orders {
		o := &s.orders[i]
		switch how {
		case 0:
			key[i] = o.due
		case 1:
			key[i] = s.random.Float64()
		case 2:
			key[i] = -s.flight[o.delivery][s.drones[0].home]
		}
		key[i] -= 1e6 * float64(o.priority)
	}
	slices.SortFunc(orders, func(a, b int) int { return cmp.Compare(key[a], key[b]) })
	for _, i := range orders {
		s.insert(sol, i)
	}
}

// insertion is where an order goes: into a trip, or before it as a trip of its own.
type insertion struct {
	drone, trip int
	alone       bool
	from, to    int // positions of pickup and delivery in the trip
	pickup      int // point
	cost        seconds
}

// insert gives an order to the drone that flies least for it, if any can be in time.
func (s *search) insert(sol *solution, i int) {
	best := insertion{cost: inf}
	for d := range s.drones {
		plan := sol.plans[d]
		for k := range len(plan.trips) + 1 {
			begins := plan.begins[k]
			if begins.at > s.orders[i].due {
				break
			}
			if k == len(plan.trips) || plan.begins[k+1].at > s.orders[i].created {
				s.tryAlone(&best, plan, d, k, i)
			}
			if k < len(plan.trips) && plan.begins[k+1].at > s.orders[i].created {
				s.tryInto(&best, plan, d, k, i)
			}
		}
	}
	if best.cost == inf {
		return
	}
	d, plan := &s.drones[best.drone], sol.plans[best.drone]
	var rest []trip
	if best.alone {
		rest = append([]trip{{{i, best.pickup, true}, {i, s.orders[i].delivery, false}}}, plan.trips[best.trip:]...)
	} else {
		rest = append([]trip{slices.Clone(s.with(plan.trips[best.trip], i, best))}, plan.trips[best.trip+1:]...)
	}
	next := s.extend(d, plan, best.trip, rest)
	if next == nil {
		return // by a rounding error
	}
	s.replace(sol, best.drone, next)
	sol.by[i] = best.drone
	sol.value += worth[s.orders[i].priority]
}

// with is a trip with one more order, valid until the next call.
func (s *search) with(t trip, i int, at insertion) trip {
	s.scratch = append(append(s.scratch[:0], t[:at.from]...), stop{i, at.pickup, true})
	s.scratch = append(append(s.scratch, t[at.from:at.to]...), stop{i, s.orders[i].delivery, false})
	s.scratch = append(s.scratch, t[at.to:]...)
	return s.scratch
}

// tryAlone tries a trip for the order alone before trip k.
func (s *search) tryAlone(best *insertion, plan *schedule, d, k, i int) {
	for _, pickup := range s.orders[i].pickups {
		alone := trip{{i, pickup, true}, {i, s.orders[i].delivery, false}}
		cost := s.flight[plan.begins[k].point][pickup] + s.flight[pickup][s.orders[i].delivery] + s.flight[s.orders[i].delivery][s.drones[d].home]
		if cost >= best.cost || s.random.Float64() < blink {
			continue
		}
		f, ok := s.fly(&s.drones[d], plan.begins[k], alone)
		if ok && s.fits(&s.drones[d], plan, k, f.landed) {
			*best = insertion{drone: d, trip: k, alone: true, pickup: pickup, cost: cost}
		}
	}
}

// tryInto tries all positions in trip k.
func (s *search) tryInto(best *insertion, plan *schedule, d, k, i int) {
	t, to := plan.trips[k], s.orders[i].delivery
	at := func(j int) int { // the point before position j
		switch {
		case j == 0:
			return plan.begins[k].point
		case j > len(t):
			return s.drones[d].home
		default:
			return t[j-1].point
		}
	}
	for _, pickup := range s.orders[i].pickups {
		for from := range len(t) + 1 {
			before := at(from)
			detour := s.flight[before][pickup] + s.flight[pickup][at(from+1)] - s.flight[before][at(from+1)]
			if detour >= best.cost {
				continue
			}
			for j := from; j <= len(t); j++ {
				var cost seconds
				if j == from {
					cost = s.flight[before][pickup] + s.flight[pickup][to] + s.flight[to][at(j+1)] - s.flight[before][at(j+1)]
				} else {
					cost = detour + s.flight[at(j)][to] + s.flight[to][at(j+1)] - s.flight[at(j)][at(j+1)]
				}
				if cost >= best.cost || s.random.Float64() < blink {
					continue
				}
				where := insertion{drone: d, trip: k, from: from, to: j, pickup: pickup, cost: cost}
				f, ok := s.fly(&s.drones[d], plan.begins[k], s.with(t, i, where))
				if ok && s.fits(&s.drones[d], plan, k+1, f.landed) {
					*best = where
				}
			}
		}
	}
}
