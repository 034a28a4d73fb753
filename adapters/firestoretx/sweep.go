package firestoretx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// ErrClockSet says that the clock was set while a sweep judged by it.
var ErrClockSet = errors.New("the clock was set during the sweep")

// SweepResult counts what a sweep changed.
type SweepResult struct {
	MissionsFailed int
	DronesUnknown  int // silent drones without an active mission
	OrdersLate     int
	OrdersAdopted  int // no depot planned them
}

func (r *SweepResult) add(more SweepResult) {
	r.MissionsFailed += more.MissionsFailed
	r.DronesUnknown += more.DronesUnknown
	r.OrdersLate += more.OrdersLate
	r.OrdersAdopted += more.OrdersAdopted
}

const (
	// sweepPage bounds the documents of one query that a sweep holds in memory.
	sweepPage = 300
	// queriesAtOnce bounds the concurrent queries of a sweep.
	queriesAtOnce = 8
	// sweepAtOnce bounds the concurrent transactions of a sweep. After an outage thousands are due;
	// one at a time they would delay silent drones by minutes.
	sweepAtOnce = 16
	// adoptFor is how long after a change of the depots each sweep looks for orders that no depot
	// plans. For so long State Managers may give new orders to a depot that was deleted; see
	// depotsRemembered.
	adoptFor = time.Minute
)

// Sweeper handles what no message reports: silent drones, stalled missions, and orders past their
// deadline or without a planning depot. Due and All may run at the same time, each once.
type Sweeper struct {
	store *Store

	mu      sync.Mutex
	areas   map[domain.DepotID]bool // where something may be due: "", depots, and depots that are gone
	depots  []domain.DepotID        // as of the latest sweep
	changed time.Time               // when they changed
}

// NewSweeper returns a sweeper. Due finds the areas that are depots; All finds all.
func (s *Store) NewSweeper() *Sweeper {
	return &Sweeper{store: s, areas: map[domain.DepotID]bool{"": true}}
}

// Due sweeps the drones and orders whose dueAt has come, in the areas for which takes returns true;
// nil means all. One failure does not stop the rest; the errors are joined.
//
// holds, if not nil, is called after each reading of the clock. Once it returns false, nothing more
// changes and the error is ErrClockSet: a clock set forward would make every drone look silent.
//
// Cost: 2 RPCs for every 30 depots; a read for each drone and order that is due, and for the mission
// of a drone. The depots are read as for new orders. For a minute after they changed, a read for each
// PENDING order more, by whoever takes area "".
func (w *Sweeper) Due(ctx context.Context, holds func() bool, takes func(domain.DepotID) bool) (SweepResult, error) {
	s, now := w.store, w.store.now()
	depots, err := s.planningDepots(ctx)
	p := s.newPass(ctx, holds, depots)
	p.note(wrap(err, "depots"))
	areas, adopt := w.know(depots, now)
	if takes != nil {
		areas, adopt = slices.DeleteFunc(areas, func(area domain.DepotID) bool { return !takes(area) }), adopt && takes("")
	}
	var g errgroup.Group
	g.SetLimit(queriesAtOnce)
	for some := range slices.Chunk(areas, maxIn) {
		for collection, sweep := range map[string]func([]*firestore.DocumentSnapshot){Drones: p.drones, Orders: p.orders} {
			g.Go(func() error {
				q := s.client.Collection(collection).Where(dueArea, "in", some).Where(dueAt, "<=", now).OrderBy(dueAt, firestore.Asc)
				p.note(wrap(p.pages(q, sweep), "%s that are due", collection))
				return nil
			})
		}
	}
	_ = g.Wait() // no query returns an error
	if adopt && err == nil {
		p.note(wrap(p.pages(s.inOrder(Orders, "status", string(domain.OrderPending)), p.strays), "pending orders"))
	}
	return p.end()
}

// know adds depots to the areas and lists these. adopt says that the depots changed lately.
func (w *Sweeper) know(depots []domain.Depot, now time.Time) (areas []domain.DepotID, adopt bool) {
	var ids []domain.DepotID
	for _, d := range depots {
		ids = append(ids, d.ID)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		w.areas[id] = true
	}
	if w.changed.IsZero() || !slices.Equal(ids, w.depots) {
		w.depots, w.changed = ids, now
	}
	return slices.Sorted(maps.Keys(w.areas)), now.Sub(w.changed) < adoptFor
}

