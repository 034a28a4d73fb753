package ordering

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/planner"
	"github.com/dronefleet/dronefleet/domain"
)

const (
	// refuseFor is how old the places and drones may be by which an order is refused, and takeFor
	// those by which it is taken: to take one that nobody can deliver costs a warning only.
	refuseFor = 10 * time.Second
	takeFor   = time.Hour
	// perDrone lengthens refuseFor for large fleets, so that orders that cannot be delivered make a
	// process read at most 100 drones a second.
	perDrone = 10 * time.Millisecond
	// reachTimeout is how long a reading may take.
	reachTimeout = 10 * time.Second
	// nearest is how many depots are tried before all are.
	nearest = 4
)

// Reach knows what the fleet can deliver as things stand, from places and drones that it keeps. It is
// safe for concurrent use.
type Reach struct {
	store   *firestoretx.Store
	now     func() time.Time
	reading singleflight.Group

	mu     sync.Mutex
	last   grounds
	readAt time.Time // zero if never
}

// NewReach returns a Reach that reads from the store when it is first asked.
func NewReach(store *firestoretx.Store) *Reach { return &Reach{store: store, now: time.Now} }

// grounds are the places and drones by which orders are judged.
type grounds struct {
	depots     []domain.Depot
	warehouses []domain.Warehouse
	drones     []domain.Drone // one of each kind at each home
	count      int            // of the drones
}

// Barriers lists what keeps every drone from a requested order.
//
// Cost: usually none; 3 RPCs and a read for each place and drone if they were read long ago.
func (r *Reach) Barriers(ctx context.Context, req domain.OrderRequest) ([]planner.Barrier, error) {
	g, age := r.kept()
	var list []planner.Barrier
	if age <= takeFor {
		list = g.barriers(req)
	}
	if age > takeFor || len(list) > 0 && age > refuseFor+time.Duration(g.count)*perDrone {
		g, err := r.read(ctx)
		if err != nil {
			return nil, err
		}
		list = g.barriers(req)
	}
	return list, nil
}

// Warning is what Barriers finds as one text, the first reason before ": "; empty if there is none
// or the places and drones cannot be read.
func (r *Reach) Warning(ctx context.Context, req domain.OrderRequest) string {
	list, err := r.Barriers(ctx, req)
	if err != nil || len(list) == 0 {
		return ""
	}
	return list[0].Reason + ": " + textOf(list)
}

func textOf(list []planner.Barrier) string {
	texts := make([]string, len(list))
	for i, b := range list {
		texts[i] = b.Field + " " + b.Detail
	}
	return strings.Join(texts, " | ")
}

func (r *Reach) kept() (grounds, time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readAt.IsZero() {
		return grounds{}, math.MaxInt64
	}
	return r.last, r.now().Sub(r.readAt)
}

// read reads places and drones anew; concurrent callers share one reading.
func (r *Reach) read(ctx context.Context) (grounds, error) {
	read := r.reading.DoChan("", func() (any, error) {
		shared, cancel := context.WithTimeout(context.WithoutCancel(ctx), reachTimeout)
		defer cancel()
		g, err := readGrounds(shared, r.store)
		if err == nil {
			r.mu.Lock()
			r.last, r.readAt = g, r.now()
			r.mu.Unlock()
		}
		return g, err
	})
	select {
	case <-ctx.Done():
		return grounds{}, ctx.Err()
	case answer := <-read:
		return answer.Val.(grounds), answer.Err
	}
}

func readGrounds(ctx context.Context, store *firestoretx.Store) (g grounds, err error) {
	depots, err := store.Depots(ctx)
	if err != nil {
		return g, err
	}
	if g.warehouses, err = store.Warehouses(ctx); err != nil {
		return g, err
	}
	drones, err := store.Fleet(ctx, nil, math.MaxInt64)
	if err != nil {
		return g, err
	}
	g.depots, g.count = depots.Items, len(drones)
	homes := domain.Area{Depots: g.depots}
	type kind struct {
		home                    domain.DepotID
		perKm, perKmKg, payload float64
		minutes                 int
		cold                    bool
		at                      domain.Position // without a home
	}
	seen := map[kind]bool{}
	for _, d := range drones {
		k := kind{d.HomeDepotID, d.ConsumptionPerKm, d.ConsumptionPerKmKg, d.PayloadCapacityKg, d.MaxFlightTimeMinutes, d.CarriesCold(), domain.Position{}}
		if !homes.Has(d.HomeDepotID) {
			k.home, k.at = "", d.Position
		}
		if !seen[k] {
			seen[k] = true
			g.drones = append(g.drones, d)
		}
	}
	return g, nil
}

// barriers judges by the drones of the nearest depots, and by all if those cannot deliver.
func (g grounds) barriers(req domain.OrderRequest) []planner.Barrier {
	o := domain.Order{ID: req.ID, OrderContent: req.OrderContent, CreatedAt: cmp.Or(req.CreatedAt, time.Unix(0, 0))}
	if len(g.depots) > nearest {
		near := slices.Clone(g.depots)
		slices.SortFunc(near, func(a, b domain.Depot) int {
			return cmp.Compare(a.Position.DistanceMetres(o.Delivery), b.Position.DistanceMetres(o.Delivery))
		})
		near = near[:nearest]
		theirs := domain.Area{Depots: near}
		drones := slices.DeleteFunc(slices.Clone(g.drones), func(d domain.Drone) bool { return !theirs.Has(d.HomeDepotID) })
		if len(drones) > 0 && len(planner.Barriers(near, g.warehouses, drones, o)) == 0 {
			return nil
		}
	}
	return planner.Barriers(g.depots, g.warehouses, g.drones, o)
}
