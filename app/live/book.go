package live

import (
	"cmp"
	"container/list"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/domain"
)

// Kind is a kind of entity that viewers see.
type Kind string

const (
	KindDrone     Kind = "drone"
	KindOrder     Kind = "order"
	KindMission   Kind = "mission"
	KindCycle     Kind = "cycle"
	KindDepot     Kind = "depot"
	KindWarehouse Kind = "warehouse"
	KindLock      Kind = "lock"
	KindAlert     Kind = "alert"
	KindRefusal   Kind = "refusal" // of an order, on its way
)

// Kinds lists every kind.
var Kinds = []Kind{KindDepot, KindWarehouse, KindDrone, KindMission, KindOrder, KindCycle, KindLock, KindAlert, KindRefusal}

// Key names an entity.
type Key struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"id"`
}

// Version is an entity at one moment. It does not change, so viewers share its JSON form.
type Version struct {
	Key
	form   any                      // what is encoded
	depot  domain.DepotID           // it belongs to; "" for all
	depots []domain.DepotID         // it belongs to as well
	plans  domain.DepotID           // it, if that is not depot: of an order
	at     func() []domain.Position // where it is; nil for nowhere in particular
	alert  entity.Alert             // what an alert's version shows
	// requester is whose order it is, or whose order was refused; "" for what is nobody's.
	requester string

	encode sync.Once
	json   []byte
	err    error
}

// area is a depot of the area that an entity belongs to; "" for none.
func (v *Version) area() domain.DepotID { return cmp.Or(v.plans, v.depot) }

// isWithin reports whether somebody sees the version who sees the areas of some depots. All see the
// places, and what belongs to no depot.
func (v *Version) isWithin(depots map[domain.DepotID]bool) bool {
	switch v.Kind {
	case KindDepot, KindWarehouse, KindRefusal:
		return true
	case KindDrone, KindOrder, KindMission:
		return depots[v.area()]
	case KindCycle, KindLock, KindAlert:
	}
	return v.area() == "" || depots[v.area()] || slices.ContainsFunc(v.depots, func(id domain.DepotID) bool { return depots[id] })
}

// JSON is the entity's JSON form, encoded once.
func (v *Version) JSON() ([]byte, error) {
	v.encode.Do(func() { v.json, v.err = json.Marshal(v.form); v.form = nil })
	return v.json, v.err
}

// Position is where a drone is, as a report says or as it was foretold from one. It does not change, so viewers
// share its JSON form.
type Position struct {
	Drone      domain.DroneID
	At         domain.Position
	Battery    float64
	Status     domain.DroneStatus // as reported
	MeasuredAt time.Time
	foretold   bool // from the report of MeasuredAt

	encode sync.Once
	json   []byte
}

// JSON is the position as a row; see entity.PositionRow.
func (p *Position) JSON() []byte {
	p.encode.Do(func() { p.json = entity.PositionRow(p.Drone, p.At, p.Battery, p.Status, p.MeasuredAt) })
	return p.json
}

// entry is an entity's place in the book.
type entry struct {
	key     Key
	seq     int64    // of its last change
	version *Version // nil: removed
	element *list.Element
}

// move is a drone's newest position.
type move struct {
	seq      int64
	position *Position
	element  *list.Element
}

// Limits of what a book keeps of removed entities.
const (
	removalsKept    = 10_000
	removalsKeptFor = 10 * time.Minute
)

type removal struct {
	key Key
	seq int64
	at  time.Time
}

// book is the newest version of every entity, in the order of their changes. It is not
// safe for concurrent use.
type book struct {
	seq       int64 // of the last change
	entries   map[Key]*entry
	changes   *list.List // of *entry, the latest change last
	positions map[domain.DroneID]*move
	moves     *list.List // of *move, likewise
	removals  []removal  // oldest first
	forgotten int64      // removals up to this change are forgotten
}

func newBook() *book {
	return &book{entries: map[Key]*entry{}, changes: list.New(), positions: map[domain.DroneID]*move{}, moves: list.New()}
}

// put notes a new version of an entity.
func (b *book) put(v *Version) { b.change(v.Key, v) }

// remove notes that an entity is gone.
func (b *book) remove(k Key, now time.Time) {
	e := b.entries[k]
	if e == nil || e.version == nil {
		return
	}
	b.change(k, nil)
	b.removals = append(b.removals, removal{k, b.seq, now})
	if k.Kind == KindDrone {
		b.dropMove(domain.DroneID(k.ID))
	}
}

// dropMove drops a drone's position.
func (b *book) dropMove(id domain.DroneID) {
	if m := b.positions[id]; m != nil {
		b.moves.Remove(m.element)
		delete(b.positions, id)
	}
}

func (b *book) change(k Key, v *Version) {
	b.seq++
	e := b.entries[k]
	if e == nil {
		e = &entry{key: k}
		e.element = b.changes.PushBack(e)
		b.entries[k] = e
	}
	e.seq, e.version = b.seq, v
	b.changes.MoveToBack(e.element)
}

// moveTo notes a drone's new position.
func (b *book) moveTo(p *Position) {
	b.seq++
	m := b.positions[p.Drone]
	if m == nil {
		m = &move{}
		m.element = b.moves.PushBack(m)
		b.positions[p.Drone] = m
	}
	m.seq, m.position = b.seq, p
	b.moves.MoveToBack(m.element)
}

// forget drops removals that are old, or more than are kept.
func (b *book) forget(now time.Time) {
	n := max(0, len(b.removals)-removalsKept)
	for n < len(b.removals) && now.Sub(b.removals[n].at) > removalsKeptFor {
		n++
	}
	if n == 0 {
		return
	}
	for _, r := range b.removals[:n] {
		b.forgotten = r.seq
		if e := b.entries[r.key]; e != nil && e.version == nil && e.seq == r.seq {
			b.changes.Remove(e.element)
			delete(b.entries, r.key)
		}
	}
	b.removals = append([]removal(nil), b.removals[n:]...)
}

// since calls changed for each entity that changed after seq, and moved for each drone
// that moved after seq; the latest first.
func (b *book) since(seq int64, changed func(*entry), moved func(*Position)) {
	for el := b.changes.Back(); el != nil && el.Value.(*entry).seq > seq; el = el.Prev() {
		changed(el.Value.(*entry))
	}
	for el := b.moves.Back(); el != nil && el.Value.(*move).seq > seq; el = el.Prev() {
		moved(el.Value.(*move).position)
	}
}
