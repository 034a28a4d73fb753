package conform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/api"
	"github.com/dronefleet/dronefleet/app/dispatch"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/sim/fleetsim"
)

// What an order of the examination may ask for.
const (
	maxOrderAge   = 24 * time.Hour
	orderPayload  = 5.0  // kilograms
	orderRangeKm  = 32.0 // of a whole flight
	planEvery     = 5 * time.Second
	planFor       = 200 * time.Millisecond
	clockOfOthers = 5 * time.Second
)

// HospitalExam is a fleet that waits for orders: it plans and delivers them.
type HospitalExam struct {
	*practice
	world   *fleetsim.World
	settled map[meter.Settlement]int64 // before
	Key     string                     // an API key of the requester HOSPITAL-EXAM
	answers []answered                 // to requests about orders
}

// StartHospital starts the fleet. Its drones are idle when it returns.
func StartHospital(ctx context.Context, cfg FleetConfig) (*HospitalExam, error) {
	world, err := fleetsim.NewWorld(fleetsim.WorldConfig{Drones: 6, IDPrefix: "EXAM"})
	if err != nil {
		return nil, err
	}
	p, err := startPractice(ctx, cfg, world, nil, pubsubio.TopicOrders)
	if err != nil {
		return nil, err
	}
	x := &HospitalExam{practice: p, world: world, settled: map[meter.Settlement]int64{}}
	var drones []domain.DroneID
	for _, d := range world.Drones {
		drones = append(drones, d.ID)
	}
	if err := errors.Join(x.ready(ctx, drones, nil), x.makeKey(ctx)); err != nil {
		_ = p.Close() // the first error is the one to return
		return nil, err
	}
	cycles := dispatch.NewRunner(p.manager.Store, p.manager.Locks, dispatch.PublishDecisions(p.publisher, wire.Protobuf), uuid.NewString, cfg.Clock,
		dispatch.Config{Interval: planEvery, SolveLimit: planFor, NoLearning: true, NoAdvance: true, Holder: "conform"}, cfg.Log, cfg.Clients.Meter)
	planning, stop := context.WithCancel(context.WithoutCancel(ctx))
	stopFleet := p.stop
	p.stop = func() { stop(); stopFleet() }
	p.running.Go(func() error { return cycles.Run(planning) })
	return x, nil
}

// Examine has the hospital order until it returns or limit of the machine's time is over. A second
// examination judges only what comes after the first.
func (x *HospitalExam) Examine(ctx context.Context, limit time.Duration, play func(context.Context) error) (Summary, error) {
	b, began := newBook(api.TheRules().Hospitals, x.cfg.Progress), x.cfg.Clock.Now()
	x.mu.Lock()
	read, heard := len(x.seen), len(x.answers)
	x.mu.Unlock()
	playing, stop := context.WithTimeout(ctx, limit)
	defer stop()
	over := make(chan error, 1)
	go func() { over <- play(playing) }()
	judged := orderBook{book: b, practice: x.practice, world: x.world, content: map[domain.OrderID]string{}, accepted: map[string]bool{}}
	look := func() {
		for _, m := range x.messages(read) {
			read++
			judged.message(m)
		}
		x.mu.Lock()
		answers := x.answers[heard:]
		heard = len(x.answers)
		x.mu.Unlock()
		for _, a := range answers {
			judged.answer(a)
		}
	}
	var played error
	_, err := wait(ctx, limit+time.Second, func() (bool, error) {
		look()
		select {
		case played = <-over:
			return true, nil
		default:
			return false, nil
		}
	})
	stop()
	if err == nil && played != nil && playing.Err() == nil {
		return Summary{}, played
	}
	judging, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*settleTime)
	defer cancel()
	quiet := 0
	_, _ = wait(judging, settleTime, func() (bool, error) { // what is not settled by then has no answer
		before := read
		look()
		if quiet++; read > before || x.count() < int64(read) {
			quiet = 0
		}
		return quiet >= 5, nil
	})
	x.refusals(b)
	judged.end()
	return b.summary("hospital", "", x.cfg.Clock.Now().Sub(began)), nil
}

// count is how many messages of orders the State Manager has settled.
func (x *HospitalExam) count() (n int64) {
	for s, count := range x.cfg.Clients.Meter.Settled() {
		if s.Kind == pubsubio.TopicOrders {
			n += count
		}
	}
	return n
}

// harmless are refusals that a repeated message brings.
var harmless = []string{"DUPLICATE_ORDER", "ALREADY_CANCELLED", "ORDER_SUPERSEDED"}

