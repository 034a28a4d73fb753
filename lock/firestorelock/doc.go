// Package firestorelock keeps leases in Google Cloud Firestore.
//
// Every lock is a document in one collection and every fence counter a document in another.
// Ids, fields and the liveness rule are those of SyncGuard 2.5.2 (TypeScript), so that
// processes of both contend for the same locks.
//
// # How an acquisition is made atomic
//
// Acquire reads the lock and its counter in one batched read, which takes no locks in the
// database, and writes both in one commit on condition that neither has changed. A read-write
// transaction would be as safe, but its read locks make waiters obstruct the holder, and the
// client library sleeps up to a second after every conflict. Transactions are used for the
// first acquisition of a key, which reads a third document, and where the version of a
// document is not known.
//
// Keyed Release and Extend are one commit, on condition of the version that this backend
// wrote; if that fails, a transaction decides.
//
// # Failures
//
// An error of a commit does not say whether it was applied, so Acquire reads the lock to find
// out. If it cannot, the error has OutcomeUnknown set, and one release is tried in the
// background. Extend is repeated. A Release that finds its lock gone after a commit with a
// lost reply counts as released. To notice commits that the client library repeats, dial the
// client with [DialOption].
//
// # Clocks
//
// The server-time guard, on unless a Clock is configured, uses the times that the server
// returns beside the local clock: a lock is taken only when it is over by both, an expiry is
// written from the later of both, and a lease is trusted only while both prove it. Among
// processes with the guard a skewed clock cannot produce two holders. Processes without it
// need synchronised clocks: see [Backend.CheckClock].
//
// The guard also writes how long a lease lasts. By the server's clock a lease is over at
// update time + TTL + tolerance, whatever end its holder's clock wrote. The holder stops
// first: it counts the TTL on its monotonic clock from before it sent the write. The length
// counts only beside the end that it was written with, because peers that extend a lease set
// its end alone.
//
// A clock that the server's answers prove to be 500 ms or more off takes and extends no lock:
// see [Config.MaxClockSkew].
//
// # Keys
//
// A key is a document path below the lock collection. Other keys (a/b, .., __x__) are refused
// or hashed: see [Config]. a/b/c names a nested document, which queries do not see: by its id
// alone only the backend that acquired it finds it, and List leaves it out.
//
// # Index
//
// Calls by lock id alone need the ascending collection-scope index on lockId of the lock
// collection: automatic in Standard edition, to be created in Enterprise edition. Exempt all
// other fields of both collections from indexing, because an index on a rising value such as
// expiresAtMs caps the collection at about 500 writes per second.
//
// It must not import anything of this module but the lock package.
package firestorelock
