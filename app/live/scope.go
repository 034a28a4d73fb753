package live

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// reachKm is how far from its depot a drone is expected at most: a viewer who looks at a place sees
// the areas of all depots that near.
const reachKm = 30

// scope is what a session follows for some of its viewers: the depots of one planning area with their
// drones, orders, missions and cycles, or the whole fleet.
type scope struct {
	*session
	depots []domain.DepotID // none: the whole fleet
	cancel context.CancelFunc

	// Of what follows, the session's mu must be held.
	sources sources
	unused  time.Time // since when no viewer sees it; zero while one does

	tap chan bool // whether reports can be listened to
}

func newScope(s *session, depots []domain.DepotID) *scope {
	return &scope{session: s, depots: depots, sources: newSources(neededOfScope), tap: make(chan bool, 1)}
}

// has reports whether something belongs to the scope; depot is its home, or the depot that plans it.
func (sc *scope) has(depot domain.DepotID) bool {
	return len(sc.depots) == 0 || slices.Contains(sc.depots, depot)
}

// run follows the scope until ctx ends; with the session's mu held.
//
// Events, decisions and reports do not say to which depot they belong. So a scope of an area listens
// to the documents of its drones, which say the same some seconds later, and reads the decisions of
// its cycles.
func (sc *scope) run(ctx context.Context) {
	keep := func(name string, follow func(context.Context) error) {
		sc.all.Go(func() { sc.keep(ctx, &sc.sources, name, follow) })
	}
	store := sc.cfg.Store
	keep("orders", func(ctx context.Context) error { return store.FollowOpenOrders(ctx, sc.depots, sc.sawOrders) })
	keep("missions", func(ctx context.Context) error { return store.FollowActiveMissions(ctx, sc.depots, sc.sawMissions) })
	keep("cycles", func(ctx context.Context) error { return store.FollowCycles(ctx, sc.depots, cyclesShown, sc.sawCycles) })
	if len(sc.depots) > 0 {
		keep("drones", func(ctx context.Context) error { return store.FollowDrones(ctx, sc.depots, sc.sawDrones) })
		keep("decisions", sc.readDecisions)
		return
	}
	keep("decisions", sc.followDecisions)
	keep("events", sc.followEvents)
	keep("drones", sc.followDrones)
	keep("positions", sc.followPositions)
}

// join adds a viewer.
func (s *session) join(v *Viewer) *Viewer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewers[v] = true
	s.rescope()
	return v
}

// part takes a viewer off.
func (s *session) part(v *Viewer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.viewers, v)
	s.rescope()
}

// rescope begins the scopes that viewers want, and notes which ones nobody sees; mu must be held.
// While one viewer sees the whole fleet, its scope serves all.
func (s *session) rescope() {
	if s.closed {
		return
	}
	wanted, whole := map[*Viewer][]domain.Area{}, false
	for v := range s.viewers {
		if areas, all, known := s.areasOf(v.filter); known {
			wanted[v] = areas
			whole = whole || all
		}
	}
	used := map[*scope]bool{}
	for v, areas := range wanted {
		within, scopes := withinOf(areas), []*scope(nil)
		if whole {
			scopes = append(scopes, s.scopeOf(nil))
		}
		for _, a := range areas {
			for depots := range slices.Chunk(a.DepotIDs(), firestoretx.DepotsFollowed) {
				if !whole {
					scopes = append(scopes, s.scopeOf(depots))
				}
			}
		}
		v.see(scopes, within)
		for _, sc := range scopes {
			used[sc] = true
		}
	}
	for _, sc := range s.scopes {
		switch {
		case used[sc]:
			sc.unused = time.Time{}
		case sc.unused.IsZero():
			sc.unused = time.Now()
		}
	}
}

// areasOf are the areas that a viewer sees, nil for the whole fleet. They are not known before the
// depots are.
func (s *session) areasOf(f Filter) (areas []domain.Area, whole, known bool) {
	if f.Near == nil && f.Area == nil && f.Depot == "" && len(f.Areas) == 0 {
		return nil, true, true
	}
	if !s.sources.known["depots"] {
		return nil, false, false
	}
	areas = []domain.Area{}
	for _, a := range s.areas {
		if f.looksAt(a, s.large) {
			areas = append(areas, a)
		}
	}
	if len(areas) == len(s.areas) {
		return nil, true, true
	}
	return areas, false, true
}

// divide finds the areas after the depots have changed; mu must be held.
func (s *session) divide() {
	depots := slices.Collect(maps.Values(s.picture.state.Depots))
	drones := 0
	for _, d := range depots {
		drones += d.Drones
	}
	s.areas, s.large = policy.AreasOf(depots, s.cfg.AreaRadius), drones >= s.cfg.ByAreasFrom
	s.rescope()
}

// looksAt reports whether a viewer sees an area. Where somebody looks counts in a large fleet only:
// to follow all of a small one is cheap.
func (f Filter) looksAt(a domain.Area, large bool) bool {
	at := f.Area
	if at == nil {
		at = f.Near
	}
	switch {
	case len(f.Areas) > 0:
		return slices.ContainsFunc(f.Areas, a.Has)
	case !large:
		return true
	case f.Depot != "" && !a.Has(f.Depot):
		return false
	}
	return at == nil || slices.ContainsFunc(a.Depots, func(d domain.Depot) bool { return at.around(reachKm).contains(d.Position) })
}

