package firestoretx

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/firestore"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/dronefleet/dronefleet/domain"
)

const (
	// placesRemembered is how long places serve after they were read or found up to date. The
	// sweeper finds another depot for an order given to one that was just deleted.
	placesRemembered = 10 * time.Second
	// placesTimeout is how long one reading or check of places may take.
	placesTimeout = 10 * time.Second
	// changesOverlap is how far a search for changes of places goes back beyond the last one: the
	// clocks of those who record changes differ by less.
	changesOverlap = 10 * time.Second
)

// placeCache holds the places as listeners see them, see FollowPlaces, and the depots that can plan
// orders as last read by a process without listeners. Concurrent callers share a reading.
type placeCache struct {
	reading, checking singleflight.Group

	mu     sync.Mutex
	depots []domain.Depot
	readAt time.Time // machine time

	check     func() bool // of the listeners; nil without them
	unfollow  context.CancelFunc
	seen      seenPlaces
	behind    bool      // a check found a change that the listeners had not seen
	checked   time.Time // the fleet's time of the last check that found none, or of the start
	checkedAt time.Time // the same in machine time; zero for none
}

// seenPlaces are the places as listeners saw them last.
type seenPlaces struct {
	depots     sightings[domain.Depot]
	warehouses sightings[domain.Warehouse]
}

// sightings are the documents of a listener.
type sightings[T any] struct {
	known     map[string]T
	malformed map[string]error
	at        time.Time // the server's; zero: not seen yet
}

func (s *sightings[T]) saw(sight Sight[T], id func(T) string) {
	if sight.Whole {
		s.known, s.malformed = map[string]T{}, map[string]error{}
	}
	for _, gone := range sight.Gone {
		delete(s.known, gone)
		delete(s.malformed, gone)
	}
	for i, gone := range sight.MalformedIDs {
		delete(s.known, gone)
		s.malformed[gone] = sight.Malformed[i]
	}
	for _, v := range sight.Now {
		delete(s.malformed, id(v))
		s.known[id(v)] = v
	}
	s.at = sight.ReadTime
}

func (s *sightings[T]) listing() (l Listing[T]) {
	for _, id := range slices.Sorted(maps.Keys(s.known)) {
		l.Items = append(l.Items, s.known[id])
	}
	for _, id := range slices.Sorted(maps.Keys(s.malformed)) {
		l.MalformedIDs, l.Malformed = append(l.MalformedIDs, id), append(l.Malformed, s.malformed[id])
	}
	return l
}

// knownPlaces are all places as of a moment at most placesRemembered ago.
type knownPlaces struct {
	depots     Listing[domain.Depot]
	warehouses Listing[domain.Warehouse]
	// warehousesAt is when the warehouses were so, in the server's time.
	warehousesAt time.Time
}

// FollowPlaces keeps the depots and warehouses that this process knows up to date, until ctx ends or
// the server ends a listener. It never returns nil. Meanwhile cycles, hand-overs and new orders need
// not read them.
//
// A listener that fell silent looks like a fleet without changes. So the records of changes are
// looked at when the places are needed, at most once in placesRemembered, and a listener that has
// missed one begins anew. Until it is up to date, places are read as without it. Edits by hand have
// no record, and wait for the listener alone.
//
// Cost: 2 RPCs and a read for each place, and one for each change. For each check 1 RPC and a read,
// and one for each recent change of a place or a registration.
func (s *Store) FollowPlaces(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s.places.begin(s.now(), stop, func() bool {
		// Several may wait for it, so it ends with the listeners and not with the caller that began it.
		ctx, cancel := context.WithTimeout(ctx, placesTimeout)
		defer cancel()
		return s.checkPlaces(ctx)
	})
	defer s.places.end()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return s.FollowDepots(ctx, func(sight Sight[domain.Depot]) {
			s.places.mu.Lock()
			defer s.places.mu.Unlock()
			s.places.seen.depots.saw(sight, func(d domain.Depot) string { return string(d.ID) })
		})
	})
	g.Go(func() error {
		return s.FollowWarehouses(ctx, func(sight Sight[domain.Warehouse]) {
			s.places.mu.Lock()
			defer s.places.mu.Unlock()
			s.places.seen.warehouses.saw(sight, func(w domain.Warehouse) string { return string(w.ID) })
		})
	})
	return g.Wait()
}

func (c *placeCache) begin(now time.Time, unfollow context.CancelFunc, check func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.check, c.unfollow, c.seen, c.behind = check, unfollow, seenPlaces{}, false
	c.checked, c.checkedAt = now, time.Time{}
}

func (c *placeCache) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.check, c.seen = nil, seenPlaces{}
}

