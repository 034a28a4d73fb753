package live

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/dronefleet/dronefleet/app/learning"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/solver"
)

const (
	// estimateEvery is after how many ticks it is estimated again how soon orders could be delivered.
	estimateEvery = 3
	// estimatedAtOnce bounds the orders of one estimate, the most urgent ones.
	estimatedAtOnce = 500
	// learnedEvery is how often what the fleet has learned is read, a document for each drone.
	learnedEvery = time.Hour
	// arrivalMoved is by how much an arrival must move to be shown again. That of an idle drone moves
	// with the clock.
	arrivalMoved = 30 * time.Second
)

// followLearned reads what the fleet has learned, as the optimizers do.
func (s *session) followLearned(ctx context.Context) error {
	for {
		learned, _, err := s.cfg.Store.Learned(ctx) // without what is damaged
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.learned = learning.Estimate(learned, planner.Assumed(solver.Params{}), learning.DefaultConfidence)
		s.sources.recovered("learned")
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(learnedEvery):
		}
	}
}

// estimate estimates how soon the orders that wait could be delivered, once all is known that viewers see.
func (s *session) estimate(now time.Time) {
	s.mu.Lock()
	for _, sc := range s.scopes {
		if !sc.sources.ready {
			s.mu.Unlock()
			return
		}
	}
	waiting, learned := s.picture.waiting(), s.learned
	var fleet planner.Fleet
	if len(waiting) > 0 {
		fleet = s.picture.fleet(now)
	}
	s.mu.Unlock()
	found := s.arrivalsOf(waiting, fleet, learned)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.picture.putArrivals(found)
}

// arrivalsOf is how soon drones of a fleet could deliver orders.
func (f *Feed) arrivalsOf(waiting []domain.Order, fleet planner.Fleet, learned learning.Estimates) map[domain.OrderID]planner.Arrival {
	if len(waiting) == 0 {
		return nil
	}
	limits := f.cfg.Limits.WithDefaults()
	arrivals := planner.NewArrivals(planner.Config{Limits: limits, Learned: learned}, f.cfg.Store.DronePolicy(limits), fleet)
	found := make(map[domain.OrderID]planner.Arrival, len(waiting))
	for _, o := range waiting {
		found[o.ID] = arrivals.Earliest(o)
	}
	return found
}

// waiting lists the most urgent orders that wait for a drone.
func (p *picture) waiting() (list []domain.Order) {
	for _, o := range p.state.Orders {
		if o.Waits() {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, moreUrgent)
	return list[:min(len(list), estimatedAtOnce)]
}

// moreUrgent sorts orders, the most urgent first.
func moreUrgent(a, b domain.Order) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Deadline.Compare(b.Deadline), cmp.Compare(a.ID, b.ID))
}

// fleet is what arrivals follow from. Positions may be newer than the drones' documents.
func (p *picture) fleet(now time.Time) planner.Fleet {
	f := planner.Fleet{Now: now, Depots: slices.Collect(maps.Values(p.state.Depots)), Warehouses: slices.Collect(maps.Values(p.state.Warehouses))}
	for _, m := range p.state.Missions {
		if m.Status == domain.MissionActive {
			f.Missions = append(f.Missions, m)
		}
	}
	for _, o := range p.state.Orders {
		if !o.Status.Final() {
			f.Orders = append(f.Orders, o)
		}
	}
	for id, d := range p.state.Drones {
		if m := p.book.positions[id]; m != nil && !m.position.foretold {
			d.Position, d.Battery, d.LastUpdate, d.SeenAt = m.position.At, m.position.Battery, m.position.MeasuredAt, m.position.MeasuredAt
		}
		f.Drones = append(f.Drones, d)
	}
	return f
}

// putArrivals shows how soon the orders could be delivered for which that was estimated. One that
// moves a little is not shown again, unless the order would now be late.
func (p *picture) putArrivals(found map[domain.OrderID]planner.Arrival) {
	for id := range p.state.Arrivals {
		if _, is := found[id]; !is {
			delete(p.state.Arrivals, id)
			p.showOrder(p.state.Orders[id])
		}
	}
	for id, is := range found {
		o := p.state.Orders[id]
		if !o.Waits() {
			continue
		}
		was, known := p.state.Arrivals[id]
		late := is.At.After(o.Deadline) && !was.At.After(o.Deadline)
		if moved := is.At.Sub(was.At).Abs() > arrivalMoved; !known || moved || late {
			p.state.Arrivals[id] = is
			p.showOrder(o)
		}
	}
}
