package live

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/adapters/pubsubio"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/internal/restart"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

const (
	// keepEnded is how long orders and missions that are over are shown.
	keepEnded = time.Hour
	// cyclesShown is how many cycles of all depots are shown.
	cyclesShown = 120
	// acksRead is how many acknowledgements are known, the latest ones.
	acksRead = 500
	// eventsBefore is how far back events are read at the start, for the clocks of State
	// Managers that are behind.
	eventsBefore = 2 * time.Minute
	// eventsFor is how long events and decisions are followed before the listener starts
	// again: what it follows only grows.
	eventsFor = 15 * time.Minute
	// readAfter gathers entities that are read again.
	readAfter = 100 * time.Millisecond
	// readAtOnce bounds the entities of one read.
	readAtOnce = 300
	// locksEvery is how often the locks are read.
	locksEvery = 5 * time.Second
	// dronesEvery is how often all drones are read again, for changes that no event tells:
	// documents that people edit.
	dronesEvery = 10 * time.Minute
	// withoutTap is how often all drones are read where their reports cannot be listened to,
	// at least; readsWithoutTap bounds the reads a second.
	withoutTap      = 10 * time.Second
	readsWithoutTap = 100
	// retryAfter is the pause after a listener has failed.
	retryAfter = time.Second
)

// session follows the fleet while there are viewers.
type session struct {
	*Feed
	id     string
	ended  chan struct{}
	cancel context.CancelFunc

	mu       sync.Mutex
	book     *book
	state    State
	latest   map[domain.CycleID]bool // those that the cycles' listener has
	ledger   ledger
	houses   map[domain.WarehouseID]domain.Warehouse
	waits    domain.Waits
	alerts   map[string]time.Time        // by id: since when
	acks     map[string]*Acknowledgement // by the alert's id
	firstIn  map[string]bool             // sources that have answered
	failing  map[string]time.Time        // sources that fail: since when
	readTime time.Time                   // the store's, of the latest answer
	ready    chan struct{}               // closed once every source has answered

	stale  map[Key]bool  // entities to read again
	queued chan struct{} // holds an element once stale has one
	tap    chan bool
}

// sources are what a viewer's first snapshot waits for.
var sources = []string{"depots", "warehouses", "drones", "missions", "orders", "cycles", "decisions", "locks", "acknowledgements"}

func (f *Feed) newSession() *session {
	s := &session{
		Feed: f, id: f.cfg.NewID(), ended: make(chan struct{}), book: newBook(),
		state: State{
			Drones: map[domain.DroneID]domain.Drone{}, Orders: map[domain.OrderID]domain.Order{}, Missions: map[domain.MissionID]domain.Mission{},
			Cycles: map[domain.CycleID]domain.Cycle{}, Depots: map[domain.DepotID]domain.Depot{}, PickedUpAgain: map[domain.OrderID]time.Time{},
		},
		latest: map[domain.CycleID]bool{}, ledger: ledger{},
		houses: map[domain.WarehouseID]domain.Warehouse{}, alerts: map[string]time.Time{}, acks: map[string]*Acknowledgement{}, firstIn: map[string]bool{}, failing: map[string]time.Time{},
		ready: make(chan struct{}), stale: map[Key]bool{}, queued: make(chan struct{}, 1), tap: make(chan bool, 1),
	}
	return s
}

// run follows everything until ctx ends.
func (s *session) run(ctx context.Context) {
	defer close(s.ended)
	ctx = meter.WithOperation(ctx, "live")
	store := s.cfg.Store
	var all sync.WaitGroup
	keep := func(name string, follow func(context.Context) error) {
		all.Go(func() { s.keep(ctx, name, follow) })
	}
	keep("depots", func(ctx context.Context) error { return store.FollowDepots(ctx, s.sawDepots) })
	keep("warehouses", func(ctx context.Context) error { return store.FollowWarehouses(ctx, s.sawWarehouses) })
	keep("orders", func(ctx context.Context) error { return store.FollowOpenOrders(ctx, s.sawOrders) })
	keep("missions", func(ctx context.Context) error { return store.FollowActiveMissions(ctx, s.sawMissions) })
	keep("cycles", func(ctx context.Context) error { return store.FollowCycles(ctx, cyclesShown, s.sawCycles) })
	keep("decisions", s.followDecisions)
	keep("acknowledgements", func(ctx context.Context) error { return store.FollowAlertAcks(ctx, acksRead, s.sawAcks) })
	keep("events", s.followEvents)
	keep("drones", s.followDrones)
	keep("locks", s.followLocks)
	keep("positions", s.followPositions)
	all.Go(func() { s.readStale(ctx) })
	all.Go(func() { s.tick(ctx) })
	all.Wait()
}

