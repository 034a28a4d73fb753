package fleetsim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/sim/invariant"
)

// OrderConfig describes the orders of the hospitals.
type OrderConfig struct {
	Topic     string      // default "orders"
	Format    wire.Format // default Protobuf
	PerMinute float64     // mean rate by the clock, 0 to 60000; 0: only the opening orders
	NoOpening bool        // leave the opening orders out
	// IDPrefix is the prefix of every order id; runs that share a store need
	// different ones. Default "O".
	IDPrefix string
	Seed     uint64
	// CriticalPercent and HighPercent are the shares of urgent orders; both 0 stand
	// for 10 and 30.
	CriticalPercent, HighPercent int
}

// OrderSource orders parcels at random moments. Its methods are safe for
// concurrent use.
type OrderSource struct {
	cfg    OrderConfig
	world  *World
	clock  clockwork.Clock
	sender *sender
	bursts chan []domain.OrderRequest

	mu      sync.Mutex
	random  *rand.Rand
	stocked []product             // that a drone can carry to a hospital
	reaches map[string][]Hospital // hospitals a drone can serve, by product
	weights map[domain.OrderID]float64
}

// NewOrderSource makes the hospitals of the world order through p and adds
// confirmed orders to c.
func NewOrderSource(w *World, cfg OrderConfig, clock clockwork.Clock, p Publisher, c *Confirmations) (*OrderSource, error) {
	if cfg.Topic == "" {
		cfg.Topic = "orders"
	}
	if cfg.IDPrefix == "" {
		cfg.IDPrefix = "O"
	}
	if cfg.Format == "" {
		cfg.Format = wire.Protobuf
	}
	if _, err := wire.ParseFormat(string(cfg.Format)); err != nil {
		return nil, fmt.Errorf("order source: %w", err)
	}
	if !(cfg.PerMinute >= 0 && cfg.PerMinute <= 60_000) {
		return nil, fmt.Errorf("order source: orders per minute is %v; give 0 to 60000", cfg.PerMinute)
	}
	if cfg.CriticalPercent == 0 && cfg.HighPercent == 0 {
		cfg.CriticalPercent, cfg.HighPercent = 10, 30
	}
	if cfg.CriticalPercent < 0 || cfg.HighPercent < 0 || cfg.CriticalPercent+cfg.HighPercent > 100 {
		return nil, fmt.Errorf("order source: %d %% CRITICAL and %d %% HIGH orders; give 0 to 100 together", cfg.CriticalPercent, cfg.HighPercent)
	}
	s := &OrderSource{
		cfg: cfg, world: w, clock: clock, sender: newSender(p, c, clock), bursts: make(chan []domain.OrderRequest),
		random: randomFor(cfg.Seed, streamOrders), reaches: reaches(w), weights: map[domain.OrderID]float64{},
	}
	for _, p := range products {
		if len(s.reaches[p.name]) > 0 {
			s.stocked = append(s.stocked, p)
		}
	}
	if len(s.stocked) == 0 {
		return nil, fmt.Errorf("order source: no warehouse stocks a product that a drone can carry to a hospital and come home; "+
			"add a warehouse with BLOOD, MEDICINE, VACCINE or MEDICAL_DEVICE within %d km of a depot", int(reachMetres/2000))
	}
	return s, nil
}

// Run orders until ctx ends, then waits for outstanding answers. It may be
// called once.
func (s *OrderSource) Run(ctx context.Context) {
	s.sender.start(ctx)
	defer s.sender.stop()
	if !s.cfg.NoOpening {
		for _, r := range s.Opening() {
			s.publish(ctx, r)
		}
	}
	// Each time is computed from the one before, not from when the timer fired,
	// so that the rate holds at any load.
	next := s.clock.Now()
	var due <-chan time.Time // never, if there is no rate
	disarm := func() bool { return true }
	arm := func() {
		if s.cfg.PerMinute > 0 {
			next = next.Add(s.Pause())
			timer := s.clock.NewTimer(next.Sub(s.clock.Now()))
			due, disarm = timer.Chan(), timer.Stop
		}
	}
	for arm(); ; {
		select {
		case <-ctx.Done():
			disarm()
			return
		case burst := <-s.bursts:
			for _, r := range burst {
				s.publish(ctx, r)
			}
		case <-due:
			s.publish(ctx, s.Next())
			arm()
		}
	}
}

// Burst has one hospital order n CRITICAL parcels at once, while Run runs.
func (s *OrderSource) Burst(ctx context.Context, n int) (Hospital, error) {
	s.mu.Lock()
	product := s.stocked[0]
	reach := s.reaches[product.name]
	to := reach[s.random.IntN(len(reach))]
	burst := make([]domain.OrderRequest, n)
	for i := range burst {
		burst[i] = s.request(domain.OrderContent{Priority: domain.PriorityCritical, ProductType: product.name, ColdChain: product.cold, WeightKg: 1}, to)
	}
	s.mu.Unlock()
	select {
	case s.bursts <- burst:
		return to, nil
	case <-ctx.Done():
		return Hospital{}, ctx.Err()
	}
}

// Pause draws the time from one order to the next, a Poisson process.
func (s *OrderSource) Pause() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := s.random.ExpFloat64() / s.cfg.PerMinute * float64(time.Minute)
	return time.Duration(min(pause, float64(longestPause)))
}

// longestPause caps the pause at very low rates, where it would not fit a Duration.
const longestPause = 100 * 365 * 24 * time.Hour

