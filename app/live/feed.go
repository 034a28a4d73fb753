package live

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"cloud.google.com/go/pubsub/v2"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/meter"
	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/policy"
)

// Config is what a Feed follows. Zero durations stand for the defaults in the comments.
type Config struct {
	Store  *firestoretx.Store
	PubSub *pubsub.Client
	Locks  lock.Store
	// Meter counts what Pub/Sub delivers; default a private one.
	Meter *meter.Meter
	// KnownKeys are keys of locks that are not secret, beside the depots'.
	KnownKeys []string
	// Now is the fleet's clock.
	Now func() time.Time
	// NewID yields unique ids of at most 200 letters, digits and hyphens.
	NewID func() string
	// Process lists the alerts about this process, such as a wrong clock.
	Process func() []Alert
	// Limits are the policies'; a field that is zero stands for the contract's value.
	Limits policy.Limits
	// AreaRadius groups depots into planning areas, in km, as the optimizers do; see policy.AreasOf.
	AreaRadius float64
	// ByAreasFrom is from how many drones on a viewer who looks at a part of the world is shown its
	// areas alone; default 20,000. To follow all of a smaller fleet is cheap.
	ByAreasFrom int
	// DepotPatience is how long a depot may be without a cycle while orders wait;
	// default 30 s.
	DepotPatience time.Duration
	// Grace is how long the feed goes on after its last viewer has left, and follows what nobody sees
	// any longer; default 30 s.
	Grace time.Duration
	Log   *slog.Logger
}

// MaxViewers bounds the viewers of a Feed.
const MaxViewers = 500

// ErrFull says that a Feed has as many viewers as it takes.
var ErrFull = errors.New("too many viewers follow this process")

// ErrClosed says that a Feed was closed.
var ErrClosed = errors.New("the process is stopping")

// Feed is the live state of the fleet for the viewers of this process. It is safe for
// concurrent use.
type Feed struct {
	cfg Config

	mu      sync.Mutex
	viewers int
	current *session // nil without viewers
	ending  *session // the one before it, which may not have ended yet
	leaving *time.Timer
	closed  bool
}

// New returns a feed that follows nothing yet.
func New(cfg Config) *Feed {
	if cfg.ByAreasFrom == 0 {
		cfg.ByAreasFrom = 20_000
	}
	if cfg.DepotPatience == 0 {
		cfg.DepotPatience = 30 * time.Second
	}
	if cfg.Grace == 0 {
		cfg.Grace = 30 * time.Second
	}
	if cfg.Meter == nil {
		cfg.Meter = meter.New()
	}
	if cfg.Process == nil {
		cfg.Process = func() []Alert { return nil }
	}
	return &Feed{cfg: cfg}
}

// Now is the fleet's time.
func (f *Feed) Now() time.Time { return f.cfg.Now() }

// Close ends the feed and waits until its temporary subscription is deleted, or ctx
// ends. Viewers get ErrClosed from then on.
func (f *Feed) Close(ctx context.Context) {
	f.mu.Lock()
	f.closed = true
	s := f.current
	f.end()
	f.mu.Unlock()
	if s == nil {
		return
	}
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
}

// end ends the session, if there is one; with mu held.
func (f *Feed) end() {
	if f.current != nil {
		f.current.cancel()
		f.current, f.ending = nil, f.current
	}
	if f.leaving != nil {
		f.leaving.Stop()
		f.leaving = nil
	}
}

// Join adds a viewer, who must Leave. after names the last update that the viewer has seen. The
// viewer goes on from there if the feed still knows the changes since, and otherwise begins with a
// snapshot.
func (f *Feed) Join(filter Filter, after string) (*Viewer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return nil, ErrClosed
	case f.viewers >= MaxViewers:
		return nil, ErrFull
	}
	f.viewers++
	if f.leaving != nil {
		f.leaving.Stop()
		f.leaving = nil
	}
	if f.current == nil {
		s := f.newSession()
		s.ctx, s.cancel = context.WithCancel(meter.WithOperation(context.Background(), "live"))
		f.current = s
		s.begin()
	}
	return f.current.join(newViewer(f.current, filter, after)), nil
}

// leave takes a viewer off.
func (f *Feed) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.viewers--; f.viewers > 0 || f.closed {
		return
	}
	f.leaving = time.AfterFunc(f.cfg.Grace, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.viewers == 0 {
			f.end()
		}
	})
}

// Filter narrows what a viewer sees. Zero fields narrow nothing. In a fleet of Config.ByAreasFrom
// drones Depot, Area and Near also stand for Areas.
type Filter struct {
	Kinds map[Kind]bool
	// Areas leaves out what belongs to other planning areas than those of these depots. The feed
	// follows no others, unless another viewer sees them.
	Areas []domain.DepotID
	// Depot leaves out what belongs to another depot. Orders that wait belong to all.
	Depot domain.DepotID
	// Area leaves out what is somewhere else.
	Area *Area
	// Near is what the viewer looks at. Moves of drones elsewhere are told later, after nearTurns updates.
	Near *Area
	// Requester leaves out all but the requester's orders and their refusals.
	Requester string
}

// Area is a rectangle, its edges included. It does not cross the meridian of 180 degrees.
type Area struct{ Min, Max domain.Position }

func (a Area) contains(p domain.Position) bool {
	return p.Lat >= a.Min.Lat && p.Lat <= a.Max.Lat && p.Lon >= a.Min.Lon && p.Lon <= a.Max.Lon
}

// passes reports whether a viewer sees a version. at, if given, is its newest position.
func (f Filter) passes(v *Version, at *domain.Position) bool {
	if len(f.Kinds) > 0 && !f.Kinds[v.Kind] {
		return false
	}
	if f.Requester != "" && v.requester != f.Requester {
		return false
	}
	if f.Depot != "" && v.depot != "" && v.depot != f.Depot && !slices.Contains(v.depots, f.Depot) {
		return false
	}
	switch {
	case f.Area == nil || v.at == nil:
		return true
	case at != nil:
		return f.Area.contains(*at)
	}
	for _, p := range v.at() {
		if f.Area.contains(p) {
			return true
		}
	}
	return false
}

// moves reports whether an entity can come into view or leave it: the filter looks at more than
// its kind.
func (f Filter) moves() bool { return f.Depot != "" || f.Area != nil || f.Requester != "" }

// Following reports whether the feed follows the fleet or is still stopping.
func (f *Feed) Following() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != nil || f.ending == nil {
		return f.current != nil
	}
	select {
	case <-f.ending.ended:
		return false
	default:
		return true
	}
}
