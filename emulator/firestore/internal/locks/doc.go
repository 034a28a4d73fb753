// Package locks is the pessimistic lock table of the embedded Firestore: shared
// locks on document names, shared locks on what a query scanned, and exclusive
// locks that a commit takes all at once. Conflicts are settled by wound-wait: an
// older owner aborts the younger holders in its way, a younger one waits. Every
// wait therefore points from younger to older, or to an owner that is already
// committing and waits for nobody, so no deadlock can form.
//
// It knows names, ages and changes, but no storage, RPC or wire status; it must
// never import the server or the store. It fails by returning one of its
// sentinel errors (ErrWounded, ErrWaitTimeout, ErrLockDeadline, or the cause an
// owner was aborted with) or the context's own error.
package locks
