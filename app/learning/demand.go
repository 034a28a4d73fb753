package learning

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

const (
	hoursOfDay = 24
	// demandHalfLife is after how long an order counts half.
	demandHalfLife = 14 * 24 * time.Hour
	// maxPoints bounds the delivery points that are known: those with the most orders.
	maxPoints = 300
	// samePointMetres is how near two delivery points are one.
	samePointMetres = 50
	// mostDemand exceeds every sum of hours, orders or kilograms that this package writes. Below
	// it, no rate asks for more drones than an int can count.
	mostDemand = 1e6
)

// AddOrders returns d with the orders created between d.Until and a time. It leaves out orders
// without a time or from outside that span.
func AddOrders(d domain.Demand, orders []domain.Order, until time.Time) domain.Demand {
	if d.Until.IsZero() || !until.After(d.Until) {
		if d.Until.IsZero() {
			d.Until = until
		}
		return d
	}
	d.Points = slices.DeleteFunc(slices.Clone(d.Points), func(p domain.PointDemand) bool { return !soundPoint(p) })
	d.Hours = soundHours(d.Hours)
	fade(&d, until.Sub(d.Until))
	for at := d.Until; at.Before(until); {
		next := at.Truncate(time.Hour).Add(time.Hour)
		if next.After(until) {
			next = until
		}
		d.Hours[at.UTC().Hour()].Hours += next.Sub(at).Hours()
		at = next
	}
	for _, o := range orders {
		p := slices.Index(domain.Priorities[:], o.Priority)
		if p < 0 || !o.CreatedAt.After(d.Until) || o.CreatedAt.After(until) {
			continue
		}
		d.Seen++
		d.Hours[o.CreatedAt.UTC().Hour()].Orders[p]++
		point := pointOf(&d, o)
		point.Orders[p]++
		point.ProductType, point.ColdChain, point.WeightKg = o.ProductType, o.ColdChain, o.WeightKg
	}
	d.Until = until
	keepBusiest(&d)
	return d
}

// fade makes the past count less.
func fade(d *domain.Demand, passed time.Duration) {
	keep := math.Exp2(-passed.Hours() / demandHalfLife.Hours())
	for h := range d.Hours {
		d.Hours[h].Hours *= keep
		for p := range d.Hours[h].Orders {
			d.Hours[h].Orders[p] *= keep
		}
	}
	for i := range d.Points {
		for p := range d.Points[i].Orders {
			d.Points[i].Orders[p] *= keep
		}
	}
}

func pointOf(d *domain.Demand, o domain.Order) *domain.PointDemand {
	i := slices.IndexFunc(d.Points, func(p domain.PointDemand) bool {
		return p.Position.DistanceMetres(o.Delivery) <= samePointMetres
	})
	if i < 0 {
		i, d.Points = len(d.Points), append(d.Points, domain.PointDemand{Position: o.Delivery})
	}
	return &d.Points[i]
}

func ordersAt(p domain.PointDemand) (n float64) {
	for _, of := range p.Orders {
		n += of
	}
	return n
}

func keepBusiest(d *domain.Demand) {
	slices.SortStableFunc(d.Points, func(a, b domain.PointDemand) int { return cmp.Compare(ordersAt(b), ordersAt(a)) })
	d.Points = d.Points[:min(len(d.Points), maxPoints)]
}

// DemandEstimates is the expected demand. The zero value says nothing.
type DemandEstimates struct {
	hours [hoursOfDay]domain.HourDemand
	// Points are those with orders, the busiest first.
	Points []domain.PointDemand
}

// EstimateDemand leaves out what cannot be.
func EstimateDemand(d domain.Demand) (e DemandEstimates) {
	copy(e.hours[:], soundHours(d.Hours))
	for _, p := range d.Points {
		if soundPoint(p) {
			e.Points = append(e.Points, p)
		}
	}
	return e
}

// soundHours returns the hours of a day, without those that a document gives impossible numbers: a
// sum with a NaN would stay NaN.
func soundHours(hours []domain.HourDemand) []domain.HourDemand {
	sound := make([]domain.HourDemand, hoursOfDay)
	for h, of := range hours[:min(len(hours), hoursOfDay)] {
		if soundDemand(of.Orders[:]...) && soundDemand(of.Hours) {
			sound[h] = of
		}
	}
	return sound
}

func soundPoint(p domain.PointDemand) bool {
	return soundDemand(p.Orders[:]...) && soundDemand(p.WeightKg)
}

func soundDemand(numbers ...float64) bool {
	return !slices.ContainsFunc(numbers, func(n float64) bool { return !(n >= 0 && n <= mostDemand) })
}

// At returns how many orders of a priority came in a time's hour of the day, and how long that
// hour was observed. Half of each neighbouring hour counts too, so that rates change gradually.
func (e DemandEstimates) At(now time.Time, priority domain.Priority) (orders float64, observed time.Duration) {
	p := slices.Index(domain.Priorities[:], priority)
	if p < 0 {
		return 0, 0
	}
	hour, hours := now.UTC().Hour(), 0.0
	for offset, weight := range [3]float64{0.5, 1, 0.5} {
		h := e.hours[(hour+hoursOfDay-1+offset)%hoursOfDay]
		orders += weight * h.Orders[p]
		hours += weight * h.Hours
	}
	return orders, time.Duration(hours * float64(time.Hour))
}