// keep follows again after a failure.
func (s *session) keep(ctx context.Context, name string, follow func(context.Context) error) {
	restart.Until(ctx, func() {
		if err := follow(ctx); err != nil && ctx.Err() == nil {
			s.failed(name)
			s.cfg.Log.WarnContext(ctx, "live feed interrupted; retrying", slog.String("source", name), slog.Any("err", err))
		}
	})
}

func (s *session) failed(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing[source].IsZero() {
		s.failing[source] = time.Now()
	}
}

// answered notes that a source has answered; with mu held.
func (s *session) answered(source string, at time.Time) {
	delete(s.failing, source)
	if at.After(s.readTime) {
		s.readTime = at
	}
	if s.firstIn[source] {
		return
	}
	s.firstIn[source] = true
	for _, name := range sources {
		if !s.firstIn[name] {
			return
		}
	}
	select {
	case <-s.ready:
	default:
		close(s.ready)
	}
}

// delay is how long the session has been without an answer that it needs.
func (s *session) delay() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var longest time.Duration
	for _, since := range s.failing {
		longest = max(longest, time.Since(since))
	}
	return longest
}

// malformed logs documents that cannot be shown.
func (s *session) malformed(errs []error) {
	for _, err := range errs {
		s.cfg.Log.Warn("document left out of the live feed; correct it", slog.Any("err", err))
	}
}

func (s *session) sawDepots(sight firestoretx.Sight[domain.Depot]) {
	s.malformed(sight.Malformed)
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[domain.DepotID]bool{}
	for _, d := range sight.Now {
		seen[d.ID] = true
		s.state.Depots[d.ID] = d
		s.book.put(&Version{Key: Key{KindDepot, string(d.ID)}, form: entity.OfDepot(d), depot: d.ID, at: here(d.Position)})
	}
	for id := range s.state.Depots {
		if sight.Whole && !seen[id] || slices.Contains(sight.Gone, string(id)) {
			delete(s.state.Depots, id)
			s.book.remove(Key{KindDepot, string(id)}, time.Now())
		}
	}
	s.recountWaits()
	s.answered("depots", sight.ReadTime)
}

func (s *session) sawWarehouses(sight firestoretx.Sight[domain.Warehouse]) {
	s.malformed(sight.Malformed)
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[domain.WarehouseID]bool{}
	for _, w := range sight.Now {
		seen[w.ID] = true
		s.houses[w.ID] = w
		s.book.put(&Version{Key: Key{KindWarehouse, string(w.ID)}, form: entity.OfWarehouse(w), at: here(w.Position)})
	}
	for id := range s.houses {
		if sight.Whole && !seen[id] || slices.Contains(sight.Gone, string(id)) {
			delete(s.houses, id)
			s.book.remove(Key{KindWarehouse, string(id)}, time.Now())
		}
	}
	s.answered("warehouses", sight.ReadTime)
}

func here(p domain.Position) func() []domain.Position {
	return func() []domain.Position { return []domain.Position{p} }
}

func (s *session) sawOrders(sight firestoretx.Sight[domain.Order]) {
	s.malformed(sight.Malformed)
	s.mu.Lock()
	defer s.mu.Unlock()
	over := sawOpen(sight, s.state.Orders, func(o domain.Order) domain.OrderID { return o.ID }, s.putOrder, func(o domain.Order) bool { return !o.Status.Final() })
	s.answered("orders", sight.ReadTime)
	s.readAgain(KindOrder, over)
}