func (s *OrderSource) publish(ctx context.Context, r domain.OrderRequest) {
	data, attrs, err := wire.EncodeOrder(r, s.cfg.Format)
	if err != nil {
		s.sender.failed.Add(1)
		return
	}
	attrs[wire.AttrSender] = r.RequesterID
	s.sender.send(ctx, data, attrs, "", invariant.Message{
		Topic: s.cfg.Topic, OrderID: r.ID, Timestamp: r.CreatedAt, ContentHash: r.Hash(), SentAt: s.clock.Now(),
	})
}

// Next draws the next order, created now.
func (s *OrderSource) Next() domain.OrderRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	product := s.stocked[s.random.IntN(len(s.stocked))]
	reach := s.reaches[product.name]
	return s.request(domain.OrderContent{
		Priority:    s.priority(),
		ProductType: product.name,
		ColdChain:   product.cold,
		WeightKg:    float64(s.random.IntN(23)+2) / 10,
	}, reach[s.random.IntN(len(reach))])
}

// urgentWithin is the deadline of the CRITICAL transfers among the opening orders:
// only the drone that stands beside the parcel can meet it.
const urgentWithin = 3 * time.Minute

// Opening returns the orders that wait when a run starts: short flights from where
// drones stand, so that somebody who watches soon sees a delivery, and a few longer
// ones.
func (s *OrderSource) Opening() []domain.OrderRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	transfer := func(p domain.Priority, product, from, to string) domain.OrderRequest {
		pickup := hospital(from).Position
		r := s.request(domain.OrderContent{
			Priority: p, ProductType: product, Pickup: &pickup, WeightKg: 0.5,
		}, hospital(to))
		if p == domain.PriorityCritical {
			r.Deadline = r.CreatedAt.Add(urgentWithin)
		}
		return r
	}
	stocked := func(p domain.Priority, product, to string) domain.OrderRequest {
		return s.request(domain.OrderContent{
			Priority: p, ProductType: product, ColdChain: isCold(product), WeightKg: 1,
		}, hospital(to))
	}
	return []domain.OrderRequest{
		transfer(domain.PriorityCritical, "MEDICINE", "HOSP-COCHIN", "HOSP-PORT-ROYAL"),
		transfer(domain.PriorityCritical, "MEDICINE", "HOSP-ROTHSCHILD", "HOSP-TROUSSEAU"),
		transfer(domain.PriorityStandard, "MEDICAL_DEVICE", "HOSP-COCHIN", "HOSP-TARNIER"),
		stocked(domain.PriorityHigh, "MEDICAL_DEVICE", "HOSP-GUSTAVE-ROUSSY"),
		transfer(domain.PriorityStandard, "MEDICINE", "HOSP-SAINT-ANTOINE", "HOSP-QUINZE-VINGTS"),
		stocked(domain.PriorityCritical, "BLOOD", "HOSP-BICHAT"),
		stocked(domain.PriorityHigh, "VACCINE", "HOSP-FERNAND-WIDAL"),
		stocked(domain.PriorityStandard, "MEDICINE", "HOSP-BICETRE"),
	}
}

// request completes an order of the hospital. The lock must be held.
func (s *OrderSource) request(content domain.OrderContent, to Hospital) domain.OrderRequest {
	content.Delivery = to.Position
	content.RequesterID = to.ID
	// Ids do not increase, so that the store can spread them.
	id := domain.OrderID(fmt.Sprintf("%s-%012x", s.cfg.IDPrefix, s.random.Uint64()>>16))
	s.weights[id] = content.WeightKg
	return domain.OrderRequest{
		ID:           id,
		OrderContent: content,
		CreatedAt:    s.clock.Now().UTC().Truncate(time.Microsecond),
	}
}

// WeightKg is the weight of the parcel of an order, in kilograms: 0 for one that was neither
// drawn here nor remembered.
func (s *OrderSource) WeightKg(id domain.OrderID) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.weights[id]
}

// Remember tells the source the parcels of an earlier run's orders.
func (s *OrderSource) Remember(orders []domain.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range orders {
		s.weights[o.ID] = o.WeightKg
	}
}

// priority draws CRITICAL and HIGH for their shares of the orders.
func (s *OrderSource) priority() domain.Priority {
	switch p := s.random.IntN(100); {
	case p < s.cfg.CriticalPercent:
		return domain.PriorityCritical
	case p < s.cfg.CriticalPercent+s.cfg.HighPercent:
		return domain.PriorityHigh
	default:
		return domain.PriorityStandard
	}
}

type product struct {
	name string
	cold bool // needs the cold chain
}

var products = []product{{"BLOOD", true}, {"MEDICINE", false}, {"VACCINE", true}, {"MEDICAL_DEVICE", false}}

func isCold(name string) bool {
	return slices.Contains(products, product{name, true})
}

// reserveCharge is the charge, in percent, that a drone keeps when it lands.
const reserveCharge = 20.0

// reachMetres is the round trip of a drone with the lowest charge at which it does not
// charge, above its reserve.
const reachMetres = (chargeBelow - reserveCharge) / ConsumptionPerKm * 1000

// reaches lists, by product, the hospitals within reach of a drone at a depot.
func reaches(w *World) map[string][]Hospital {
	result := make(map[string][]Hospital, len(products))
	for _, p := range products {
		for _, h := range w.Hospitals {
			if slices.ContainsFunc(w.Warehouses, func(wh domain.Warehouse) bool {
				return slices.Contains(wh.ProductTypes, p.name) && (wh.ColdStorage || !p.cold) && slices.ContainsFunc(w.Depots, func(d domain.Depot) bool {
					return d.Position.DistanceMetres(wh.Position)+wh.Position.DistanceMetres(h.Position)+h.Position.DistanceMetres(d.Position) <= reachMetres
				})
			}) {
				result[p.name] = append(result[p.name], h)
			}
		}
	}
	return result
}

// Stats returns the counts so far.
func (s *OrderSource) Stats() PublishStats { return s.sender.stats() }
