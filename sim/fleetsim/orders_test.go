package fleetsim

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jonboulle/clockwork"

	"github.com/dronefleet/dronefleet/adapters/wire"
	"github.com/dronefleet/dronefleet/domain"
)

func newSource(t *testing.T, cfg OrderConfig) *OrderSource {
	t.Helper()
	s, err := NewOrderSource(newWorld(t, 1), cfg, clockwork.NewFakeClockAt(noon), newNetwork(), NewConfirmations())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOrderSource_DrawsAFeasibleMix(t *testing.T) {
	const n = 5000
	s := newSource(t, OrderConfig{Seed: 3})
	share := make(map[domain.Priority]float64)
	ids := map[domain.OrderID]bool{}
	for range n {
		r := s.Next()
		share[r.Priority] += 1.0 / n
		ids[r.ID] = true
		if cold := r.ProductType == "BLOOD" || r.ProductType == "VACCINE"; r.ColdChain != cold {
			t.Fatalf("cold chain is %v for %s", r.ColdChain, r.ProductType)
		}
		if r.WeightKg <= 0 || r.WeightKg > payloadCapacityKg/2.0 || !r.CreatedAt.Equal(noon) || r.RequesterID == "" {
			t.Fatalf("order is %+v", r)
		}
		if !slices.ContainsFunc(s.world.Warehouses, func(w domain.Warehouse) bool {
			metres := home.DistanceMetres(w.Position) + w.Position.DistanceMetres(r.Delivery) + r.Delivery.DistanceMetres(home)
			return slices.Contains(w.ProductTypes, r.ProductType) && (w.ColdStorage || !r.ColdChain) &&
				chargeBelow-metres/1000*ConsumptionPerKm >= reserveCharge
		}) {
			t.Fatalf("no drone can serve %+v", r)
		}
		data, attrs, err := wire.EncodeOrder(r, wire.JSON)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.DecodeOrder(data, attrs); err != nil {
			t.Fatal(err)
		}
	}
	if len(ids) != n {
		t.Errorf("%d ids for %d orders", len(ids), n)
	}
	for priority, want := range map[domain.Priority]float64{
		domain.PriorityCritical: 0.1, domain.PriorityHigh: 0.3, domain.PriorityStandard: 0.6,
	} {
		if math.Abs(share[priority]-want) > 0.03 {
			t.Errorf("share of %v is %.3f, want about %.1f", priority, share[priority], want)
		}
	}
}

func TestOrderSource_IsRepeatedByItsSeed(t *testing.T) {
	a, b := newSource(t, OrderConfig{Seed: 3}), newSource(t, OrderConfig{Seed: 3})
	if diff := cmp.Diff(a.Opening(), b.Opening()); diff != "" {
		t.Errorf("opening orders differ:\n%s", diff)
	}
	for range 20 {
		if diff := cmp.Diff(a.Next(), b.Next()); diff != "" {
			t.Fatalf("orders differ:\n%s", diff)
		}
	}
}

func TestOrderSource_PublishesTheOpeningAndThenAtItsRate(t *testing.T) {
	const perMinute = 30
	clock := clockwork.NewFakeClockAt(noon)
	n, confirmations := newNetwork(), NewConfirmations()
	s, err := NewOrderSource(newWorld(t, 1), OrderConfig{PerMinute: perMinute, Seed: 5, IDPrefix: "R1"}, clock, n, confirmations)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	opening := len(newSource(t, OrderConfig{}).Opening())
	for range opening {
		<-n.arrived
	}
	for end := noon.Add(10 * time.Minute); clock.Now().Before(end); {
		if err := clock.BlockUntilContext(ctx, 1); err != nil { // it waits for the next moment
			t.Fatal(err)
		}
		clock.Advance(100 * time.Millisecond)
	}
	cancel()
	<-done
	sent := n.sent()
	if got := len(sent) - opening; got < 250 || got > 350 {
		t.Errorf("%d orders in 10 minutes at %d a minute", got, perMinute)
	}
	for _, m := range sent {
		r, err := wire.DecodeOrder(m.data, m.attrs)
		if err != nil {
			t.Fatal(err)
		}
		if m.topic != "orders" || m.key != "" || !strings.HasPrefix(string(r.ID), "R1-") {
			t.Errorf("topic %q, ordering key %q, order %s", m.topic, m.key, r.ID)
		}
	}
	if got := len(confirmations.Messages()); got != len(sent) {
		t.Errorf("the list holds %d of %d confirmed orders", got, len(sent))
	}
}

// A pause that overflows a Duration would make the lowest rates the fastest.
func TestOrderSource_OrdersNothingAtTheLowestRates(t *testing.T) {
	for _, rate := range []float64{1e-9, 1e-300, math.SmallestNonzeroFloat64} {
		s := newSource(t, OrderConfig{PerMinute: rate, Seed: 5})
		for range 100 {
			if pause := s.Pause(); pause < 24*time.Hour {
				t.Fatalf("%s to the next order at %g a minute", pause, rate)
			}
		}
	}
}

func TestOrderSource_NamesTheBadSetting(t *testing.T) {
	for want, cfg := range map[string]OrderConfig{
		"orders per minute is -1":  {PerMinute: -1},
		"orders per minute is NaN": {PerMinute: math.NaN()},
		`format is "xml"`:          {Format: "xml"},
	} {
		_, err := NewOrderSource(newWorld(t, 1), cfg, clockwork.NewFakeClock(), newNetwork(), NewConfirmations())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %q", err, want)
		}
	}
}

// F-CHG-02: simulated drones weigh the parcels of this run's orders and of those that an
// earlier run left open.
func TestOrderSource_KnowsWhatParcelsWeigh(t *testing.T) {
	s, err := NewOrderSource(newWorld(t, 1), OrderConfig{PerMinute: 4}, clockwork.NewFakeClockAt(noon), newNetwork(), NewConfirmations())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range append(s.Opening(), s.Next(), s.Next()) {
		if got := s.WeightKg(r.ID); got != r.WeightKg || got == 0 {
			t.Errorf("order %s weighs %v kg, want %v kg", r.ID, got, r.WeightKg)
		}
	}
	s.Remember([]domain.Order{{ID: "EARLIER", OrderContent: domain.OrderContent{WeightKg: 3}}})
	if got := s.WeightKg("EARLIER"); got != 3 {
		t.Errorf("a remembered order weighs %v kg", got)
	}
	if got := s.WeightKg("UNKNOWN"); got != 0 {
		t.Errorf("an unknown order weighs %v kg", got)
	}
}

// F-DAY-02: a burst is for one hospital, within reach and CRITICAL, also where hospitals order
// nothing else.
func TestOrderSource_BurstsAtOneHospital(t *testing.T) {
	out := newNetwork()
	s, err := NewOrderSource(newWorld(t, 1), OrderConfig{NoOpening: true}, clockwork.NewFakeClockAt(noon), out, NewConfirmations())
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	to, err := s.Burst(ctx, 12)
	for range 12 {
		<-out.arrived
	}
	end()
	running.Wait()
	if _, late := s.Burst(ctx, 1); err != nil || late == nil {
		t.Errorf("a burst: %v; after the end: %v", err, late)
	}
	for _, m := range out.sent() {
		r, err := wire.DecodeOrder(m.data, m.attrs)
		if err != nil || r.Priority != domain.PriorityCritical || r.RequesterID != to.ID || s.WeightKg(r.ID) != 1 ||
			!slices.ContainsFunc(s.reaches[r.ProductType], func(h Hospital) bool { return h.ID == to.ID }) {
			t.Errorf("%+v, %v", r, err)
		}
	}
}
