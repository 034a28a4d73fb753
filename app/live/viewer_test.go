package live

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// world is a session's book, changed at random, and what it should show.
type world struct {
	*session
	rng  *rand.Rand
	now  time.Time
	want map[Key]string                     // entities
	at   map[domain.DroneID]domain.Position // positions
	n    int
}

func newWorld(seed uint64) *world {
	return &world{
		session: &session{id: "feed", picture: picture{book: newBook()}, sources: sources{ready: true}}, rng: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(0, 0),
		want: map[Key]string{}, at: map[domain.DroneID]domain.Position{},
	}
}

// looking is a viewer of all that a session has.
func looking(s *session, filter Filter, after string) *Viewer {
	v := newViewer(s, filter, after)
	v.see(nil, nil)
	return v
}

func (w *world) somewhere() domain.Position { return domain.Position{Lat: w.rng.Float64()} }

// step changes, moves or removes an entity, or lets time pass so that removals are
// forgotten.
func (w *world) step() {
	kinds := []Kind{KindDrone, KindOrder, KindAlert}
	k := Key{kinds[w.rng.IntN(3)], fmt.Sprint(w.rng.IntN(6))}
	w.n++
	switch w.rng.IntN(20) {
	case 0, 1, 2:
		w.picture.book.remove(k, w.now)
		delete(w.want, k)
		if k.Kind == KindDrone {
			delete(w.at, domain.DroneID(k.ID))
		}
	case 3:
		w.now = w.now.Add(removalsKeptFor / 2)
		w.picture.book.forget(w.now)
	case 4, 5, 6, 7, 8, 9:
		if id := domain.DroneID(k.ID); w.want[Key{KindDrone, k.ID}] != "" {
			w.at[id] = w.somewhere()
			w.picture.book.moveTo(&Position{Drone: id, At: w.at[id]})
		}
	default:
		v := &Version{Key: k, form: w.n, depot: domain.DepotID(fmt.Sprint("DEPOT-", w.rng.IntN(2)))}
		if k.Kind != KindAlert {
			p := w.somewhere()
			v.at = here(p)
			if k.Kind == KindDrone { // its document is newer than its position
				w.picture.book.dropMove(domain.DroneID(k.ID))
				w.at[domain.DroneID(k.ID)] = p
			}
		}
		w.picture.book.put(v)
		w.want[k] = fmt.Sprint(w.n)
	}
}

// screen is what a viewer makes of its updates.
type screen struct {
	viewer *Viewer
	filter Filter
	has    map[Key]string
	at     map[domain.DroneID]domain.Position
	last   string
}

func (s *screen) look(t *testing.T) {
	t.Helper()
	u := s.viewer.Next()
	if u.Snapshot {
		clear(s.has)
		clear(s.at)
	}
	for _, v := range u.Upserts {
		data, err := v.JSON()
		if err != nil {
			t.Fatal(err)
		}
		s.has[v.Key] = string(data)
		if v.Kind == KindDrone {
			s.at[domain.DroneID(v.ID)] = v.at()[0]
		}
	}
	for _, k := range u.Deletes {
		delete(s.has, k)
		if k.Kind == KindDrone {
			delete(s.at, domain.DroneID(k.ID))
		}
	}
	for _, p := range u.Positions {
		s.at[p.Drone] = p.At
	}
	s.last = u.ID
}

// visible is what a filter leaves of the world.
func (w *world) visible(f Filter) (map[Key]string, map[domain.DroneID]domain.Position) {
	has, at := map[Key]string{}, map[domain.DroneID]domain.Position{}
	for k, text := range w.want {
		var p *domain.Position
		if position, is := w.at[domain.DroneID(k.ID)]; is && k.Kind == KindDrone {
			p = &position
		}
		if f.passes(w.picture.book.entries[k].version, p) {
			has[k] = text
			if p != nil {
				at[domain.DroneID(k.ID)] = *p
			}
		}
	}
	return has, at
}

// only is a filter for some kinds.
func only(kinds ...Kind) map[Kind]bool {
	wanted := make(map[Kind]bool, len(kinds))
	for _, k := range kinds {
		wanted[k] = true
	}
	return wanted
}

