package postgreslock

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dronefleet/dronefleet/lock"
)

const errPoolExhausted lock.SafeError = "no connection of the pool became free in time; raise the pool's MaxConns"

// row is a stored lock as it was at a time of the server.
type row struct {
	key, lockID                      string
	expiresAtMs, acquiredAtMs, nowUs int64
	fence                            int64
}

func (r row) live() bool { return lock.IsLive(r.expiresAtMs, r.nowUs/1e3) }

// answer is the row as acquire would have answered it to its holder.
func (r row) answer(asked time.Time) answer {
	return answer{statusDone, []int64{statusDone, r.fence, r.expiresAtMs, r.expiresAtMs*1e3 - r.nowUs}, asked}
}

// read runs a query for stored locks. It retries a lost connection once, because a pool notices
// late that the server has restarted.
func (b *Backend) read(ctx context.Context, sql string, args ...any) ([]row, error) {
	bounded, cancel := context.WithTimeout(ctx, b.tasks.Patience)
	defer cancel()
	for try := 1; ; try++ {
		rows, err := b.readOnce(bounded, sql, args)
		if err == nil {
			return rows, nil
		}
		e := classify(ctx, err)
		if try > 1 || e.Code != lock.CodeServiceUnavailable {
			return nil, e
		}
	}
}

func (b *Backend) readOnce(ctx context.Context, sql string, args []any) ([]row, error) {
	return collect(b.pool.Query(ctx, sql, args...))
}

// collect reads the rows of a query that was sent just now.
func collect(found pgx.Rows, err error) ([]row, error) {
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(found pgx.CollectableRow) (row, error) {
		var r row
		var fence string
		err := found.Scan(&r.key, &r.lockID, &r.expiresAtMs, &r.acquiredAtMs, &fence, &r.nowUs)
		if err == nil {
			r.fence, err = lock.ParseFence(fence)
		}
		return r, err
	})
}

// IsLocked implements lock.Backend.
func (b *Backend) IsLocked(ctx context.Context, key string) (bool, error) {
	info, err := b.LookupRaw(ctx, lock.Query{Key: key})
	return info != nil, lock.Located(err, "isLocked", key, "")
}

// Lookup implements lock.Backend.
func (b *Backend) Lookup(ctx context.Context, q lock.Query) (*lock.Info, error) {
	return lock.WithoutRaw(b.LookupRaw(ctx, q))
}

// LookupRaw implements lock.RawLookuper.
func (b *Backend) LookupRaw(ctx context.Context, q lock.Query) (*lock.RawInfo, error) {
	fail := func(err error) (*lock.RawInfo, error) { return nil, lock.Located(err, "lookup", q.Key, q.LockID) }
	checked, err := lock.ValidateQuery(q)
	if err == nil {
		err = storable(checked.Key)
	}
	if err == nil && ctx.Err() != nil {
		err = lock.AbortedBy(ctx)
	}
	if err != nil {
		return fail(err)
	}
	sql, arg := b.sql.byKey, checked.Key
	if checked.LockID != "" {
		sql, arg = b.sql.byID, checked.LockID
	}
	live, err := b.live(ctx, sql, arg)
	switch {
	case err != nil:
		return fail(err)
	case len(live) == 0:
		return nil, nil
	case len(live) > 1:
		return fail(lock.DuplicateID(len(live)))
	default:
		return &live[0], nil
	}
}

// List implements lock.Lister: the live locks, sorted by key.
func (b *Backend) List(ctx context.Context) ([]lock.RawInfo, error) {
	if ctx.Err() != nil {
		return nil, lock.AbortedBy(ctx).At("list", "", "")
	}
	list, err := b.live(ctx, b.sql.all)
	return list, lock.Located(err, "list", "", "")
}

// live runs a query and describes the live locks that it finds.
func (b *Backend) live(ctx context.Context, sql string, args ...any) ([]lock.RawInfo, error) {
	rows, err := b.read(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	var list []lock.RawInfo
	for _, r := range rows {
		if !r.live() {
			continue
		}
		fence, err := lock.FormatFence(r.fence)
		if err != nil {
			return nil, err
		}
		list = append(list, lock.RawInfo{
			Info: lock.Info{
				KeyHash: b.hash(r.key), LockIDHash: b.hash(r.lockID),
				ExpiresAtMs: r.expiresAtMs, AcquiredAtMs: r.acquiredAtMs, Fence: fence,
			},
			Key: r.key, LockID: r.lockID,
		})
	}
	return list, nil
}

// CheckClock implements lock.ClockChecker. No lock depends on the local clock; a wrong one only
// makes helpers wait longer for a lock that expires.
func (b *Backend) CheckClock(ctx context.Context) (lock.ClockReport, error) {
	report, err := lock.MeasureClock(lock.SystemClock(), func() (time.Time, error) {
		var nowUs int64
		err := b.pool.QueryRow(ctx, "SELECT "+serverTime).Scan(&nowUs)
		return time.UnixMicro(nowUs), err
	})
	if err != nil {
		return lock.ClockReport{}, classify(ctx, err).At("checkClock", "", "")
	}
	return report, nil
}

// storable refuses the one key that no text of Postgres can hold.
func storable(key string) error {
	if strings.ContainsRune(key, 0) {
		return lock.Invalid("key holds a NUL character, which Postgres cannot store; leave it out")
	}
	return nil
}

// CheckDurability returns the server's settings with which it may lose commits and so issue a
// fence twice. Call it at start and log what it says.
func (b *Backend) CheckDurability(ctx context.Context) (warnings []string, err error) {
	var fsync, fullPages, local, unlogged bool
	var standbys int
	var sync string
	err = b.pool.QueryRow(ctx, b.sql.durability).Scan(&fsync, &fullPages, &standbys, &sync, &local, &unlogged)
	if err != nil {
		return nil, classify(ctx, err).At("checkDurability", "", "")
	}
	for _, row := range []struct {
		bad  bool
		text string
	}{
		{!fsync, "fsync is off: a crash of the machine may damage or lose locks and fences; set fsync = on"},
		{!fullPages, "full_page_writes is off: a crash of the machine may damage locks and fences; set full_page_writes = on"},
		{unlogged, "a table of the lock is UNLOGGED: a crash empties it and fences start again; ALTER TABLE ... SET LOGGED"},
		{standbys > 0 && sync == "", "standbys are asynchronous: one that is promoted may lack the last fences; set synchronous_standby_names"},
		{sync != "" && local, "synchronous_commit is local: a standby that is promoted may lack the last fences; set synchronous_commit = on"},
	} {
		if row.bad {
			warnings = append(warnings, row.text)
		}
	}
	return warnings, nil
}