// All sweeps everything, whatever dueAt says, and corrects dueAt where it is missing, too late or of
// another area: other tools and earlier versions do not write it. corrected counts these documents.
//
// Cost: 6 RPCs, and 2 for every 300 documents; a read for each open order and idle drone, and 2 for
// each bound drone and each ACTIVE mission.
func (w *Sweeper) All(ctx context.Context, holds func() bool) (_ SweepResult, corrected int, _ error) {
	s := w.store
	p := s.newPass(ctx, holds, nil)
	var err error
	p.depots, err = p.today()
	p.note(err)
	underWay := slices.DeleteFunc(slices.Clone(domain.OrderStatuses), func(status domain.OrderStatus) bool {
		return status.Final() || status == domain.OrderPending
	})
	for _, part := range []struct {
		what  string
		query firestore.Query
		sweep func([]*firestore.DocumentSnapshot)
	}{
		{"bound drones", s.client.Collection(Drones).Where("currentMissionId", ">", "").OrderBy("currentMissionId", firestore.Asc), p.drones},
		{"active missions", s.inOrder(Missions, "status", string(domain.MissionActive)), p.unflown},
		{"idle drones", s.inOrder(Drones, "status", string(domain.DroneIdle)), p.drones},
		{"pending orders", s.inOrder(Orders, "status", string(domain.OrderPending)), p.orders},
		{"orders under way", Page{}.of(s.client.Collection(Orders).Where("status", "in", underWay).Where("late", "==", false)), p.orders},
	} {
		p.note(wrap(p.pages(part.query, part.sweep), "%s", part.what))
	}
	w.mu.Lock()
	maps.Copy(w.areas, p.areas)
	w.mu.Unlock()
	result, err := p.end()
	return result, p.corrected, err
}

// inOrder are the documents whose field equals value, by id.
func (s *Store) inOrder(collection, field, value string) firestore.Query {
	return Page{}.of(s.where(collection, field, value))
}

// pass is one sweep.
type pass struct {
	store  *Store
	ctx    context.Context
	holds  func() bool
	depots []domain.Depot // perhaps as of some seconds ago
	today  func() ([]domain.Depot, error)
	slots  chan struct{} // for transactions

	mu        sync.Mutex
	result    SweepResult
	corrected int
	areas     map[domain.DepotID]bool // of the documents
	errs      []error
}

func (s *Store) newPass(ctx context.Context, holds func() bool, depots []domain.Depot) *pass {
	if holds == nil {
		holds = func() bool { return true }
	}
	return &pass{
		store: s, ctx: ctx, holds: holds, depots: depots, slots: make(chan struct{}, sweepAtOnce), areas: map[domain.DepotID]bool{},
		today: sync.OnceValues(func() ([]domain.Depot, error) {
			listing, err := s.Depots(ctx)
			return listing.Items, err
		}),
	}
}

