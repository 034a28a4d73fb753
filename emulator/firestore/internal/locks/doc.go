// Package locks is the pessimistic lock table of the embedded Firestore. It has
// shared locks on document names, shared locks on the ranges that queries scanned,
// and exclusive locks that a commit takes all at once.
//
// Conflicts are resolved by wound-wait (Rosenkrantz, Stearns and Lewis, 1978): an
// older owner aborts ("wounds") younger holders, a younger owner waits. So an owner
// waits only for older ones, or for one that is committing and waits for nobody,
// and no deadlock can form.
//
// The package knows names, ages and changes, but no storage, RPCs or statuses, and
// must not import the server or the store. It fails with ErrWounded,
// ErrWaitTimeout, ErrLockDeadline, the cause with which an owner was aborted, or
// the error of the context.
package locks
