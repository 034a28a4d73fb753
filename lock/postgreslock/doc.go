// Package postgreslock keeps leases in PostgreSQL 14 or newer.
//
// A lock is a row of one table, deleted by its release; the fence counter of its key is a row
// of another and stays for ever. [Migrate] creates both, with one function for each verb;
// [Schema] is the same as a file for your own migrations.
//
// # Time
//
// Leases end by the server's clock alone, read with clock_timestamp() after every wait for
// the key's advisory lock. A client's clock may be wrong: a holder counts what the server says
// is left, on its monotonic clock, from before the question was sent. If the server's clock is
// set forward, leases end early while their holders work on, and only the fence protects. A
// standby that takes over must agree with the primary within one second.
//
// # How a verb is made atomic
//
// Each verb is one call of a function, in its own transaction. Acquire and Extend take an
// advisory lock of the key before they read. In sessions whose default is REPEATABLE READ or
// SERIALIZABLE the snapshot may be older than that lock; the server then refuses the write,
// and the call is repeated as READ COMMITTED.
//
// # Failures
//
// An acquisition whose answer was lost is looked up by its lock id. If it is not found, the
// error has OutcomeUnknown set and releases are tried in the background. Extend is repeated,
// and so is Release: if the lock is then gone while its lease still lasted, the first call
// released it. If another backend acquired or extended the lease, the outcome stays unknown.
//
// Fences repeat if the server loses commits: with fsync off, after the promotion of a standby
// that lacks some (set synchronous_standby_names), and after a backup is restored.
// [Backend.CheckDurability] reports such settings. Acquire and extend overrule a session's
// synchronous_commit = off.
//
// # Waiting
//
// Waiters of one process share a listening connection beside the pool and are woken in their
// order. While somebody waits for a key, the process holds a second, shared advisory lock of
// it. A trigger tries that lock for each deleted row and notifies only if somebody waits,
// because NOTIFY serializes commits. With a pooler that shares sessions between transactions
// neither works, and waiters poll.
//
// # SyncGuard
//
// Tables, columns and advisory locks are those of SyncGuard 2.5.2 (TypeScript), so that
// processes of both contend for the same locks, and its releases wake our waiters. It is
// weaker:
//
//   - It reads NOW(), the start of its transaction, before it waits for the advisory lock. Its
//     lease may be over before it is granted, and its holder is not told.
//   - It extends without the advisory lock and by that early time, so a lock that was over may
//     live again. Acquire checks the end again as it writes, and starts over.
//   - It writes a lock without checking it again. Hence Extend takes the advisory lock too.
//   - It treats a retry of its own acquisition, after a lost answer, as contention.
//   - If its setup runs first, lock ids are unique. Then one id on two keys, which the contract
//     allows, is ErrInvalidArgument.
//   - Its index on expires_at_ms slows every write; nothing here needs it.
//
// It must not import anything of this module but the lock package and lock/internal.
package postgreslock