// sawOpen shows entities that are open. It returns the ids of those that no longer are,
// whose end is to be read.
func sawOpen[ID ~string, T any](sight firestoretx.Sight[T], known map[ID]T, id func(T) ID, put func(T), open func(T) bool) (over []string) {
	seen := map[ID]bool{}
	for _, v := range sight.Now {
		seen[id(v)] = true
		put(v)
	}
	if sight.Whole {
		for id, v := range known {
			if !seen[id] && open(v) {
				over = append(over, string(id))
			}
		}
	}
	return append(over, sight.Gone...)
}

// putOrder shows an order, unless a later state of it is shown; with mu held.
func (s *session) putOrder(o domain.Order) {
	if known, is := s.state.Orders[o.ID]; is && known.Revision > o.Revision {
		return
	}
	s.state.Orders[o.ID] = o
	s.showOrder(o)
}

func (s *session) showOrder(o domain.Order) {
	at := []domain.Position{o.Delivery}
	if o.Pickup != nil {
		at = append(at, *o.Pickup)
	}
	s.book.put(&Version{
		Key: Key{KindOrder, string(o.ID)}, form: entity.OfWaitingOrder(o, s.waits.Of(o)),
		depot: s.state.Drones[o.AssignedDroneID].HomeDepotID, at: func() []domain.Position { return at },
	})
}

func (s *session) sawMissions(sight firestoretx.Sight[domain.Mission]) {
	s.malformed(sight.Malformed)
	s.mu.Lock()
	defer s.mu.Unlock()
	over := sawOpen(sight, s.state.Missions, func(m domain.Mission) domain.MissionID { return m.ID }, s.putMission, func(m domain.Mission) bool { return m.Status == domain.MissionActive })
	s.answered("missions", sight.ReadTime)
	s.readAgain(KindMission, over)
}

func (s *session) putMission(m domain.Mission) {
	if known, is := s.state.Missions[m.ID]; is && known.Revision > m.Revision {
		return
	}
	s.state.Missions[m.ID] = m
	s.book.put(&Version{
		Key: Key{KindMission, string(m.ID)}, form: entity.OfMission(m), depot: s.state.Drones[m.DroneID].HomeDepotID,
		at: func() []domain.Position {
			at := make([]domain.Position, len(m.Route))
			for i, w := range m.Route {
				at[i] = w.Position
			}
			return at
		},
	})
}