func (p *pass) note(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

func (p *pass) end() (SweepResult, error) {
	return p.result, errors.Join(some(p.errs), p.ctx.Err())
}

// pages calls sweep with the documents of a query, a page at a time, until ctx ends.
func (p *pass) pages(q firestore.Query, sweep func([]*firestore.DocumentSnapshot)) error {
	q = q.Limit(sweepPage)
	for next := q; ; {
		docs, err := next.Documents(p.ctx).GetAll()
		if err != nil {
			return err
		}
		sweep(docs)
		if len(docs) < sweepPage || p.ctx.Err() != nil {
			return nil
		}
		next = q.StartAfter(docs[len(docs)-1])
	}
}

// each works on independent documents concurrently, until ctx ends.
func (p *pass) each(works []func() (SweepResult, error)) {
	errs := make([]error, len(works))
	var all sync.WaitGroup
	for i, work := range works {
		if p.ctx.Err() != nil {
			break
		}
		p.slots <- struct{}{}
		all.Go(func() {
			defer func() { <-p.slots }()
			var result SweepResult
			result, errs[i] = work()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.result.add(result)
		})
	}
	all.Wait()
	p.note(some(errs))
}

// drones sweeps a page of drones. It reads their missions, but no orders and without a transaction,
// because few are due.
func (p *pass) drones(docs []*firestore.DocumentSnapshot) {
	s := p.store
	drones := decodePage(p, docs, decodeKnownDrone)
	var bound []domain.MissionID
	for _, d := range drones {
		if d.value.Bound() {
			bound = append(bound, d.value.CurrentMissionID)
		}
	}
	list, err := many(p.ctx, s, Missions, bound, missionCodec.decode)
	p.note(err)
	missions := make(map[domain.MissionID]*domain.Mission, len(list))
	for _, m := range list {
		missions[m.ID] = &m
	}
	var works []func() (SweepResult, error)
	for _, page := range drones {
		d := page.value
		mission := missions[d.CurrentMissionID]
		if d.Bound() && mission == nil { // nothing can end
			continue
		}
		dated := s.drone.Dated(d, mission)
		isBound := !s.drone.SweepBinding(policy.Binding{Drone: d, Mission: mission}, s.now()).Empty()
		isIdle := !s.drone.SweepIdle(d, s.now()).Empty()
		wrong := page.misdated(d.DueAt, dated.DueAt, d.HomeDepotID)
		switch {
		case isBound:
			works = append(works, func() (SweepResult, error) {
				result, err := p.sweepBinding(d.ID, mission.ID)
				return result, wrap(err, "mission %s", mission.ID)
			})
		case isIdle:
			works = append(works, func() (SweepResult, error) {
				result, err := p.sweepIdle(d.ID)
				return result, wrap(err, "drone %s", d.ID)
			})
		case wrong || !dated.DueAt.Equal(d.DueAt):
			works = append(works, func() (SweepResult, error) { return SweepResult{}, wrap(p.dateDrone(d.ID), "drone %s", d.ID) })
		}
		p.found(d.HomeDepotID, wrong)
	}
	p.each(works)
}

// orders sweeps a page of orders.
func (p *pass) orders(docs []*firestore.DocumentSnapshot) {
	var works []func() (SweepResult, error)
	now := p.store.now()
	for _, page := range decodePage(p, docs, orderCodec.decode) {
		o := page.value
		due := policy.OrderDue(o)
		wrong := page.misdated(o.DueAt, due, o.PlanningDepotID)
		switch {
		case !policy.SweepPlanningDepot(o, p.depots, now).Empty() || !policy.SweepOrder(o, now).Empty():
			works = append(works, func() (SweepResult, error) {
				result, err := p.sweepOrder(o.ID)
				return result, wrap(err, "order %s", o.ID)
			})
		case wrong || !due.Equal(o.DueAt):
			works = append(works, func() (SweepResult, error) { return SweepResult{}, wrap(p.dateOrder(o.ID), "order %s", o.ID) })
		}
		p.found(o.PlanningDepotID, wrong)
	}
	p.each(works)
}

// strays sweeps those orders of a page that no depot plans.
func (p *pass) strays(docs []*firestore.DocumentSnapshot) {
	known := map[string]bool{}
	for _, d := range p.depots {
		known[string(d.ID)] = true
	}
	p.orders(slices.DeleteFunc(slices.Clone(docs), func(doc *firestore.DocumentSnapshot) bool {
		planner, _ := doc.Data()["planningDepotId"].(string)
		return known[planner]
	}))
}

// paged is a document of a page.
type paged[T any] struct {
	value T
	area  any // as stored
}

func decodePage[T any](p *pass, docs []*firestore.DocumentSnapshot, decode func(*firestore.DocumentSnapshot) (T, error)) (list []paged[T]) {
	var malformed []error
	for _, doc := range docs {
		v, err := decode(doc)
		if err != nil {
			malformed = append(malformed, err)
			continue
		}
		list = append(list, paged[T]{v, doc.Data()[dueArea]})
	}
	p.note(some(malformed))
	return list
}

// misdated reports whether a document that is due at a time would not be found then.
func (d paged[T]) misdated(stored, due time.Time, area domain.DepotID) bool {
	return !due.IsZero() && (stored.IsZero() || stored.After(due) || d.area != string(area))
}

// found notes a document's area, and whether its dueAt was wrong.
func (p *pass) found(area domain.DepotID, wrong bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.areas[area] = true
	if wrong {
		p.corrected++
	}
}

// unflown sweeps a page of ACTIVE missions that may hold no drone.
func (p *pass) unflown(docs []*firestore.DocumentSnapshot) {
	missions := decodePage(p, docs, missionCodec.decode)
	var ids []domain.DroneID
	for _, m := range missions {
		ids = append(ids, m.value.DroneID)
	}
	holds := map[domain.MissionID]bool{}
	drones, err := many(p.ctx, p.store, Drones, ids, func(doc *firestore.DocumentSnapshot) (domain.Drone, error) {
		d, err := decodeKnownDrone(doc)
		if err != nil { // it may hold its mission
			named, _ := doc.Data()["currentMissionId"].(string)
			holds[domain.MissionID(named)] = true
		}
		return d, err
	})
	if p.note(err); unlessMalformed(err) != nil {
		return // drones are missing
	}
	for _, d := range drones {
		holds[d.CurrentMissionID] = true
	}
	var works []func() (SweepResult, error)
	for _, m := range missions {
		if holds[m.value.ID] {
			continue
		}
		works = append(works, func() (SweepResult, error) {
			result, err := p.sweepUnflown(m.value)
			return result, wrap(err, "mission %s", m.value.ID)
		})
	}
	p.each(works)
}

// maxErrors is how many failures of one kind an error lists. In an outage thousands are alike, too
// many for a log line.
const maxErrors = 10

// some joins the first errors and counts the rest.
func some(errs []error) error {
	errs = slices.DeleteFunc(slices.Clone(errs), func(err error) bool { return err == nil })
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

// apply applies what judge decides on the present state, which may have changed since the document
// was found due.
func (p *pass) apply(judge func(*txn) (policy.Change, error)) (change policy.Change, err error) {
	err = p.store.transact(p.ctx, nil, func(t *txn) (err error) {
		change = policy.Change{}
		if !p.holds() {
			return ErrClockSet
		}
		if change, err = judge(t); err != nil {
			return err
		}
		return t.write(change)
	})
	return change, err
}

// sweepBinding sweeps the binding of a drone to a mission.
func (p *pass) sweepBinding(drone domain.DroneID, mission domain.MissionID) (SweepResult, error) {
	change, err := p.apply(func(t *txn) (change policy.Change, _ error) {
		b, err := t.readBinding(drone)
		if err != nil || b.Drone.CurrentMissionID != mission {
			return change, err
		}
		return p.store.drone.SweepBinding(b, t.now), nil
	})
	switch {
	case err != nil || change.Drone == nil: // at most a command got a new expiry
		return SweepResult{}, err
	case slices.ContainsFunc(change.Missions, func(m domain.Mission) bool { return m.Status == domain.MissionFailed }):
		return SweepResult{MissionsFailed: 1}, nil
	}
	return SweepResult{DronesUnknown: 1}, nil // it was on its way home
}

// sweepUnflown fails a mission that holds no drone.
func (p *pass) sweepUnflown(m domain.Mission) (SweepResult, error) {
	change, err := p.apply(func(t *txn) (change policy.Change, _ error) {
		if m.DroneID != "" {
			if err := t.readDrones(m.DroneID); err != nil {
				return change, err
			}
		}
		drone, err := t.drone(m.DroneID)
		if err == nil {
			err = t.readMissions(m.ID)
		}
		if err != nil {
			return change, err
		}
		return policy.SweepUnflown(t.missions[m.ID], t.orders, drone, t.now), nil
	})
	if err != nil || change.Empty() {
		return SweepResult{}, err
	}
	return SweepResult{MissionsFailed: 1}, nil
}

// sweepIdle sweeps a drone without a mission. One whose document is malformed stays.
func (p *pass) sweepIdle(id domain.DroneID) (SweepResult, error) {
	change, err := p.apply(func(t *txn) (change policy.Change, _ error) {
		if err := t.readDrones(id); err != nil {
			return change, err
		}
		drone, malformed := t.drone(id)
		if drone == nil || malformed != nil {
			return change, nil
		}
		return p.store.drone.SweepIdle(*drone, t.now), nil
	})
	if err != nil || change.Empty() {
		return SweepResult{}, err
	}
	return SweepResult{DronesUnknown: 1}, nil
}

// sweepOrder finds a depot for an order, and marks it if it is late, each in a transaction. The depots
// are read after the order, so that one to which the order was just given is among them.
func (p *pass) sweepOrder(id domain.OrderID) (result SweepResult, _ error) {
	depots, err := p.today()
	if err != nil {
		depots = nil
	}
	adopt := func(o domain.Order, now time.Time) policy.Change { return policy.SweepPlanningDepot(o, depots, now) }
	for _, step := range []struct {
		sweep  func(domain.Order, time.Time) policy.Change
		counts SweepResult
	}{{adopt, SweepResult{OrdersAdopted: 1}}, {policy.SweepOrder, SweepResult{OrdersLate: 1}}} {
		change, err := p.apply(func(t *txn) (change policy.Change, _ error) {
			if err := t.readOrders(id); err != nil {
				return change, err
			}
			order := found(t.orders, id)
			if order == nil {
				return change, nil
			}
			return step.sweep(*order, t.now), nil
		})
		if err != nil {
			return result, err
		}
		if !change.Empty() {
			result.add(step.counts)
		}
	}
	return result, nil
}

// dateDrone corrects when a drone is due.
func (p *pass) dateDrone(id domain.DroneID) error {
	return p.store.transact(p.ctx, nil, func(t *txn) error {
		b, err := t.readBinding(id)
		if err != nil || !t.drones[id].exists {
			return err
		}
		dated := p.store.drone.Dated(b.Drone, b.Mission)
		return t.Update(p.store.doc(Drones, string(id)), dueUpdates(dated.DueAt, dated.HomeDepotID))
	})
}

// dateOrder corrects when an order is due.
func (p *pass) dateOrder(id domain.OrderID) error {
	return p.store.transact(p.ctx, nil, func(t *txn) error {
		if err := t.readOrders(id); err != nil {
			return err
		}
		o, exists := t.orders[id]
		if !exists {
			return nil
		}
		return t.Update(p.store.doc(Orders, string(id)), dueUpdates(policy.OrderDue(o), o.PlanningDepotID))
	})
}
