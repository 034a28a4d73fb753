package redislock

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/internal/tasks"
	"github.com/dronefleet/dronefleet/lock/internal/waitline"
)

// DefaultPrefix begins the keys of locks, as SyncGuard's do.
const DefaultPrefix = "syncguard"

// maxPrefixBytes leaves room for the longest key and a counter's name, with the prefix twice,
// within the 974 bytes up to which SyncGuard does not hash.
const maxPrefixBytes = 200

// DefaultReplicaTimeout is how long an acquisition waits for replicas.
const DefaultReplicaTimeout = time.Second

// Config says where the locks are. The zero value suits SyncGuard's defaults.
type Config struct {
	// Prefix begins every key; nil is DefaultPrefix. Locks with different prefixes are
	// independent. In a Redis Cluster all keys must be in one slot: put a hash tag into it,
	// such as "{locks}".
	Prefix *string

	// Replicas is how many replicas must have a lease before it is granted (WAIT); fewer within
	// ReplicaTimeout are ErrServiceUnavailable. With 0, the default, a failover may forget the
	// newest leases and their fences. Not for Redis Cluster.
	Replicas       int
	ReplicaTimeout time.Duration // 0: DefaultReplicaTimeout

	// SkipDurabilityCheck skips the check by New for server settings that let fences repeat.
	// CheckDurability makes it at any time.
	SkipDurabilityCheck bool

	Logger *slog.Logger // nil: slog.Default
	Hasher lock.Hasher  // of keys and ids in Info and logs; nil: lock.HashKey
}

// Backend is a lock.Store on Redis. It is safe for concurrent use. Make one per client and
// share it, because it wakes its waiters in their order.
type Backend struct {
	client redis.UniversalClient
	prefix string // without a colon at its end
	head   string // what begins a key
	cfg    Config
	log    *slog.Logger
	hash   lock.Hasher

	tasks   tasks.Group
	waiters waitline.Lines
	calls   atomic.Uint64 // numbers the releases
	self    string        // names this backend in the calls it makes
}

var (
	_ lock.Store  = (*Backend)(nil)
	_ lock.Waiter = (*Backend)(nil)
)

// New returns a backend on a client, which the caller closes. A nil client, an impossible
// prefix, and a Redis Cluster without a hash tag in it are ErrInvalidArgument. New waits for no
// answer; see Config.SkipDurabilityCheck.
func New(c redis.UniversalClient, cfg Config) (*Backend, error) {
	if c == nil {
		return nil, lock.Invalid("client is nil; pass a go-redis client")
	}
	prefix := DefaultPrefix
	if cfg.Prefix != nil {
		prefix = strings.TrimRight(*cfg.Prefix, ":")
	}
	_, cluster := c.(*redis.ClusterClient)
	switch {
	case cfg.Prefix != nil && *cfg.Prefix == "":
		return nil, lock.Invalid(fmt.Sprintf("Prefix is empty; name one, or leave it nil for %q", DefaultPrefix))
	case len(prefix) > maxPrefixBytes:
		return nil, lock.Invalid(fmt.Sprintf("Prefix has %d bytes, at most %d are allowed; shorten it", len(prefix), maxPrefixBytes))
	case strings.Contains(prefix, "fence:") || strings.HasSuffix(prefix, "fence"):
		return nil, lock.Invalid("Prefix holds \"fence:\" or ends with \"fence\", as the names of fence counters do; choose another")
	case cluster && !hasHashTag(prefix):
		return nil, lock.Invalid("Prefix has no hash tag, which a Redis Cluster needs; use one such as \"{locks}\"")
	case cluster && cfg.Replicas > 0:
		return nil, lock.Invalid("Replicas is not supported in a Redis Cluster; set it to 0")
	case cfg.Replicas < 0 || cfg.ReplicaTimeout < 0:
		return nil, lock.Invalid("Replicas or ReplicaTimeout is negative; 0 is the default")
	}
	if cfg.ReplicaTimeout == 0 {
		cfg.ReplicaTimeout = DefaultReplicaTimeout
	}
	b := &Backend{
		client: c,
		prefix: prefix,
		head:   prefix + ":",
		cfg:    cfg,
		log:    cmp.Or(cfg.Logger, slog.Default()),
		hash:   cfg.Hasher,
		tasks:  tasks.Group{Patience: tasks.Patience},
		self:   "\x00" + lock.NewLockID(),
	}
	if b.hash == nil {
		b.hash = lock.HashKey
	}
	b.waiters.Clock, b.waiters.Tasks, b.waiters.Follow = lock.SystemClock(), &b.tasks, b.follow
	if !cfg.SkipDurabilityCheck {
		b.tasks.Background(context.Background(), b.warnOfLosses)
	}
	return b, nil
}

// Capabilities describes the backend.
func (b *Backend) Capabilities() lock.Capabilities {
	return lock.Capabilities{Name: "redis", Fencing: true, TimeAuthority: lock.ServerTime}
}

// Close waits for background work, at most until ctx ends (ErrAborted). The client stays open
// and locks stay held. Calls still work, but nobody listens for releases.
func (b *Backend) Close(ctx context.Context) error {
	b.waiters.Close()
	return b.tasks.Close(ctx)
}

// hasHashTag tells whether Redis Cluster chooses the slot by a part of the prefix.
func hasHashTag(prefix string) bool {
	_, after, found := strings.Cut(prefix, "{")
	return found && strings.Index(after, "}") > 0
}

// lockKey is where the lock of a key in NFC is. It refuses keys whose place belongs to an index
// or a counter; SyncGuard takes them, and breaks one or the other.
func (b *Backend) lockKey(key string) (string, error) {
	if rest, ok := strings.CutPrefix(key, indexPart); ok && lock.ValidateLockID(rest) == nil {
		return "", lock.Invalid("key looks like an entry of the id index; choose one that does not begin with \"id:\"")
	}
	if strings.HasPrefix(key, fencePart+b.head) {
		return "", lock.Invalid("key looks like a fence counter; choose one that does not begin with \"fence:\" and the prefix")
	}
	return b.head + key, nil
}

// Parts of the names of an id index and a fence counter.
const (
	indexPart = "id:"
	fencePart = "fence:"
)

func (b *Backend) indexKey(lockID string) string { return b.head + indexPart + lockID }

func (b *Backend) fenceKey(lockKey string) string { return b.head + fencePart + lockKey }

// channel is where releases of a lock are published.
func (b *Backend) channel(lockKey string) string { return lockKey + ":released" }

// nextCall names a call, so that the server recognises a repetition.
func (b *Backend) nextCall() string {
	return b.self + strconv.FormatUint(b.calls.Add(1), 36)
}
