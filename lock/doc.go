// Package lock provides leases with fencing tokens on a shared store.
//
// A lease is a lock with an end: it is held until it is released or until its
// time to live has passed, whichever comes first, so a crashed holder blocks
// others for at most that long. Every successful acquisition of a key gets a
// [Fence], a token that compares as a string and is greater than every earlier
// token of that key, for ever.
//
// # What a lease proves, and what it does not
//
// No lease can stop a holder that was paused past its end from acting. Pass
// the fence with every write to the protected resource, and let the resource
// refuse a fence lower than the highest it has seen. The lock makes conflicts
// rare; the fence makes them harmless. A resource that cannot compare fences
// gets mutual exclusion only while clocks are synchronised and no holder
// sleeps through its lease.
//
// # Use
//
// [Do] acquires, runs a function once and releases, also after a panic.
// [WithAutoExtend] keeps the lease alive meanwhile and cancels the function's
// context when that fails. [Acquire] and [TryAcquire] return a [Handle] for
// work that does not fit one function. The five verbs of [Backend] lie below
// them; a backend makes one attempt per call and never waits.
//
// # Outcomes
//
// Contention and absence are answers, not errors: OK is false, the error is
// nil and a Reason says what was seen. Every error is an [*Error] whose [Code]
// says what to do about it; compare with [errors.Is] and a sentinel such as
// [ErrServiceUnavailable]. Error texts and logs hold neither keys nor lock
// ids; the fields of Error do.
//
// # Time
//
// Others may take a lock only one second ([Tolerance]) after its end, while the
// holder counts it as over at its end exactly, on its monotonic clock
// ([AcquireResult.Deadline]). Redis and PostgreSQL judge expiry by the server's
// clock, Firestore by the clients' clocks, guarded by the server's. With
// Firestore clocks must be synchronised: 100 ms is the target, 200 ms a warning,
// and a client that is 500 ms or more off takes no lock.
//
// The backends are firestorelock (Google Cloud Firestore), redislock,
// postgreslock and memlock (one process); locktest is the contract they share.
//
// The package must not import a store or any other package of this module.
package lock
