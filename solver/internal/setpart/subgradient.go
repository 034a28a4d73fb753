package setpart

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
)

// duals are the multipliers of the master problem's constraints.
type duals struct {
	request []float64 // of serving each request once; at least 0
	vehicle []float64 // of using each vehicle once: the least reduced cost of its columns; at most 0
	bound   float64   // no combination that leaves out as much as the incumbent costs less
}

// reducedCost is what a column costs above the duals of its requests.
func (d *duals) reducedCost(c *column) float64 {
	x := c.cost
	for set := c.set; set != 0; set &= set - 1 {
		x -= d.request[bits.TrailingZeros32(set)]
	}
	return x
}

// quota is how many of the requests with one prize the incumbent leaves out.
type quota struct {
	requests []int32
	count    int
}

// setQuotas splits what the incumbent leaves out by prize. There are quotas only if each
// prize exceeds the sum of all smaller ones.
func (m *master) setQuotas() {
	byPrize := map[int64][]int32{}
	for r, prize := range m.in.Prize {
		byPrize[prize] = append(byPrize[prize], int32(r))
	}
	prizes := slices.Sorted(maps.Keys(byPrize))
	smaller := int64(0)
	for _, prize := range prizes {
		if prize <= smaller {
			return
		}
		smaller += prize * int64(len(byPrize[prize]))
	}
	lost := m.incumbent.lostPrize
	m.quotas = m.quotas[:0]
	for _, prize := range slices.Backward(prizes) {
		m.quotas = append(m.quotas, quota{requests: byPrize[prize], count: int(lost / prize)})
		lost %= prize
	}
}

// An ascent takes up to subgradientSteps; patience steps without a better bound
// halve the step length.
const (
	subgradientSteps = 300
	patience         = 10
)

// ascend improves the duals by subgradient ascent on the Lagrangian dual (Held
// and Karp 1971) and sets the bound. In the relaxed problem each vehicle has the
// column with the least reduced cost, if that is below 0, and the quotas leave
// out the requests with the greatest duals.
func (m *master) ascend(steps int) {
	const half = MaxRequests / 2
	var low, high [1 << half]float64 // duals of sets
	price := m.duals.request
	least, cheapest := make([]float64, len(m.in.Vehicles)), make([]int, len(m.in.Vehicles))
	surplus, kept := make([]float64, len(price)), make([]float64, len(price))
	m.duals.vehicle = make([]float64, len(m.in.Vehicles))
	m.setQuotas()
	top, stepLength, stale := -inf, 1.0, 0
	for range steps {
		subsetSums(low[:], price[:min(len(price), half)])
		subsetSums(high[:], price[min(len(price), half):])
		for v := range least {
			least[v], cheapest[v] = 0, -1
		}
		for i := range m.columns {
			col := &m.columns[i]
			if d := col.cost - low[col.set&(1<<half-1)] - high[col.set>>half]; d < least[col.vehicle] {
				least[col.vehicle], cheapest[col.vehicle] = d, i
			}
		}
		total := 0.0
		for r, x := range price {
			total += x
			surplus[r] = 1
		}
		for v, i := range cheapest {
			total += least[v]
			if i >= 0 {
				for set := m.columns[i].set; set != 0; set &= set - 1 {
					surplus[bits.TrailingZeros32(set)]--
				}
			}
		}
		for _, q := range m.quotas {
			slices.SortFunc(q.requests, func(a, b int32) int { return cmp.Or(cmp.Compare(price[b], price[a]), cmp.Compare(a, b)) })
			for _, r := range q.requests[:q.count] {
				total -= price[r]
				surplus[r]--
			}
		}
		if total > top {
			top, stale = total, 0
			copy(kept, price)
			copy(m.duals.vehicle, least)
		} else if stale++; stale == patience {
			stepLength, stale = stepLength/2, 0
		}
		norm := 0.0
		for _, x := range surplus {
			norm += x * x
		}
		if top >= m.incumbent.cost || norm == 0 {
			break
		}
		for r := range price {
			price[r] = max(0, price[r]+stepLength*(m.incumbent.cost-total)/norm*surplus[r])
		}
	}
	copy(price, kept)
	m.duals.bound = top
}

// subsetSums fills in the sums over all subsets of some values.
func subsetSums(out, values []float64) {
	out[0] = 0
	for k, x := range values {
		for i := range 1 << k {
			out[1<<k|i] = out[i] + x
		}
	}
}
