package plannersim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// Scenario is a day to replay. Zero values mean the defaults in the comments.
type Scenario struct {
	// Duration of simulated time; default 2 h. No orders arrive in its last Quiet.
	Duration, Quiet time.Duration
	// Drones in the fleet; default 40.
	Drones int
	// PerMinute is the mean rate of new orders; default 4.
	PerMinute float64
	// Burst multiplies the rate during BurstLasts of every BurstEvery; 0 or 1 means
	// no bursts. The mean rate stays PerMinute.
	Burst                  float64
	BurstEvery, BurstLasts time.Duration // default 30 min, 6 min
	// World generates depots, warehouses, hospitals and drones; nil means
	// fleetsim.NewWorld, with its opening orders.
	World func(drones int, seed uint64) (*fleetsim.World, error)
	Seed  uint64
	// Away is the share of the drones, from 0 to 1, that wait at a hospital instead
	// of at their depot. Once one has landed and is charged it flies there.
	Away float64
	// Pace is how fast drones fly, as a share of the speed that plans assume; 0 for all of it.
	Pace float64
	// Shocks and Failures are what goes wrong; nothing by default.
	Shocks   []Shock
	Failures Failures
	// CriticalOnly leaves the other orders out.
	CriticalOnly bool
	// AreaRadius groups the world's depots into planning areas, in km; see policy.AreasOf.
	AreaRadius float64
	// Amend lets cycles change missions under way.
	Amend bool
	// Standby has drones that support them take missions without orders; needs Amend.
	Standby bool
	// Slots of each depot for drones that charge; 0 for as many as there are drones.
	Slots int
	// Interval between cycles; default 10 s.
	Interval time.Duration
	// Latency from a cycle's snapshot until the drones begin; default 3 s.
	Latency time.Duration
	// Foretelling leaves reports unwritten that say nothing new; by default all are written.
	Foretelling policy.Foretelling
}

func (s Scenario) withDefaults() Scenario {
	or := func(d *time.Duration, or time.Duration) {
		if *d == 0 {
			*d = or
		}
	}
	or(&s.Duration, 2*time.Hour)
	or(&s.Interval, 10*time.Second)
	or(&s.Latency, 3*time.Second)
	or(&s.BurstEvery, 30*time.Minute)
	or(&s.BurstLasts, 6*time.Minute)
	if s.Drones == 0 {
		s.Drones = 40
	}
	if s.PerMinute == 0 {
		s.PerMinute = 4
	}
	return s
}

// Validate names every setting that is out of range.
func (s Scenario) Validate() error {
	s = s.withDefaults()
	var errs []error
	if s.Duration < 0 || s.Interval < time.Second || s.Latency < 0 {
		errs = append(errs, fmt.Errorf("duration %s, interval %s, latency %s; give positive times, an interval of at least 1s", s.Duration, s.Interval, s.Latency))
	}
	if !(s.PerMinute > 0 && s.PerMinute <= 60_000) {
		errs = append(errs, fmt.Errorf("orders per minute is %v; give more than 0, at most 60000", s.PerMinute))
	}
	if !(s.Away >= 0 && s.Away <= 1) {
		errs = append(errs, fmt.Errorf("share of drones away is %v; give 0 to 1", s.Away))
	}
	if s.Slots < 0 {
		errs = append(errs, fmt.Errorf("slots is %d; give 1 or more, or 0 for as many as there are drones", s.Slots))
	}
	if s.Burst < 0 || s.Burst > 1 && s.Burst*s.BurstLasts.Seconds() > s.BurstEvery.Seconds() {
		errs = append(errs, fmt.Errorf("a burst of %v times for %s in every %s needs more than all orders; lower one of them", s.Burst, s.BurstLasts, s.BurstEvery))
	}
	return errors.Join(append(errs, s.Foretelling.Check(policy.Limits{}), s.validateTrouble())...)
}

// Begin is the time at which every replayed day begins.
var Begin = time.Date(2026, 1, 5, 8, 0, 0, 0, time.UTC)

// Day generates the scenario's world and all its orders, by time of creation.
func (s Scenario) Day() (*fleetsim.World, []domain.Order, error) {
	if err := s.Validate(); err != nil {
		return nil, nil, fmt.Errorf("scenario: %w", err)
	}
	return s.withDefaults().day()
}

func (s Scenario) day() (*fleetsim.World, []domain.Order, error) {
	generate := s.World
	if generate == nil {
		generate = func(drones int, seed uint64) (*fleetsim.World, error) {
			return fleetsim.NewWorld(fleetsim.WorldConfig{Drones: drones, Seed: seed})
		}
	}
	w, err := generate(s.Drones, s.Seed)
	if err != nil {
		return nil, nil, err
	}
	if s.Slots > 0 {
		w.Depots = slices.Clone(w.Depots)
		for i := range w.Depots {
			w.Depots[i].ChargingSlots = s.Slots
		}
	}
	clock := clockwork.NewFakeClockAt(Begin)
	source, err := fleetsim.NewOrderSource(w, fleetsim.OrderConfig{PerMinute: s.PerMinute, Seed: s.Seed}, clock, nil, nil)
	if err != nil {
		return nil, nil, err
	}
	var orders []domain.Order
	if s.World == nil {
		for _, r := range source.Opening() {
			orders = append(orders, received(r))
		}
	}
	random := rand.New(rand.NewPCG(s.Seed, 77))
	clock.Advance(source.Pause())
	for clock.Now().Sub(Begin) < s.Duration-s.Quiet {
		r := source.Next()
		r.CreatedAt = s.moveIntoBurst(r.CreatedAt, random)
		orders = append(orders, received(r))
		clock.Advance(source.Pause())
	}
	ordinary := orders
	for i := range s.Shocks {
		more, err := s.shockOrders(w, ordinary, i)
		if err != nil {
			return nil, nil, err
		}
		orders = append(orders, more...)
	}
	if s.CriticalOnly {
		orders = slices.DeleteFunc(orders, func(o domain.Order) bool { return o.Priority != domain.PriorityCritical })
	}
	slices.SortStableFunc(orders, func(a, b domain.Order) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return w, orders, nil
}

// moveIntoBurst moves an order's time into the burst of its period, with the
// probability that makes bursts as dense as Burst says.
func (s Scenario) moveIntoBurst(at time.Time, random *rand.Rand) time.Time {
	if s.Burst <= 1 {
		return at
	}
	every, lasts := s.BurstEvery.Seconds(), s.BurstLasts.Seconds()
	into := math.Mod(at.Sub(Begin).Seconds(), every)
	if into < lasts {
		return at
	}
	// With this share of the orders outside moved inside, Burst·lasts/every of all
	// orders are in bursts.
	share := (s.Burst - 1) * lasts / (every - lasts)
	if random.Float64() >= share {
		return at
	}
	to := random.Float64() * lasts
	return at.Add(time.Duration((to - into) * float64(time.Second)))
}

// received is an order as the State Manager keeps it.
func received(r domain.OrderRequest) domain.Order {
	o := domain.Order{
		ID: r.ID, Status: domain.OrderPending, OrderContent: r.OrderContent,
		CreatedAt: r.CreatedAt, Deadline: r.Deadline, PendingSince: r.CreatedAt,
	}
	if o.Deadline.IsZero() {
		o.Deadline = o.CreatedAt.Add(o.Priority.Window())
	}
	return o
}
