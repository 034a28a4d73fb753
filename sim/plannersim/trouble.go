package plannersim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// Shock is a mass casualty: many orders of one hospital within minutes.
type Shock struct {
	At     time.Duration // since the beginning of the day
	Lasts  time.Duration
	Orders int // about as many; two of five are CRITICAL, the others HIGH
}

// Failures are drones that fall out, wherever they are.
type Failures struct {
	PerHour float64       // of the whole fleet, on average
	Lasts   time.Duration // how long one is out of order; 0 means for good
}

const shockCriticalPercent = 40

func (s Scenario) validateTrouble() error {
	var errs []error
	for _, k := range s.Shocks {
		if k.At < 0 || k.Lasts < time.Second || k.Orders < 1 || k.Orders > 10_000 {
			errs = append(errs, fmt.Errorf("a shock of %d orders in %s, %s after the beginning; give 1 to 10000 orders in at least 1s", k.Orders, k.Lasts, k.At))
		}
	}
	if f := s.Failures; !(f.PerHour >= 0 && f.PerHour <= 3600) || f.Lasts < 0 {
		errs = append(errs, fmt.Errorf("%v failures an hour for %s; give 0 to 3600 and a positive time", f.PerHour, f.Lasts))
	}
	return errors.Join(errs...)
}

// shockOrders draws the orders of a shock. Its hospital is that of one of the day's orders,
// so that drones can reach it.
func (s Scenario) shockOrders(w *fleetsim.World, orders []domain.Order, number int) ([]domain.Order, error) {
	if len(orders) == 0 {
		return nil, nil
	}
	shock, seed := s.Shocks[number], s.Seed+uint64(number)<<32
	random := rand.New(rand.NewPCG(seed, 112))
	at := orders[random.IntN(len(orders))].RequesterID
	one := *w
	one.Hospitals = slices.DeleteFunc(slices.Clone(w.Hospitals), func(h fleetsim.Hospital) bool { return h.ID != at })
	clock := clockwork.NewFakeClockAt(Begin.Add(shock.At))
	source, err := fleetsim.NewOrderSource(&one, fleetsim.OrderConfig{
		PerMinute: float64(shock.Orders) / shock.Lasts.Minutes(), IDPrefix: fmt.Sprintf("SHOCK%d", number+1), Seed: seed,
		CriticalPercent: shockCriticalPercent, HighPercent: 100 - shockCriticalPercent,
	}, clock, nil, nil)
	if err != nil {
		return nil, err
	}
	var list []domain.Order
	clock.Advance(source.Pause())
	for clock.Now().Sub(Begin) < shock.At+shock.Lasts {
		list = append(list, received(source.Next()))
		clock.Advance(source.Pause())
	}
	return list, nil
}

// failure is one drone that falls out.
type failure struct {
	at    time.Time
	drone int
	lasts time.Duration
}

// forGood is longer than any day.
const forGood = 1000 * time.Hour

// failures draws the day's failures, in order.
func (s Scenario) failures() (list []failure) {
	if s.Failures.PerHour == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(s.Seed, 404))
	lasts := s.Failures.Lasts
	if lasts == 0 {
		lasts = forGood
	}
	pause := func() time.Duration {
		return time.Duration(random.ExpFloat64() / s.Failures.PerHour * float64(time.Hour))
	}
	for at := pause(); at < s.Duration; at += pause() {
		list = append(list, failure{Begin.Add(at), random.IntN(s.Drones), lasts})
	}
	return list
}

// breakDown makes a drone fall out. It reports PROBLEM, by which its mission fails.
func (r *replay) breakDown(f failure) {
	t := &r.drones[f.drone]
	t.drone = t.drone.WithFault(fleetsim.Fault{Broken: f.lasts})
}
