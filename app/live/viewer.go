package live

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Viewer is one who looks. It is not safe for concurrent use.
type Viewer struct {
	session *session
	filter  Filter
	after   string // the update that it has seen before it joined
	// scopes hold what it sees: all of the fleet if within is nil, else the areas of these depots.
	// They are known once sees is true.
	scopes []*scope
	within map[domain.DepotID]bool
	sees   bool
	moved  bool  // since its last snapshot it sees other areas
	seq    int64 // the last change that it was told
	fresh  bool  // it needs a snapshot
	// shown are the entities that it has, if what it sees depends on where they are.
	shown map[Key]bool
	// held has the drones out of Filter.Near that have moved since the viewer was told where they are; turns
	// has them by the update that tells it.
	held    map[domain.DroneID]bool
	turns   [nearTurns][]domain.DroneID
	turn    int
	resumed bool // what it was told of drones out of Filter.Near is not known
	left    bool
}

// nearTurns is after how many updates a viewer is told of a move out of its Filter.Near. The stream has four updates a second.
const nearTurns = 24

// Update is what changed for a viewer.
type Update struct {
	// Snapshot says that Upserts is all there is.
	Snapshot bool
	// Within has the depots whose areas a snapshot is of; nil for the whole fleet.
	Within []domain.DepotID
	// Resync says why a snapshot follows, if the viewer did not ask for one.
	Resync string
	// ID names the update, for Join.
	ID        string
	ReadTime  time.Time // the store's, of the latest answer
	Upserts   []*Version
	Deletes   []Key
	Positions []*Position // newer than the drones in Upserts
}

// Empty reports whether nothing changed.
func (u Update) Empty() bool {
	return !u.Snapshot && len(u.Upserts)+len(u.Deletes)+len(u.Positions) == 0
}

func newViewer(s *session, filter Filter, after string) *Viewer {
	return &Viewer{session: s, filter: filter, after: after, fresh: true, held: map[domain.DroneID]bool{}}
}

// see sets what the viewer sees.
func (v *Viewer) see(scopes []*scope, within map[domain.DepotID]bool) {
	v.scopes = scopes
	switch {
	case !v.sees:
		v.within, v.sees = within, true
		v.resume()
	case (v.within == nil) != (within == nil) || !maps.Equal(v.within, within):
		v.within, v.fresh, v.moved = within, true, true
	}
}

// resume has the viewer go on after the update that it has seen, if that was one of the same areas.
func (v *Viewer) resume() {
	id, text, _ := cutLast(v.after, "-")
	seq, err := strconv.ParseInt(text, 10, 64)
	// What a viewer with a moving view had before is not known.
	if err != nil || id != v.session.tagOf(v.within) || v.filter.moves() {
		return
	}
	v.seq, v.fresh, v.resumed = seq, false, true
	if v.within == nil {
		return
	}
	v.shown = map[Key]bool{}
	for k := range v.session.picture.book.entries {
		v.shown[k] = true // perhaps: to be told twice that it is gone does no harm
	}
}

