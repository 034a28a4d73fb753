package firestorelock

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/firestore"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/leasetable"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
	"github.com/dronefleet/dronefleet/lock/internal/waitline"
)

// Names of the collections unless configured; SyncGuard's defaults too.
const (
	DefaultCollection      = "locks"
	DefaultFenceCollection = "fence_counters"
)

// KeyPolicy says what happens to keys that are not valid Firestore paths.
type KeyPolicy int

// The policies.
const (
	// RefuseKeys refuses them with ErrInvalidArgument.
	RefuseKeys KeyPolicy = iota
	// HashKeys stores them under a hash. SyncGuard, and processes that refuse such keys, never
	// take these locks, so nobody disagrees about one.
	HashKeys
)

// Config is the configuration of a Backend. The zero value is valid.
type Config struct {
	// Collection and FenceCollection name the collections of locks and of fence counters; nil:
	// DefaultCollection and DefaultFenceCollection. An empty name is ErrInvalidArgument:
	// usually its variable is unset.
	Collection, FenceCollection *string

	// CleanupInIsLocked lets IsLocked delete, in the background, locks that
	// ended more than two seconds ago.
	CleanupInIsLocked bool

	// UnaddressableKeys says what happens to keys such as "a/b", ".." or
	// "__x__"; RefuseKeys.
	UnaddressableKeys KeyPolicy

	// DisableServerTimeGuard uses the local clock alone. It is off anyway when
	// Clock is set.
	DisableServerTimeGuard bool

	// MaxClockSkew is the proven skew between the local and the server's clock from which
	// Acquire and Extend refuse with a lock.ClockSkewError. 0: lock.SkewBlock. Negative, or
	// without the server-time guard: never.
	MaxClockSkew time.Duration

	Clock  lock.Clock   // nil: the machine's
	Logger *slog.Logger // nil: slog.Default()
	Hasher lock.Hasher  // of keys and ids in Info and logs; nil: lock.HashKey
}

// Backend is a lock.Backend on Firestore. It is safe for concurrent use. Make one per client
// and share it, because it remembers the versions of the locks it holds.
type Backend struct {
	client *firestore.Client
	locks  *firestore.CollectionRef

	lockPath, counterPath string // of both collections

	cfg     Config
	clock   lock.Clock
	log     *slog.Logger
	hash    lock.Hasher
	guarded bool          // the server-time guard is on
	maxSkew time.Duration // negative: any

	server    serverClock
	leases    leasetable.Table[held]
	releasing turns
	waiters   waitline.Lines
	tasks     tasks.Group
	cleanups  cleanups
	logged    onceLog
}

var (
	_ lock.Backend     = (*Backend)(nil)
	_ lock.RawLookuper = (*Backend)(nil)
	_ lock.Waiter      = (*Backend)(nil)
)

// New returns a backend on a client, which stays the caller's to close. A nil
// client and impossible collection names are ErrInvalidArgument.
func New(c *firestore.Client, cfg Config) (*Backend, error) {
	if c == nil {
		return nil, lock.Invalid("client is nil; pass a *firestore.Client")
	}
	locks, fences := orDefault(cfg.Collection, DefaultCollection), orDefault(cfg.FenceCollection, DefaultFenceCollection)
	if err := checkCollections(locks, fences); err != nil {
		return nil, err
	}
	if cfg.UnaddressableKeys != RefuseKeys && cfg.UnaddressableKeys != HashKeys {
		return nil, lock.Invalid("UnaddressableKeys is unknown; use RefuseKeys or HashKeys")
	}
	b := &Backend{
		client:   c,
		locks:    c.Collection(locks),
		lockPath: locks, counterPath: fences,
		cfg:     cfg,
		clock:   cfg.Clock,
		log:     cmp.Or(cfg.Logger, slog.Default()),
		hash:    cfg.Hasher,
		guarded: cfg.Clock == nil && !cfg.DisableServerTimeGuard,
		maxSkew: cmp.Or(cfg.MaxClockSkew, lock.SkewBlock),
		tasks:   tasks.Group{Patience: tasks.Patience},
	}
	if b.clock == nil {
		b.clock = lock.SystemClock()
	}
	if b.hash == nil {
		b.hash = lock.HashKey
	}
	b.waiters.Clock, b.waiters.Tasks, b.waiters.Follow = b.clock, &b.tasks, b.follow
	return b, nil
}

// Capabilities describes the backend.
func (b *Backend) Capabilities() lock.Capabilities {
	return lock.Capabilities{Name: "firestore", Fencing: true, TimeAuthority: lock.ClientTime}
}

// orDefault is the name that was set, or else the default.
func orDefault(name *string, byDefault string) string {
	if name == nil {
		return byDefault
	}
	return *name
}

// checkCollections refuses names that are not collection paths, and two paths of which one is
// or contains the other: their documents would mix.
func checkCollections(locks, fences string) error {
	if locks == "" {
		return lock.Invalid("Collection is empty; name a collection, or leave it nil for \"locks\"")
	}
	if fences == "" {
		return lock.Invalid("FenceCollection is empty; name a collection, or leave it nil for \"fence_counters\"")
	}
	if !isCollectionPath(locks) {
		return lock.Invalid("Collection is not a collection path; use an odd number of valid segments such as \"locks\"")
	}
	if !isCollectionPath(fences) {
		return lock.Invalid("FenceCollection is not a collection path; use an odd number of valid segments such as \"fence_counters\"")
	}
	if isPathPrefix(locks, fences) || isPathPrefix(fences, locks) {
		return lock.Invalid("Collection and FenceCollection overlap; use two separate collections")
	}
	return nil
}

func isCollectionPath(path string) bool {
	segments := strings.Split(path, "/")
	return len(segments)%2 == 1 && !slices.ContainsFunc(segments, func(s string) bool { return !isSegment(s) })
}

func isPathPrefix(prefix, path string) bool {
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}