// FollowsPlaces reports whether the listeners of FollowPlaces have seen the places.
func (s *Store) FollowsPlaces() bool {
	_, check := s.places.fresh(s.now())
	return check != nil
}

// fresh reports whether the places were up to date lately. Otherwise check, if not nil, finds out
// whether they are.
func (c *placeCache) fresh(now time.Time) (fresh bool, check func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.check == nil || c.seen.depots.at.IsZero() || c.seen.warehouses.at.IsZero() {
		return false, nil
	}
	// Simulated time may run faster than the machine's, and a wall clock may be set.
	fresh = !c.checkedAt.IsZero() && time.Since(c.checkedAt) <= placesRemembered && now.Sub(c.checked).Abs() <= placesRemembered
	return fresh, c.check
}

// followed are the places as the listeners see them; nil if they must be read.
func (s *Store) followed(ctx context.Context) *knownPlaces {
	c := &s.places
	fresh, check := c.fresh(s.now())
	if !fresh && check != nil {
		select {
		case <-ctx.Done():
		case r := <-c.checking.DoChan("", func() (any, error) { return check(), nil }):
			fresh = r.Val.(bool)
		}
	}
	if !fresh {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen.depots.at.IsZero() || c.seen.warehouses.at.IsZero() { // by now
		return nil
	}
	return &knownPlaces{c.seen.depots.listing(), c.seen.warehouses.listing(), c.seen.warehouses.at}
}

// checkPlaces reports whether the listeners have seen all recorded changes. If they have not twice
// in a row, they begin anew.
func (s *Store) checkPlaces(ctx context.Context) bool {
	c := &s.places
	now, machine := s.now(), time.Now()
	c.mu.Lock()
	since := c.checked.Add(-changesOverlap)
	c.mu.Unlock()
	latest := map[string]time.Time{} // by kind
	err := each(s.client.Collection(PlaceChanges).Where("changedAt", ">", since).Select("kind").Documents(ctx), func(doc *firestore.DocumentSnapshot) error {
		kind, _ := doc.Data()["kind"].(string)
		if doc.CreateTime.After(latest[kind]) {
			latest[kind] = doc.CreateTime
		}
		return nil
	})
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	missed := latest[string(domain.PlaceDepot)].After(c.seen.depots.at) || latest[string(domain.PlaceWarehouse)].After(c.seen.warehouses.at)
	switch {
	case !missed:
		c.checked, c.checkedAt = now, machine
	case c.behind:
		c.unfollow()
	}
	c.behind = missed
	return !missed
}

// KnownDepots are the depots as the listener of FollowPlaces sees them, at most placesRemembered
// old. Without it they are read.
//
// Cost: none, or that of Depots.
func (s *Store) KnownDepots(ctx context.Context) (Listing[domain.Depot], error) {
	if known := s.followed(ctx); known != nil {
		return known.depots, nil
	}
	return s.Depots(ctx)
}

// lately are the depots read lately; none if they must be read.
func (c *placeCache) lately() []domain.Depot {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.readAt) > placesRemembered {
		return nil
	}
	return c.depots
}

func (c *placeCache) keep(depots []domain.Depot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.depots, c.readAt = depots, time.Now()
}

// knownDepots are the depots as of at most placesRemembered ago; none if they cannot be
// read.
func (s *Store) knownDepots(ctx context.Context) []domain.Depot {
	depots, err := s.planningDepots(ctx)
	if err != nil {
		return nil // the transaction reads them, and fails if it cannot
	}
	return depots
}

// planningDepots are the depots that can plan orders, at most placesRemembered old. That there is
// none is read each time.
func (s *Store) planningDepots(ctx context.Context) ([]domain.Depot, error) {
	if known := s.followed(ctx); known != nil && len(known.depots.Items) > 0 {
		return known.depots.Items, nil
	}
	if depots := s.places.lately(); len(depots) > 0 {
		return depots, nil
	}
	read := s.places.reading.DoChan("", func() (any, error) {
		// Others wait for it, so it does not end with the caller that began it.
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), placesTimeout)
		defer cancel()
		listing, err := s.Depots(shared)
		if err == nil {
			s.places.keep(listing.Items)
		}
		return listing.Items, err
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case r := <-read:
		return r.Val.([]domain.Depot), r.Err
	}
}

// with returns the depots with some as a transaction read them; nil stands for one that is gone.
func with(depots []domain.Depot, read map[domain.DepotID]*domain.Depot) []domain.Depot {
	var now []domain.Depot
	for _, d := range depots {
		if _, known := read[d.ID]; !known {
			now = append(now, d)
		}
	}
	for _, d := range read {
		if d != nil {
			now = append(now, *d)
		}
	}
	slices.SortFunc(now, func(a, b domain.Depot) int { return cmp.Compare(a.ID, b.ID) })
	return now
}