// F-LIVE-01: a viewer that follows a snapshot and the changes after it ends with the fleet's
// state, whatever its filter, however slow it is and however often it reconnects.
func TestViewer_HasTheStateInTheEnd(t *testing.T) {
	filters := []Filter{
		{}, {Kinds: only(KindDrone, KindAlert)}, {Depot: "DEPOT-1"},
		{Area: &Area{Min: domain.Position{}, Max: domain.Position{Lat: 0.4}}},
		{Near: &Area{Min: domain.Position{}, Max: domain.Position{Lat: 0.4}}},
		{Area: &Area{Min: domain.Position{}, Max: domain.Position{Lat: 0.8}}, Near: &Area{Min: domain.Position{Lat: 0.6}, Max: domain.Position{Lat: 0.9}}},
		{Kinds: only(KindDrone), Depot: "DEPOT-0", Area: &Area{Min: domain.Position{Lat: 0.3}, Max: domain.Position{Lat: 0.9}}},
	}
	snapshots := 0
	for seed := range uint64(60) {
		w := newWorld(seed)
		var screens []*screen
		for range w.rng.IntN(40) {
			w.step()
		}
		for _, f := range filters {
			for range 3 {
				screens = append(screens, &screen{viewer: looking(w.session, f, ""), filter: f, has: map[Key]string{}, at: map[domain.DroneID]domain.Position{}})
			}
		}
		for range 400 {
			w.step()
			for i, s := range screens {
				switch n := w.rng.IntN(10 * (i%3*20 + 1)); { // every third is 20 times slower, every other 40 times
				case n < 5:
					s.look(t)
				case n == 5:
					s.viewer = looking(w.session, s.filter, s.last) // connects again
				}
			}
		}
		for i, s := range screens {
			s.look(t)
			_, now := w.visible(s.filter)
			for id, at := range now { // what is near is told at once
				if near := s.filter.Near; (near == nil || near.contains(at)) && s.at[id] != at {
					t.Fatalf("seed %d, viewer %d: drone %s at %v, want %v", seed, i, id, s.at[id], at)
				}
			}
			for range nearTurns {
				s.look(t)
			}
			if s.viewer.Next().Snapshot {
				snapshots++
			}
			has, at := w.visible(s.filter)
			if !maps.Equal(s.has, has) {
				t.Fatalf("seed %d, viewer %d: shows %v, want %v", seed, i, s.has, has)
			}
			if !maps.Equal(s.at, at) {
				t.Fatalf("seed %d, viewer %d: drones at %v, want %v", seed, i, s.at, at)
			}
			if u := s.viewer.Next(); !u.Empty() {
				t.Fatalf("seed %d, viewer %d: told %+v twice", seed, i, u)
			}
		}
	}
	if snapshots > 0 {
		t.Errorf("%d viewers that were up to date got a snapshot", snapshots)
	}
}

// F-CYC-03: where a drone is that flies out of what a viewer looks at is told once in nearTurns updates, however often it reports.
func TestViewer_IsToldLaterOfDronesElsewhere(t *testing.T) {
	w := newWorld(1)
	w.picture.book.put(&Version{Key: Key{KindDrone, "D1"}, at: here(domain.Position{})})
	v := looking(w.session, Filter{Near: &Area{Max: domain.Position{Lat: 1}}}, "")
	v.Next()
	told := func(lat float64, updates int) (n int) {
		for range updates {
			w.picture.book.moveTo(&Position{Drone: "D1", At: domain.Position{Lat: lat}})
			n += len(v.Next().Positions)
		}
		return n
	}
	if near, elsewhere, back := told(0.5, nearTurns), told(2, 10*nearTurns), told(0.5, 3); near != nearTurns || elsewhere != 9 || back != 3 {
		t.Errorf("told %d times where it is in %d updates, %d times in 10 times as many elsewhere, and %d times in 3 at its return", near, nearTurns, elsewhere, back)
	}
}

// F-LIVE-01: a viewer that was away too long is told so, and only then.
func TestViewer_ResyncsWhenRemovalsAreForgotten(t *testing.T) {
	w := newWorld(1)
	k := Key{KindOrder, "O1"}
	w.picture.book.put(&Version{Key: k, form: 1})
	v := looking(w.session, Filter{}, "")
	v.Next()
	w.picture.book.remove(k, w.now)
	kept := looking(w.session, Filter{}, "feed-1")
	if u := kept.Next(); u.Snapshot || !slices.Contains(u.Deletes, k) {
		t.Errorf("a viewer that comes back in time gets %+v", u)
	}
	w.picture.book.forget(w.now.Add(removalsKeptFor + time.Second))
	if len(w.picture.book.entries) != 0 || w.picture.book.changes.Len() != 0 {
		t.Errorf("the book keeps %d entities that are gone", len(w.picture.book.entries))
	}
	if u := v.Next(); !u.Snapshot || u.Resync == "" {
		t.Errorf("a viewer that was away for long gets %+v", u)
	}
	for _, after := range []string{"", "feed", "feed-x", "other-1", "feed-99"} {
		if u := looking(w.session, Filter{}, after).Next(); !u.Snapshot {
			t.Errorf("a viewer with the last event %q gets %+v", after, u)
		}
	}
}

// F-LIVE-01: what is kept for viewers does not depend on how many changes there were.
func TestBook_IsBounded(t *testing.T) {
	b := newBook()
	now := time.Unix(0, 0)
	for i := range 3 * removalsKept {
		k := Key{KindAlert, fmt.Sprint(i)}
		b.put(&Version{Key: k})
		b.remove(k, now)
		b.put(&Version{Key: Key{KindOrder, "O1"}})
		b.moveTo(&Position{Drone: "D1"})
		if i%1000 == 0 {
			b.forget(now)
		}
	}
	b.forget(now)
	if n := len(b.entries); n > removalsKept+1 || b.changes.Len() != n || b.moves.Len() != 1 || len(b.removals) > removalsKept {
		t.Errorf("keeps %d entities, %d changes, %d moves, %d removals", n, b.changes.Len(), b.moves.Len(), len(b.removals))
	}
}