// around is the area with all that is so near to it, as far as the meridian of 180 degrees.
func (a Area) around(km float64) Area {
	const kmPerDegree = 111.2
	lat := km / kmPerDegree
	farthest := min(85, max(math.Abs(a.Min.Lat), math.Abs(a.Max.Lat)))
	lon := lat / math.Cos(farthest*math.Pi/180)
	return Area{Min: domain.Position{Lat: a.Min.Lat - lat, Lon: a.Min.Lon - lon}, Max: domain.Position{Lat: a.Max.Lat + lat, Lon: a.Max.Lon + lon}}
}

// withinOf are the depots of areas, nil for the whole fleet.
func withinOf(areas []domain.Area) map[domain.DepotID]bool {
	if areas == nil {
		return nil
	}
	within := map[domain.DepotID]bool{}
	for _, a := range areas {
		for _, id := range a.DepotIDs() {
			within[id] = true
		}
	}
	return within
}

// tagOf names what a viewer sees of a session, for the ids of its updates.
func (s *session) tagOf(within map[domain.DepotID]bool) string {
	if within == nil {
		return s.id
	}
	h := fnv.New64a()
	for _, id := range slices.Sorted(maps.Keys(within)) {
		fmt.Fprintln(h, id)
	}
	return fmt.Sprintf("%s.%x", s.id, h.Sum64())
}

// scopeOf is the scope of depots; it begins one if there is none.
func (s *session) scopeOf(depots []domain.DepotID) *scope {
	var key strings.Builder
	for _, id := range depots {
		fmt.Fprintln(&key, id)
	}
	if sc := s.scopes[key.String()]; sc != nil {
		return sc
	}
	sc := newScope(s, depots)
	s.scopes[key.String()] = sc
	var ctx context.Context
	ctx, sc.cancel = context.WithCancel(s.ctx)
	sc.run(ctx)
	return sc
}

// endUnused ends the scopes that nobody has seen for long; mu must be held.
func (s *session) endUnused() {
	ended := false
	for key, sc := range s.scopes {
		if !sc.unused.IsZero() && time.Since(sc.unused) >= s.cfg.Grace {
			sc.cancel()
			sc.sources.over, ended = true, true
			delete(s.scopes, key)
		}
	}
	if ended {
		s.dropUnfollowed()
	}
}

// follows reports whether a scope has what belongs to a depot.
func (s *session) follows(depot domain.DepotID) bool {
	for _, sc := range s.scopes {
		if sc.has(depot) {
			return true
		}
	}
	return false
}

// followsWhole reports whether a scope is the whole fleet.
func (s *session) followsWhole() bool { return s.follows("") }

// dropUnfollowed drops what is in no scope any longer.
func (s *session) dropUnfollowed() {
	if s.followsWhole() {
		return
	}
	var gone []Key
	for k, e := range s.picture.book.entries {
		switch k.Kind {
		case KindDrone, KindOrder, KindMission, KindCycle:
			if e.version != nil && !s.follows(e.version.area()) {
				gone = append(gone, k)
			}
		case KindDepot, KindWarehouse, KindLock, KindAlert, KindRefusal: // followed whole
		}
	}
	for _, k := range gone {
		s.picture.drop(k)
	}
}

// foretell shows where drones are whose reports are not listened to.
func (s *session) foretell(now time.Time) {
	if s.followsWhole() {
		return
	}
	for id, d := range s.picture.state.Drones {
		if !d.Foretells() || d.Motion.North == 0 && d.Motion.East == 0 {
			continue
		}
		at, last := d.WhereaboutsAt(now).Position, d.Position
		if m := s.picture.book.positions[id]; m != nil {
			last = m.position.At
		}
		if at != last {
			s.picture.book.moveTo(&Position{Drone: id, At: at, Battery: d.Battery, Status: d.ReportedStatus, MeasuredAt: d.LastUpdate, foretold: true})
		}
	}
}

// readDecisions shows what came of the decisions of the scope's cycles. It reads those of a recent
// cycle until all are judged, ever more rarely.
func (sc *scope) readDecisions(ctx context.Context) error {
	for reads := map[domain.CycleID]int{}; ; {
		ids, known := sc.unjudged(reads)
		for _, id := range ids {
			l, err := sc.cfg.Store.ListLedger(ctx, firestoretx.LedgerFilter{Cycle: id}, firestoretx.Page{})
			if err != nil {
				return err
			}
			sc.sawDecisions(firestoretx.Sight[domain.LedgerEntry]{Now: l.Items, Malformed: l.Malformed})
			reads[id]++
		}
		if known && len(ids) == 0 {
			sc.sawDecisions(firestoretx.Sight[domain.LedgerEntry]{})
		}
		pause := decisionsEvery
		if !known {
			pause = readAfter
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// unjudged are the recent cycles of the scope some of whose decisions are not known to be judged, and
// that are to be read again. It is not known before the cycles are.
func (sc *scope) unjudged(reads map[domain.CycleID]int) (ids []domain.CycleID, known bool) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	now, p := sc.cfg.Now(), &sc.picture
	for id, c := range p.state.Cycles {
		age := now.Sub(latest(c.EndedAt, c.StartedAt))
		if !sc.has(c.DepotID) || age > decisionsBefore {
			delete(reads, id)
			continue
		}
		published := c.Missions + c.Amended + c.Standby
		if n := reads[id]; len(p.ledger[id]) < published && (n == 0 || age > decisionsEvery<<n) {
			ids = append(ids, id)
		}
	}
	return ids, sc.sources.known["cycles"]
}
