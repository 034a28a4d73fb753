// Package lock provides leases with fencing tokens on a shared store.
//
// A lease is a lock that is held until it is released or its time to live has passed, so a
// crashed holder blocks others for at most that long. Every acquisition gets a [Fence], a
// token that is greater than every earlier token of its key.
//
// # What a lease proves, and what it does not
//
// No lease can stop a holder that was paused past its end from acting. Pass the fence with
// every write to the protected resource, and let the resource refuse a fence lower than the
// highest it has seen. A resource that cannot compare fences gets mutual exclusion only while
// clocks are synchronised and no holder sleeps through its lease.
//
// # Use
//
// [Do] acquires, runs a function once and releases, also after a panic. [WithAutoExtend] keeps
// the lease alive meanwhile and cancels the function's context when that fails. [Acquire] and
// [TryAcquire] return a [Handle] for work that does not fit one function. Below them are the
// five verbs of [Backend], which make one attempt per call and never wait.
//
// # Outcomes
//
// Contention and absence are answers, not errors: OK is false and a Reason says what was seen.
// Every error is an [*Error] whose [Code] says what to do; compare with [errors.Is] and a
// sentinel such as [ErrServiceUnavailable]. Error texts and logs hold neither keys nor lock
// ids; the fields of Error do.
//
// # Time
//
// A holder stops at the end of its lease, on its monotonic clock ([AcquireResult.Deadline]);
// others may take the lock one second ([Tolerance]) later. Redis and PostgreSQL judge expiry
// by the server's clock, Firestore by the clients' clocks, guarded by the server's. Clients of
// Firestore must have synchronised clocks: 100 ms is the target, 200 ms a warning, and a
// client that is 500 ms or more off takes no lock.
//
// The backends are firestorelock (Google Cloud Firestore), redislock, postgreslock and memlock
// (one process); locktest is the contract they share.
//
// The package must not import a store or any other package of this module.
package lock
