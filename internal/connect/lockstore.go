package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"cloud.google.com/go/firestore"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/dronefleet/dronefleet/lock"
	"github.com/dronefleet/dronefleet/lock/firestorelock"
	"github.com/dronefleet/dronefleet/lock/postgreslock"
	"github.com/dronefleet/dronefleet/lock/redislock"
)

// LockPassword is the variable with the password of a lock store whose address has none.
const LockPassword = "LOCK_PASSWORD"

// LockStore is the address of a store that keeps locks. The zero value is none.
type LockStore struct {
	firestore *Config // project and database
	redis     *redis.Options
	redisLock redislock.Config
	postgres  *pgxpool.Config
}

// LockStoreForms says which addresses ParseLockStore accepts.
const LockStoreForms = "redis://HOST:PORT/DB, rediss:// for TLS, postgres://USER@HOST:PORT/DB or firestore://PROJECT/DATABASE"

// ParseLockStore reads an address. Its errors do not quote what may hold a password.
func ParseLockStore(text string) (LockStore, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	switch {
	case ok && scheme == "firestore":
		return parseFirestore(rest)
	case ok && (scheme == "redis" || scheme == "rediss"):
		return parseRedis(text)
	case ok && (scheme == "postgres" || scheme == "postgresql"):
		return parsePostgres(text)
	}
	return LockStore{}, errors.New("is not the address of a lock store; give " + LockStoreForms)
}

func parseFirestore(rest string) (LockStore, error) {
	project, database, _ := strings.Cut(rest, "/")
	switch {
	case !projectID.MatchString(project):
		return LockStore{}, fmt.Errorf("%.80q is not a Google Cloud project id; give firestore://PROJECT or firestore://PROJECT/DATABASE", project)
	case database != "" && database != firestore.DefaultDatabaseID && !databaseID.MatchString(database):
		return LockStore{}, fmt.Errorf("%.80q is not a Firestore database id; give firestore://PROJECT/DATABASE", database)
	}
	return LockStore{firestore: &Config{Project: project, Database: cmp.Or(database, firestore.DefaultDatabaseID)}}, nil
}

// parseRedis reads go-redis's form of an address, and the parameters prefix and replicas
// of redislock.
func parseRedis(text string) (LockStore, error) {
	address, err := url.Parse(text)
	if err != nil {
		return LockStore{}, errors.New("is not a valid URL; escape special characters of the password, or set " + LockPassword)
	}
	// The fleet, not each command, checks whether fences may repeat.
	cfg := redislock.Config{SkipDurabilityCheck: true}
	query := address.Query()
	if query.Has("prefix") {
		prefix := query.Get("prefix")
		cfg.Prefix = &prefix
	}
	if text := query.Get("replicas"); text != "" {
		if cfg.Replicas, err = strconv.Atoi(text); err != nil || cfg.Replicas < 0 {
			return LockStore{}, errors.New("has a parameter replicas that is not a whole number; give how many replicas must have a lease")
		}
	}
	query.Del("prefix")
	query.Del("replicas")
	address.RawQuery = query.Encode()
	options, err := redis.ParseURL(address.String())
	if err != nil || address.Hostname() == "" { // which go-redis takes for this machine
		return LockStore{}, errors.New("is not an address of Redis; give redis://HOST:PORT/DB, with prefix=NAME and replicas=N after a ? if needed")
	}
	options.DisableIdentity, options.DialerRetries = true, 1 // the backend itself tries again
	options.Password = cmp.Or(options.Password, os.Getenv(LockPassword))
	return LockStore{redis: options, redisLock: cfg}, nil
}

// parsePostgres reads pgx's form of an address. PostgreSQL's own variables, such as
// PGSSLMODE, supply what it leaves out, except the host and the password.
func parsePostgres(text string) (LockStore, error) {
	address, err := url.Parse(text)
	if err != nil || address.Hostname() == "" && !address.Query().Has("host") { // which pgx takes for this machine
		return LockStore{}, errNoPostgres
	}
	pool, err := pgxpool.ParseConfig(text)
	if err != nil {
		return LockStore{}, errNoPostgres
	}
	if _, given := address.User.Password(); !given && !address.Query().Has("password") {
		pool.ConnConfig.Password = cmp.Or(os.Getenv(LockPassword), pool.ConnConfig.Password)
	}
	return LockStore{postgres: pool}, nil
}

