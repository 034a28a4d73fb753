// Package firestorelock keeps leases in Google Cloud Firestore.
//
// Every lock is a document in one collection and every fence counter a
// document in another; ids, fields and the liveness rule are those of
// SyncGuard 2.5.2 (TypeScript), so that processes of both contend for the same
// locks.
//
// # How an acquisition is made atomic
//
// Acquire reads the lock and its counter in one batched read, which takes no
// locks in the database, and writes both in one commit whose preconditions
// demand that neither has changed since. The commit is a transaction of its
// own: it applies wholly, after a check of everything that was read, or not at
// all. A read-write transaction would give the same guarantee, but its read
// locks make waiting processes obstruct the holder, and the client library
// sleeps up to a second after every conflict. It is used where a third
// document has to be read, for the first acquisition of a key, and wherever
// the version of a document is not known.
//
// Keyed Release and Extend are one commit with the version that this backend
// wrote as precondition; if that fails, a transaction decides.
//
// # Failures
//
// An error of a commit does not say whether it was applied. Acquire then reads
// the lock to find out; if it cannot, the error has OutcomeUnknown set and one
// release is tried in the background. Extend is made again, and a Release that
// finds its lock gone after a commit whose reply was lost counts as released. To
// know of commits that the client library sent again by itself, the backend needs
// a client dialed with [DialOption].
//
// # Clocks
//
// With the server-time guard (on, unless a Clock is configured) the times the
// server returns are used beside the local clock: a lock is taken only when it
// is over by both, an expiry is written from the later of both, and a lease is
// trusted only while both prove it. Among processes with the guard a skewed
// clock cannot produce two holders. Processes without it need synchronised
// clocks: see [Backend.CheckClock].
//
// The guard also writes how long a lease lasts, in a field of its own. Every reader
// knows the server's update time of the document, so a lease is over when the
// server's clock is past update time + TTL + tolerance, whatever end its holder's
// clock wrote. The holder stops first: it counts the TTL on its monotonic clock from
// before it sent the write, and the server's update time is later than that. The
// length counts only beside the end that it was written with, because peers that
// extend a lease set its end alone.
//
// A clock that the server's answers prove to be 500 ms or more off takes and extends
// no lock: see [Config.MaxClockSkew].
//
// # Keys
//
// A key is a document path below the lock collection. One that is none (a/b, ..,
// __x__) is refused, or hashed: see [Config]. a/b/c names a nested document, which
// queries do not see: by its id alone, and so by lock.GetByID and lock.Owns, such
// a lock is found only through the backend that acquired it, and List leaves it
// out.
//
// # Index
//
// Calls by lock id alone need the ascending collection-scope index on lockId
// of the lock collection: automatic in Standard edition, to be created in
// Enterprise edition. Exempt all other fields of both collections from
// indexing: expiresAtMs rises with time, and an index on such a field caps the
// whole collection at about 500 writes per second.
//
// It must not import anything of this module but the lock package.
package firestorelock