// sawAcks notes acknowledgements. One that is no longer among the latest still counts.
func (s *session) sawAcks(sight firestoretx.Sight[domain.AlertAck]) {
	s.malformed(sight.Malformed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sight.Whole {
		clear(s.acks)
	}
	for _, a := range sight.Now {
		s.acks[a.ID] = &Acknowledgement{By: a.By, At: a.At.UTC(), Reason: a.Reason}
	}
	s.answered("acknowledgements", sight.ReadTime)
}

// recountWaits shows the orders that wait for another reason than before; with mu held.
func (s *session) recountWaits() {
	latest := map[domain.DepotID]domain.Cycle{}
	for _, c := range s.state.Cycles {
		complete := c.Outcome == domain.CyclePublished || c.Outcome == domain.CycleEmpty
		if complete && !c.StartedAt.Before(latest[c.DepotID].StartedAt) {
			latest[c.DepotID] = c
		}
	}
	before := s.waits
	s.waits = domain.WaitsOf(slices.Collect(maps.Keys(s.state.Depots)), latest)
	for _, o := range s.state.Orders {
		if o.Waits() && !slices.EqualFunc(before.Of(o), s.waits.Of(o), sameReason) {
			s.showOrder(o)
		}
	}
}

// sameReason reports whether two waits say the same, whichever cycles found it: each cycle
// would otherwise send every order that waits to every viewer again.
func sameReason(a, b domain.Wait) bool {
	return a.DepotID == b.DepotID && a.Reason == b.Reason && a.Obstacles == b.Obstacles
}

// followEvents has drones read again whose state changed.
func (s *session) followEvents(ctx context.Context) error {
	return forAWhile(ctx, func(ctx context.Context) error {
		return s.cfg.Store.FollowEvents(ctx, s.cfg.Now().Add(-eventsBefore), s.sawEvents)
	})
}

// forAWhile follows for eventsFor at most. Reaching that is not an error: the caller starts again.
func forAWhile(ctx context.Context, follow func(context.Context) error) error {
	limited, stop := context.WithTimeout(ctx, eventsFor)
	defer stop()
	if err := follow(limited); limited.Err() == nil {
		return err
	}
	return nil
}

func (s *session) sawEvents(sight firestoretx.Sight[domain.Event]) {
	var changed []string
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range sight.Now {
		if e.Entity == domain.EntityDrone && s.state.Drones[domain.DroneID(e.ID)].Revision < e.Revision {
			changed = append(changed, e.ID)
		}
		if e.Reason == string(policy.ReasonPickedUpAgain) {
			s.state.PickedUpAgain[domain.OrderID(e.ID)] = e.Time
		}
	}
	s.answered("events", sight.ReadTime)
	s.readAgain(KindDrone, changed)
}

// followDrones reads all drones at the start and now and then: often if their reports
// cannot be listened to.
func (s *session) followDrones(ctx context.Context) error {
	pause := dronesEvery
	for {
		l, err := s.cfg.Store.ListDrones(ctx, "", firestoretx.Page{})
		if err != nil {
			return err
		}
		s.malformed(l.Malformed)
		s.mu.Lock()
		for _, d := range l.Items {
			s.putDrone(d)
		}
		s.answered("drones", time.Time{})
		s.mu.Unlock()
		slow := max(withoutTap, time.Duration(len(l.Items))*time.Second/readsWithoutTap)
		if pause != dronesEvery {
			pause = slow
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case tapped := <-s.tap:
			if pause = dronesEvery; !tapped {
				pause = slow
			}
		case <-time.After(pause):
		}
	}
}

// putDrone shows a drone, unless a later state of it is shown; with mu held.
func (s *session) putDrone(d domain.Drone) {
	known, is := s.state.Drones[d.ID]
	if is && (known.Revision > d.Revision || known.LastUpdate.After(d.LastUpdate)) {
		return
	}
	if is && reflect.DeepEqual(known, d) {
		return
	}
	s.state.Drones[d.ID] = d
	if m := s.book.positions[d.ID]; m != nil && !m.position.MeasuredAt.After(d.LastUpdate) {
		s.book.unplace(d.ID)
	}
	s.book.put(&Version{Key: Key{KindDrone, string(d.ID)}, form: entity.OfDrone(d), depot: d.HomeDepotID, at: here(d.Position)})
}

// followPositions shows every report's position. Where it cannot, the drones are read
// often instead.
func (s *session) followPositions(ctx context.Context) error {
	err := pubsubio.Tap(ctx, s.cfg.PubSub, s.cfg.Meter, s.id, func() { s.tapped(ctx, true) }, s.sawReports)
	if _, is := errors.AsType[*pubsubio.TapError](err); is {
		s.cfg.Log.WarnContext(ctx, "live positions come from the drones' documents", slog.Any("err", err))
		s.tapped(ctx, false)
		<-ctx.Done()
	}
	return err
}

func (s *session) tapped(ctx context.Context, is bool) {
	select {
	case s.tap <- is:
	case <-ctx.Done():
	}
}

func (s *session) sawReports(reports []domain.Telemetry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.failing, "positions")
	for _, t := range reports {
		d, known := s.state.Drones[t.DroneID] // an unknown one's event comes with its first commit
		m := s.book.positions[t.DroneID]
		if known && t.Timestamp.After(d.LastUpdate) && (m == nil || t.Timestamp.After(m.position.MeasuredAt)) {
			s.book.moveTo(&Position{Drone: t.DroneID, At: t.Position, Battery: t.Battery, Status: t.Status, MeasuredAt: t.Timestamp})
		}
	}
}

// followLocks reads the locks every few seconds: each lease is renewed so often that a
// listener would read more.
func (s *session) followLocks(ctx context.Context) error {
	for {
		began := time.Now()
		locks, err := s.cfg.Locks.List(ctx)
		if err != nil {
			return err
		}
		s.sawLocks(locks)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(began.Add(locksEvery))):
		}
	}
}

