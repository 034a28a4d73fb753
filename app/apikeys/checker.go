package apikeys

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
)

const (
	// CacheFor is how long a key that was read is believed.
	CacheFor = 10 * time.Second
	// recheckFor is how long the list of revoked keys is believed. With readTimeout and a second
	// between two questions it is CacheFor.
	recheckFor = 5 * time.Second
	// revokedWithin is how far back that list goes. It is far more than clocks may differ.
	revokedWithin = time.Hour
	// useEvery is how often the use of a key is recorded.
	useEvery = time.Hour
	// endsSoon is how long before its end the use of a key is warned of.
	endsSoon = 14 * 24 * time.Hour
	// readTimeout bounds one read, which many callers may share.
	readTimeout = 4 * time.Second
)

// InvalidError says why a key does not count. Repeating the request with the same key cannot
// succeed.
type InvalidError struct{ Reason string }

// Error implements error.
func (e *InvalidError) Error() string { return "invalid API key: " + e.Reason }

// Config says how keys are checked.
type Config struct {
	Store *firestoretx.Store
	Now   func() time.Time // the fleet's clock
	// RecordUse stores when a key was used, at most once an hour. A process that must not
	// write to Firestore leaves it false.
	RecordUse bool
	Log       *slog.Logger
}

// Checker checks API keys. It is safe for concurrent use.
type Checker struct {
	cfg   Config
	reads singleflight.Group

	mu      sync.Mutex
	known   map[string]known // by hash
	revoked map[string]domain.APIKey
	asked   time.Time // when the list of revoked keys was last asked for
}

// known is a key as it was read.
type known struct {
	domain.APIKey
	version  time.Time
	asked    time.Time // before the read, so that a revocation after it counts in time
	recorded bool      // nothing more to record of its use until it is read again
}

// New returns a checker.
func New(cfg Config) *Checker {
	return &Checker{cfg: cfg, known: map[string]known{}, revoked: map[string]domain.APIKey{}}
}

// Check returns the key with a text. The error is an *InvalidError if the key does not count. With
// any other error it could not be checked now.
//
// Cost: 1 RPC and 1 read for each key in CacheFor; an unknown key costs a read each time.
func (c *Checker) Check(ctx context.Context, text string) (domain.APIKey, error) {
	if err := checkText(text); err != nil {
		return domain.APIKey{}, err
	}
	hash := Hash(text)
	k, fresh := c.cached(hash)
	if !fresh {
		var err error
		if k, err = shared(ctx, &c.reads, hash, func(ctx context.Context) (known, error) { return c.read(ctx, hash) }); err != nil {
			return domain.APIKey{}, err
		}
	}
	if ended := k.Ended(c.cfg.Now()); ended != "" {
		return domain.APIKey{}, &InvalidError{ended + "; ask for a new one"}
	}
	c.recordUse(ctx, hash)
	return k.APIKey, nil
}

// Recheck returns an *InvalidError once a key that was checked before no longer counts, for a
// stream or a session that lasts. With any other error it could not be checked now. Whoever calls
// it every second ends a revoked key within CacheFor.
//
// Cost: 1 RPC and mostly 1 read in recheckFor, however many keys are rechecked.
func (c *Checker) Recheck(ctx context.Context, k domain.APIKey) error {
	now := c.cfg.Now()
	c.mu.Lock()
	fresh := within(now, c.asked, recheckFor)
	c.mu.Unlock()
	if !fresh {
		if _, err := shared(ctx, &c.reads, "revoked", func(ctx context.Context) (known, error) { return known{}, c.readRevoked(ctx) }); err != nil {
			return err
		}
	}
	c.mu.Lock()
	if ended, is := c.revoked[k.Hash]; is {
		k = ended
	}
	c.mu.Unlock()
	if ended := k.Ended(now); ended != "" {
		return &InvalidError{ended + "; ask for a new one"}
	}
	return nil
}

// Knows reports whether the key with a text counted when it was last read, however long ago. Only
// other texts can be guesses.
func (c *Checker) Knows(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, is := c.known[Hash(text)]
	return is && k.Ended(c.cfg.Now()) == ""
}

// within reports whether at is at most d before now. A clock that was set back makes it false.
func within(now, at time.Time, d time.Duration) bool { return !now.Before(at) && now.Sub(at) < d }

// cached is a key that was read before, and whether that is recent enough.
func (c *Checker) cached(hash string) (k known, fresh bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, is := c.known[hash]
	return k, is && within(c.cfg.Now(), k.asked, CacheFor)
}

// read reads a key. Only keys that exist are remembered, so guesses take no memory.
func (c *Checker) read(ctx context.Context, hash string) (known, error) {
	k := known{asked: c.cfg.Now()}
	var err error
	k.APIKey, k.version, err = c.cfg.Store.Key(ctx, hash)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, firestoretx.ErrNotFound):
		delete(c.known, hash)
		return k, &InvalidError{"it is unknown; copy the key again, or ask for a new one"}
	case err != nil:
		return k, fmt.Errorf("API key cannot be checked: %w", err)
	}
	c.known[hash] = k
	return k, nil
}

// readRevoked adds to the list of revoked keys.
func (c *Checker) readRevoked(ctx context.Context) error {
	asked := c.cfg.Now()
	keys, err := c.cfg.Store.RevokedKeys(ctx, asked.Add(-revokedWithin))
	if err != nil {
		return fmt.Errorf("API keys cannot be checked: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range keys {
		c.revoked[k.Hash] = k
	}
	c.asked = asked
	return nil
}

// recordUse stores that a key is used, unless that was recorded within useEvery, and warns of its
// end. A failure is logged: the request does not depend on it.
func (c *Checker) recordUse(ctx context.Context, hash string) {
	if !c.cfg.RecordUse {
		return
	}
	now := c.cfg.Now()
	c.mu.Lock()
	k, is := c.known[hash]
	due := is && !k.recorded && now.Sub(k.LastUsedAt) >= useEvery
	if due {
		k.recorded = true
		c.known[hash] = k
	}
	c.mu.Unlock()
	if !due {
		return
	}
	if k.ExpiresAt.Sub(now) < endsSoon {
		c.cfg.Log.WarnContext(ctx, "API key in use ends soon; make another one for its bearer", slog.String("key", k.Name()), slog.Time("expires", k.ExpiresAt))
	}
	if err := c.cfg.Store.RecordKeyUse(ctx, hash, k.version, now); err != nil {
		c.cfg.Log.WarnContext(ctx, "use of an API key not recorded", slog.String("key", k.Name()), slog.Any("err", err))
	}
}

// shared has one caller read for all that ask at the same time. One that gives up does not fail the
// others.
func shared[T any](ctx context.Context, g *singleflight.Group, name string, read func(context.Context) (T, error)) (T, error) {
	done := g.DoChan(name, func() (any, error) {
		reading, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
		defer cancel()
		return read(reading)
	})
	select {
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("API key cannot be checked: %w", ctx.Err())
	case r := <-done:
		v, _ := r.Val.(T) // the zero value beside an error
		return v, r.Err
	}
}