// refusals notes what the State Manager refused since the last time.
func (x *HospitalExam) refusals(b *book) {
	now := x.cfg.Clients.Meter.Settled()
	for s, n := range now {
		n -= x.settled[s]
		if s.Kind != pubsubio.TopicOrders || s.Outcome != meter.Rejected || n <= 0 || slices.Contains(harmless, s.Reason) {
			continue
		}
		for _, rule := range b.rules {
			if slices.Contains(rule.Refusals, s.Reason) {
				b.broke(rule.ID, "%d messages are refused as %s", n, s.Reason)
			}
		}
	}
	x.settled = now
}

// orderBook judges the messages of a hospital.
type orderBook struct {
	*book
	*practice
	world     *fleetsim.World
	content   map[domain.OrderID]string // hash by id; "" for an order that was only cancelled
	cancelled []domain.OrderID
	accepted  map[string]bool // by the HTTP API, by their addresses
}

// message judges one message.
func (o *orderBook) message(m seen) {
	o.test("H-01")
	r, err := wire.DecodeOrder(m.data, m.attrs)
	if err != nil {
		o.broke("H-01", "an order is refused: %v", err)
		return
	}
	o.test("H-03")
	if r.RequesterID == "" {
		o.broke("H-03", "%s names no requester", r.ID)
	}
	if r.Cancel {
		o.test("H-06")
		o.cancelled = append(o.cancelled, r.ID)
		o.progress(fmt.Sprintf("order %s is cancelled", r.ID))
		return
	}
	o.progress(fmt.Sprintf("order %s: %s %s", r.ID, r.Priority, r.ProductType))
	if _, known := o.content[r.ID]; known {
		o.test("H-02")
	}
	o.content[r.ID] = r.Hash()
	o.test("H-04", "H-05")
	o.servable(r)
	o.times(r, m.at)
}

// servable judges whether the fleet can ever serve an order.
func (o *orderBook) servable(r domain.OrderRequest) {
	if r.WeightKg > orderPayload {
		o.broke("H-04", "%s weighs %v kg, and no drone carries more than %v kg", r.ID, r.WeightKg, orderPayload)
	}
	var from []domain.Position
	if r.Pickup != nil {
		from = append(from, *r.Pickup)
	} else {
		var stock []string
		for _, w := range o.world.Warehouses {
			stock = append(stock, w.ProductTypes...)
			if slices.Contains(w.ProductTypes, r.ProductType) && (!r.ColdChain || w.ColdStorage) {
				from = append(from, w.Position)
			}
		}
		if len(from) == 0 {
			slices.Sort(stock)
			o.broke("H-04", "no warehouse stocks %q of %s, or has cold storage for it; there are %s", r.ProductType, r.ID, strings.Join(slices.Compact(stock), ", "))
			return
		}
	}
	shortest := -1.0
	for _, p := range from {
		depot := o.world.Depots[0].Position
		km := (depot.DistanceMetres(p) + p.DistanceMetres(r.Delivery) + r.Delivery.DistanceMetres(depot)) / 1000
		if shortest < 0 || km < shortest {
			shortest = km
		}
	}
	if shortest > orderRangeKm {
		o.broke("H-04", "%s needs a flight of %.0f km, and drones fly %.0f km; are latitude and longitude swapped?", r.ID, shortest, orderRangeKm)
	}
}

// times judges the times of an order.
func (o *orderBook) times(r domain.OrderRequest, published time.Time) {
	if !r.CreatedAt.IsZero() {
		switch age := published.Sub(r.CreatedAt); {
		case age < -clockOfOthers:
			o.broke("H-05", "%s is created %s after it was published", r.ID, (-age).Round(time.Second))
		case age > maxOrderAge:
			o.broke("H-05", "%s is created %s before it was published", r.ID, age.Round(time.Hour))
		}
	}
	if !r.Deadline.IsZero() && !r.Deadline.After(published) {
		o.broke("H-05", "%s has a deadline that has passed", r.ID)
	}
}

// end judges what only the whole shows.
func (o *orderBook) end() {
	for _, id := range o.cancelled {
		if _, known := o.content[id]; !known {
			o.broke("H-06", "%s is cancelled, and was never ordered", id)
		}
	}
	for rule, why := range map[string]string{
		"H-02": "no order was sent again or changed; do both once",
		"H-06": "no order was cancelled; cancel one",
	} {
		if !o.tested[rule] {
			o.skip(why, rule)
		}
	}
}