// passes reports whether the viewer sees a version. at, if given, is its newest position.
func (v *Viewer) passes(of *Version, at *domain.Position) bool {
	if v.within != nil && !of.isWithin(v.within) {
		return false
	}
	return v.filter.passes(of, at)
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// Leave takes the viewer off the feed. It may be called again.
func (v *Viewer) Leave() {
	if !v.left {
		v.left = true
		v.session.part(v)
		v.session.leave()
	}
}

// Ended is closed when the feed has ended.
func (v *Viewer) Ended() <-chan struct{} { return v.session.ended }

// Delay is how long the feed has been without an answer that it needs.
func (v *Viewer) Delay() time.Duration {
	v.session.mu.Lock()
	defer v.session.mu.Unlock()
	longest := v.session.sources.delay()
	for _, sc := range v.scopes {
		longest = max(longest, sc.sources.delay())
	}
	return longest
}

// ready reports whether all is known that the viewer sees, and the store's time of the latest answer.
func (v *Viewer) ready() (at time.Time, ready bool) {
	at, ready = v.session.sources.readTime, v.sees && v.session.sources.ready
	for _, sc := range v.scopes {
		at, ready = latest(at, sc.sources.readTime), ready && sc.sources.ready
	}
	return at, ready
}

// Next is what changed since the viewer last asked: nothing until all is known that it sees.
func (v *Viewer) Next() Update {
	s := v.session
	s.mu.Lock()
	defer s.mu.Unlock()
	var u Update
	readTime, ready := v.ready()
	switch {
	case !ready:
		return u
	case v.moved:
		u.Snapshot, u.Resync = true, "the planning areas that are followed have changed"
	case v.fresh:
		u.Snapshot = true
	case v.seq < s.picture.book.forgotten:
		u.Snapshot, u.Resync = true, "removals since the last update are no longer known"
	case v.seq > s.picture.book.seq:
		u.Snapshot, u.Resync = true, "the last update is not known"
	}
	if u.Snapshot {
		v.seq, v.fresh, v.moved, v.shown = 0, false, false, nil
		if v.filter.moves() || v.within != nil {
			v.shown = map[Key]bool{}
		}
		if v.within != nil {
			u.Within = append([]domain.DepotID{}, slices.Sorted(maps.Keys(v.within))...)
		}
	}
	due := v.nextTurn(u.Snapshot)
	told := map[domain.DroneID]bool{} // drones whose position is in u
	s.picture.book.since(v.seq, func(e *entry) {
		v.tell(&u, e, told)
	}, func(p *Position) {
		v.tellMove(&u, p, told, false)
	})
	for _, id := range due {
		if m := s.picture.book.positions[id]; m != nil {
			v.tellMove(&u, m.position, told, true)
		}
	}
	v.seq = s.picture.book.seq
	u.ID, u.ReadTime = fmt.Sprintf("%s-%d", s.tagOf(v.within), v.seq), readTime
	return u
}

// nextTurn returns the drones that the viewer is to be told of now, whether or not they are near.
func (v *Viewer) nextTurn(snapshot bool) (due []domain.DroneID) {
	switch {
	case snapshot: // it has all positions
		clear(v.held)
		clear(v.turns[:])
	case v.resumed && v.filter.Near != nil:
		for id := range v.session.picture.book.positions {
			v.hold(id)
			v.turn = (v.turn + 1) % nearTurns
		}
	}
	v.resumed = false
	v.turn = (v.turn + 1) % nearTurns
	due, v.turns[v.turn] = v.turns[v.turn], nil
	for _, id := range due {
		delete(v.held, id)
	}
	return due
}

// hold has the viewer told of a drone's position in nearTurns updates.
func (v *Viewer) hold(id domain.DroneID) {
	if !v.held[id] {
		v.held[id] = true
		v.turns[v.turn] = append(v.turns[v.turn], id)
	}
}

// tell adds a changed entity to u, or hides it if the viewer must no longer see it. A drone comes
// with its newest position, which may be newer than its document, and is then marked in told.
func (v *Viewer) tell(u *Update, e *entry, told map[domain.DroneID]bool) {
	var at *domain.Position
	var m *move
	if e.key.Kind == KindDrone {
		if m = v.session.picture.book.positions[domain.DroneID(e.key.ID)]; m != nil {
			at = &m.position.At
		}
	}
	if e.version == nil || !v.passes(e.version, at) {
		v.hide(u, e.key, e.version == nil)
		return
	}
	u.Upserts = append(u.Upserts, e.version)
	if v.shown != nil {
		v.shown[e.key] = true
	}
	if m != nil {
		told[m.position.Drone] = true
		u.Positions = append(u.Positions, m.position)
	}
}

// hide tells of an entity that is gone or out of view, if the viewer may have it.
func (v *Viewer) hide(u *Update, k Key, gone bool) {
	switch {
	case u.Snapshot:
	case v.shown != nil && !v.shown[k]:
	case v.shown != nil:
		delete(v.shown, k)
		u.Deletes = append(u.Deletes, k)
	case gone && (len(v.filter.Kinds) == 0 || v.filter.Kinds[k.Kind]):
		u.Deletes = append(u.Deletes, k)
	}
}

// tellMove adds a drone's position, and the drone if it comes into view. A position that is not near waits, unless it is due.
func (v *Viewer) tellMove(u *Update, p *Position, told map[domain.DroneID]bool, due bool) {
	k := Key{KindDrone, string(p.Drone)}
	e := v.session.picture.book.entries[k]
	if told[p.Drone] || e == nil || e.version == nil {
		return
	}
	if !v.passes(e.version, &p.At) {
		v.hide(u, k, false)
		return
	}
	if v.shown != nil && !v.shown[k] {
		v.shown[k] = true
		u.Upserts = append(u.Upserts, e.version)
	} else if near := v.filter.Near; !due && near != nil && !near.contains(p.At) {
		v.hold(p.Drone)
		return
	}
	told[p.Drone] = true
	u.Positions = append(u.Positions, p)
}