func (s *session) sawLocks(locks []lock.RawInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := map[string]bool{}
	for _, l := range LocksOf(locks, slices.Collect(maps.Keys(s.state.Depots)), s.cfg.KnownKeys) {
		held[l.KeyHash] = true
		s.book.put(&Version{Key: Key{KindLock, l.KeyHash}, form: l, depot: l.DepotID})
	}
	for k, e := range s.book.entries {
		if k.Kind == KindLock && e.version != nil && !held[k.ID] {
			s.book.remove(k, time.Now())
		}
	}
	s.answered("locks", time.Time{})
}

// Lock is the JSON form of a lock: the key only if it is one of the fleet's own, which
// are not secret.
type Lock struct {
	Key     string         `json:"key,omitempty"`
	DepotID domain.DepotID `json:"depotId,omitempty"`
	lock.Info
}

// LocksOf shows locks: with their keys those of the depots' cycles and those in known.
func LocksOf(locks []lock.RawInfo, depots []domain.DepotID, known []string) []Lock {
	byKey := map[string]domain.DepotID{}
	for _, id := range depots {
		if key, err := lock.NormalizeKey(domain.CycleLockKey(id)); err == nil {
			byKey[key] = id
		}
	}
	shown := make([]Lock, len(locks))
	for i, l := range locks {
		depot, cycle := byKey[l.Key]
		shown[i] = Lock{Info: l.Info, DepotID: depot}
		if cycle || slices.Contains(known, l.Key) {
			shown[i].Key = l.Key
		}
	}
	return shown
}

// readAgain queues entities for a re-read; with mu held. It never waits: a listener must end
// although nobody reads any more.
func (s *session) readAgain(kind Kind, ids []string) {
	for _, id := range ids {
		s.stale[Key{kind, id}] = true
	}
	if len(ids) > 0 {
		select {
		case s.queued <- struct{}{}:
		default: // told already
		}
	}
}

// readStale reads the queued entities, many at a time, until ctx ends.
func (s *session) readStale(ctx context.Context) {
	pause := readAfter
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.queued:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = readAfter
		s.mu.Lock()
		want := s.stale
		s.stale = map[Key]bool{}
		s.mu.Unlock()
		err := s.readThese(ctx, want)
		if err == nil || ctx.Err() != nil {
			continue
		}
		s.failed("changes")
		s.cfg.Log.WarnContext(ctx, "live feed could not read what changed; retrying", slog.Any("err", err))
		pause = retryAfter
		s.mu.Lock()
		for k := range want {
			s.readAgain(k.Kind, []string{k.ID})
		}
		s.mu.Unlock()
	}
}

// readThese reads what is wanted and takes it off the list.
func (s *session) readThese(ctx context.Context, want map[Key]bool) error {
	byKind := make(map[Kind][]string)
	for k := range want {
		byKind[k.Kind] = append(byKind[k.Kind], k.ID)
	}
	for kind, ids := range byKind {
		for some := range slices.Chunk(ids, readAtOnce) {
			if err := s.read(ctx, kind, some); err != nil {
				return err
			}
			for _, id := range some {
				delete(want, Key{kind, id})
			}
		}
	}
	s.mu.Lock()
	delete(s.failing, "changes")
	s.mu.Unlock()
	return nil
}

