package postgreslock

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jackc/pgx/v5"
)

const (
	// idleTimeout is how long the listening connection stays when nobody waits.
	idleTimeout = 30 * time.Second
	// followRetry is the pause after which a key is tried again whose advisory lock a
	// release has at this moment.
	followRetry = 10 * time.Millisecond
	// reconnectMin and reconnectMax bound the pauses between connections.
	reconnectMin = 50 * time.Millisecond
	reconnectMax = 5 * time.Second
)

// Statements of the listening connection. A shared advisory lock of the key says that somebody
// waits; the trigger in schema.sql tries it.
const (
	followSQL   = "SELECT pg_try_advisory_lock_shared(1819239275, hashtext($1))"
	unfollowSQL = "SELECT pg_advisory_unlock_shared(1819239275, hashtext($1))"
)

// heldAt and freeAt are when a lock was held and when it went. Fences order them, because
// commits of one key may not follow the server's clock.
func heldAt(fence int64) time.Time { return time.Unix(fence, 0) }
func freeAt(fence int64) time.Time { return time.Unix(fence, 1) }

// listener hears of any process's releases on a connection of its own, so that a used-up pool
// does not silence it.
type listener struct {
	mu      sync.Mutex
	keys    map[string]string // followed, by the name in notifications
	running bool
	closed  bool
	change  chan struct{} // closed when one of the above changes
}

// Watch implements lock.Waiter.
func (b *Backend) Watch(key string) (<-chan struct{}, func()) { return b.waiters.Watch(key) }

// follow hears of releases of a key until ctx ends.
func (b *Backend) follow(ctx context.Context, key string) error {
	l := &b.listener
	name := notified(key)
	l.update(func() {
		l.keys[name] = key
		if !l.running && !l.closed {
			l.running = true
			b.tasks.Begin()
			go func() {
				defer b.tasks.End()
				b.listen()
			}()
		}
	})
	<-ctx.Done()
	l.update(func() { delete(l.keys, name) })
	return nil
}

// notified names a key in a notification, as the trigger does.
func notified(key string) string {
	sum := md5.Sum([]byte(key))
	return hex.EncodeToString(sum[:])
}

// update changes what the listener does and tells it.
func (l *listener) update(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keys == nil {
		l.keys = make(map[string]string)
	}
	f()
	if l.change != nil {
		close(l.change)
		l.change = nil
	}
}

func (l *listener) close() { l.update(func() { l.closed = true }) }

// wanted is a copy of the keys to follow, and what is closed when they change.
func (l *listener) wanted() (keys map[string]string, closed bool, change <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	keys = make(map[string]string, len(l.keys))
	for name, key := range l.keys {
		keys[name] = key
	}
	if l.change == nil {
		l.change = make(chan struct{})
	}
	return keys, l.closed, l.change
}

// ends tells whether the listener is to end; then the next key starts another.
func (l *listener) ends() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.keys) == 0 {
		l.running = false
	}
	return !l.running
}

// listen follows keys until nobody has waited for a while, or the backend is closed.
func (b *Backend) listen() {
	pauses := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(reconnectMin),
		backoff.WithMaxInterval(reconnectMax),
		backoff.WithMaxElapsedTime(0), // until nobody waits
	)
	for {
		began := time.Now()
		err := b.listenOnce()
		if b.listener.ends() {
			return
		}
		if time.Since(began) > reconnectMax {
			pauses.Reset()
		}
		pause := pauses.NextBackOff()
		if err != nil {
			b.log.Warn("listening for releases failed; waiters poll until it works again",
				slog.Any("err", classify(context.Background(), err)), slog.Duration("retry_in", pause))
		}
		for end := time.Now().Add(pause); time.Now().Before(end); {
			_, closed, change := b.listener.wanted()
			if closed {
				break
			}
			ctx, cancel := context.WithDeadline(context.Background(), end)
			select {
			case <-ctx.Done():
			case <-change:
			}
			cancel()
		}
	}
}

// listenOnce follows keys on one connection until that fails, or there is nothing left
// to follow.
func (b *Backend) listenOnce() error {
	ctx := context.Background()
	conn, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(ctx, detachedTimeout)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, b.sql.listen); err != nil {
		return err
	}
	followed := map[string]string{}
	for {
		wanted, closed, change := b.listener.wanted()
		if closed {
			return nil
		}
		patience := idleTimeout
		for name, key := range wanted {
			if _, ok := followed[name]; ok {
				continue
			}
			ok, err := b.beginFollowing(ctx, conn, key)
			if err != nil {
				return err
			}
			if ok {
				followed[name] = key
			} else {
				patience = followRetry
			}
		}
		for name, key := range followed {
			if _, ok := wanted[name]; ok {
				continue
			}
			if _, err := conn.Exec(ctx, unfollowSQL, key); err != nil {
				return err
			}
			delete(followed, name)
		}
		payload, changed, err := await(ctx, conn, patience, change)
		if err != nil {
			return err
		}
		name, fence, _ := strings.Cut(payload, " ")
		if n, err := strconv.ParseInt(fence, 10, 64); err == nil && wanted[name] != "" {
			b.waiters.Free(wanted[name], freeAt(n))
		}
		if len(wanted) == 0 && payload == "" && !changed {
			return nil
		}
	}
}

// connect opens the listening connection as the pool opens its own.
func (b *Backend) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	cfg := b.pool.Config()
	if cfg.BeforeConnect != nil {
		if err := cfg.BeforeConnect(ctx, cfg.ConnConfig); err != nil {
			return nil, err
		}
	}
	return pgx.ConnectConfig(ctx, cfg.ConnConfig)
}

// beginFollowing asks for notifications of a key, and looks at the lock once, for a release
// before that.
func (b *Backend) beginFollowing(ctx context.Context, conn *pgx.Conn, key string) (ok bool, err error) {
	if err := conn.QueryRow(ctx, followSQL, key).Scan(&ok); err != nil || !ok {
		return false, err
	}
	var fence, expiresAtMs, nowUs int64
	if err := conn.QueryRow(ctx, b.sql.state, key).Scan(&fence, &expiresAtMs, &nowUs); err != nil {
		return false, err
	}
	if r := (row{expiresAtMs: expiresAtMs, nowUs: nowUs}); !r.live() {
		b.waiters.Free(key, freeAt(fence))
	}
	return true, nil
}

// await waits for a notification, for so long, or for a change.
func await(ctx context.Context, conn *pgx.Conn, patience time.Duration, change <-chan struct{}) (payload string, changed bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, patience)
	ended := make(chan bool, 1)
	go func() {
		select {
		case <-change:
			cancel()
			ended <- true
		case <-waiting.Done():
			ended <- false
		}
	}()
	n, err := conn.WaitForNotification(waiting)
	over := waiting.Err() != nil
	cancel()
	changed = <-ended
	switch {
	case err == nil:
		return n.Payload, changed, nil
	case over && !conn.IsClosed():
		return "", changed, nil
	default:
		return "", changed, err
	}
}
