// Package postgreslock keeps leases in PostgreSQL 14 or newer.
//
// A lock is a row of one table, deleted by its release; the fence counter of its key is a
// row of another table and stays for ever. [Migrate] makes both, with one function for
// each verb; [Schema] is the same as a file for your own migrations.
//
// # Time
//
// Leases end by the server's clock alone, read with clock_timestamp() after every wait for
// the key's advisory lock. A client's clock may be wrong: a holder counts, on its monotonic
// clock, what the server's answer says is left, from before the question was sent. What is
// left is that the server's clock runs on: set it forward by an hour, and all leases end
// an hour early while their holders work on; then only the fence protects. A standby that
// takes over must agree with the primary's clock within the tolerance of one second.
//
// # How a verb is made atomic
//
// Each verb is one call of a function, in a transaction of its own. Acquire and Extend
// take an advisory lock of the key before they read anything. In sessions whose default is
// REPEATABLE READ or SERIALIZABLE the statement's snapshot may be older than that lock;
// the server then refuses the write, and the call is made again as READ COMMITTED.
//
// # Failures
//
// An acquisition whose answer was lost is looked for by its lock id; if it is not found,
// the error has OutcomeUnknown set and releases are tried in the background. Extend is made
// again. So is Release: if the lock is then gone while its lease still lasted, the first
// call released it. If the lease is not known to last, because another backend acquired or
// extended it, the outcome stays unknown.
//
// What makes fences repeat: a server that loses commits. It may with fsync off, with a
// standby that is promoted without having all commits (set synchronous_standby_names), and
// with a backup that is restored. [Backend.CheckDurability] reports such settings. A session
// with synchronous_commit off is overruled for acquire and extend.
//
// # Waiting
//
// Waiters of one process share a listening connection of its own, beside the pool, and are
// woken in the order in which they came. While somebody waits for a key the process holds a
// second advisory lock of it, shared. A trigger tries that lock for each deleted row and
// notifies only if somebody waits: a release without waiters costs no NOTIFY, which
// serializes commits. A connection pooler that shares sessions between transactions
// supports neither; waiters then poll.
//
// # SyncGuard
//
// Tables, columns and advisory locks are those of SyncGuard 2.5.2 (TypeScript), so that
// processes of both contend for the same locks, and its releases wake our waiters. Where it
// is weaker:
//
//   - It reads the time with NOW(), which is when its transaction began, before it waited
//     for the advisory lock. Its lease may be over before it is granted, and its holder is
//     not told. It never takes a live lock for that.
//   - It extends without the advisory lock, and by that early time: a lock that was over
//     may live again. Acquire checks the end again as it writes, and starts over.
//   - It writes a lock without checking it again. Hence Extend takes the advisory lock too.
//   - A retry of its own acquisition, after a lost answer, is contention.
//   - Its setup makes lock ids unique if it runs first. Then one id on two keys, which the
//     contract allows, is ErrInvalidArgument.
//   - Its index on expires_at_ms slows every write; nothing here needs it.
//
// It must not import anything of this module but the lock package and lock/internal.
package postgreslock