var errNoPostgres = errors.New("is not an address of PostgreSQL; give postgres://USER@HOST:PORT/DB, with special characters of the password escaped")

// Set reports whether there is an address.
func (s LockStore) Set() bool { return s.firestore != nil || s.redis != nil || s.postgres != nil }

// String is the address without its password.
func (s LockStore) String() string {
	switch {
	case s.redis != nil && s.redis.TLSConfig != nil:
		return fmt.Sprintf("rediss://%s/%d", s.redis.Addr, s.redis.DB)
	case s.redis != nil:
		return fmt.Sprintf("redis://%s/%d", s.redis.Addr, s.redis.DB)
	case s.postgres != nil:
		c := s.postgres.ConnConfig
		if strings.HasPrefix(c.Host, "/") { // a folder of sockets
			return fmt.Sprintf("postgres:///%s?host=%s", c.Database, c.Host)
		}
		return fmt.Sprintf("postgres://%s/%s", net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), c.Database)
	case s.firestore != nil:
		return fmt.Sprintf("firestore://%s/%s", s.firestore.Project, s.firestore.Database)
	}
	return "firestore"
}

// lockBackend is what every backend of the lock library is.
type lockBackend interface {
	lock.Store
	lock.Waiter
	lock.FenceReader
}

// Open connects to the store, or to the Firestore emulator that the environment names.
// Nothing is sent yet. Close the locks, then call stop.
func (s LockStore) Open(ctx context.Context, log *slog.Logger) (locks lock.Store, stop func() error, err error) {
	return s.open(ctx, log)
}

func (s LockStore) open(ctx context.Context, log *slog.Logger) (locks lockBackend, stop func() error, err error) {
	switch {
	case s.redis != nil:
		redis.SetLogger(redisLog{log}) // of all its clients
		options, cfg := *s.redis, s.redisLock
		client := redis.NewClient(&options)
		cfg.Logger = log
		locks, err = redislock.New(client, cfg)
		stop = client.Close
	case s.postgres != nil:
		pool, opened := pgxpool.NewWithConfig(ctx, s.postgres.Copy())
		if opened != nil {
			return nil, nil, errors.New("open a pool of connections to PostgreSQL: the address has settings that contradict each other; check its parameters")
		}
		locks, err = postgreslock.New(pool, postgreslock.Config{Logger: log})
		stop = func() error { pool.Close(); return nil }
	case s.firestore != nil:
		c := *s.firestore
		c.FirestoreHost = os.Getenv(FirestoreHost)
		client, opened := openFirestore(ctx, c)
		if opened != nil {
			return nil, nil, opened
		}
		locks, err = firestorelock.New(client, firestorelock.Config{Logger: log})
		stop = client.Close
	default:
		return nil, nil, errors.New("no lock store; give " + LockStoreForms)
	}
	if err != nil {
		return nil, nil, errors.Join(err, stop())
	}
	return locks, stop, nil
}

// redisLog is a log for what go-redis would print. Calls report their own errors.
type redisLog struct{ log *slog.Logger }

// Printf implements its logging interface.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.log.DebugContext(ctx, "Redis client", slog.String("detail", fmt.Sprintf(format, args...)))
}

// Migrate creates the tables that the store needs and lacks, and says what it did.
func (s LockStore) Migrate(ctx context.Context) (string, error) {
	if s.postgres == nil {
		return s.String() + " needs no tables", nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, s.postgres.Copy())
	if err != nil {
		return "", errors.New("open a pool of connections to PostgreSQL: the address has settings that contradict each other; check its parameters")
	}
	defer pool.Close()
	if err := postgreslock.Migrate(ctx, pool, postgreslock.Config{}); err != nil {
		return "", err
	}
	return s.String() + " has the tables of the locks", nil
}