// read reads entities and shows them; those that do not exist are removed, unless one is
// malformed: then it is not known which.
func (s *session) read(ctx context.Context, kind Kind, ids []string) (err error) {
	found := map[string]bool{}
	var show []func()
	switch kind {
	case KindDrone:
		err = readInto(ctx, s.cfg.Store.DronesOf, ids, func(d domain.Drone) { found[string(d.ID)] = true; show = append(show, func() { s.putDrone(d) }) })
	case KindOrder:
		err = readInto(ctx, s.cfg.Store.OrdersOf, ids, func(o domain.Order) { found[string(o.ID)] = true; show = append(show, func() { s.putOrder(o) }) })
	case KindMission:
		err = readInto(ctx, s.cfg.Store.MissionsOf, ids, func(m domain.Mission) { found[string(m.ID)] = true; show = append(show, func() { s.putMission(m) }) })
	case KindCycle, KindDepot, KindWarehouse, KindLock, KindAlert: // followed whole
	}
	malformed, is := errors.AsType[*firestoretx.MalformedError](err)
	if err != nil && !is {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range show {
		f()
	}
	if is {
		s.malformed([]error{malformed})
		return nil // shown as it was
	}
	for _, id := range ids {
		if !found[id] {
			s.drop(Key{kind, id})
		}
	}
	return nil
}

func readInto[ID ~string, T any](ctx context.Context, read func(context.Context, []ID) ([]T, error), ids []string, each func(T)) error {
	typed := make([]ID, len(ids))
	for i, id := range ids {
		typed[i] = ID(id)
	}
	list, err := read(ctx, typed)
	for _, v := range list {
		each(v)
	}
	return err
}

// drop removes a drone, order or mission; with mu held.
func (s *session) drop(k Key) {
	delete(s.state.Drones, domain.DroneID(ifKind(k, KindDrone)))
	delete(s.state.Orders, domain.OrderID(ifKind(k, KindOrder)))
	delete(s.state.Missions, domain.MissionID(ifKind(k, KindMission)))
	s.book.remove(k, time.Now())
}

func ifKind(k Key, kind Kind) string {
	if k.Kind == kind {
		return k.ID
	}
	return ""
}

// tick derives the alerts and drops what is long over, every second.
func (s *session) tick(ctx context.Context) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := s.cfg.Now()
		process := s.cfg.Process()
		s.mu.Lock()
		s.state.Process = process
		s.dropEnded(now)
		s.ledger.forget(now.Add(-decisionsBefore), s.state.Cycles)
		s.showAlerts(now)
		s.book.forget(time.Now())
		s.mu.Unlock()
	}
}

// dropEnded drops what has been over for long; with mu held.
func (s *session) dropEnded(now time.Time) {
	for id, o := range s.state.Orders {
		if o.Status.Final() && now.Sub(latest(o.DeliveredAt, o.CreatedAt)) > keepEnded {
			s.drop(Key{KindOrder, string(id)})
		}
	}
	for id, m := range s.state.Missions {
		if m.Status != domain.MissionActive && now.Sub(latest(m.EndTime, m.StartTime)) > keepEnded {
			s.drop(Key{KindMission, string(id)})
		}
	}
	for id, at := range s.state.PickedUpAgain {
		if now.Sub(at) > keepEnded {
			delete(s.state.PickedUpAgain, id)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// AlertForm is the JSON form of an alert.
type AlertForm struct {
	ID           string           `json:"id"`
	Kind         AlertKind        `json:"kind"`
	Entity       Key              `json:"entity"`
	Since        time.Time        `json:"since"`
	Text         string           `json:"text"`
	Acknowledged *Acknowledgement `json:"acknowledged"`
}

// Acknowledgement says who has taken note of an alert.
type Acknowledgement struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
}

// showAlerts shows the alerts that begin or change, and removes those that are over;
// with mu held.
func (s *session) showAlerts(now time.Time) {
	current := map[string]bool{}
	for _, a := range Alerts(&s.state, now, s.cfg.DepotPatience) {
		id := a.ID()
		current[id] = true
		if a.Since.IsZero() {
			if a.Since = s.alerts[id]; a.Since.IsZero() {
				a.Since = now
			}
		}
		s.alerts[id] = a.Since
		form := AlertForm{ID: id, Kind: a.Kind, Entity: a.About, Since: a.Since.UTC(), Text: a.Text, Acknowledged: s.acks[id]}
		k := Key{KindAlert, id}
		if e := s.book.entries[k]; e != nil && e.version != nil && e.version.alert == form {
			continue
		}
		s.book.put(&Version{Key: k, form: form, alert: form, depot: s.depotOf(a.About)})
	}
	for id := range s.alerts {
		if !current[id] {
			delete(s.alerts, id)
			s.book.remove(Key{KindAlert, id}, time.Now())
		}
	}
}

// depotOf is the depot that an entity belongs to; "" for all.
func (s *session) depotOf(k Key) domain.DepotID {
	if e := s.book.entries[k]; e != nil && e.version != nil {
		return e.version.depot
	}
	return ""
}
