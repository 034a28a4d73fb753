// Package lockspec is the specification of the lock protocol, and a bounded model
// checker that follows every history of small worlds in which it runs.
//
// # The specification
//
// [Rules] says what a store does with one key: Acquire, Extend, Release and Break are
// functions of the lock, the request and what the clocks show. The same functions judge
// recorded runs of the real backends (package lock/internal/history): each recorded
// answer must be the one that they give.
//
// # What is modelled
//
// Two clients contend for one key. Calls are answered at once, or slowly: then each
// stage (request, read of the caller that decides by itself, write, reply) is a step of
// its own between which anything else may happen. Requests and replies are lost, or
// arrive after their caller has given up. A client whose acquisition has an unknown
// outcome asks again with the same id, or releases that id in the background and goes
// on with a new one. Clients crash, extend for a longer or shorter time, and are paused
// between the look at their clock and a write to the resource. An operator breaks the lock.
//
// Time is a clock of a few ticks. Clients have wall clocks that differ and may be set,
// and monotonic clocks that show true intervals. A store decides by its own clock, by its
// clients', or by both ([Authority]).
//
// # What is checked
//
// In every state, or with every step: see [Property]. [Variants] lists worlds with one
// rule or assumption missing; a test expects each to break its property after a known
// number of steps.
//
// # What is not modelled
//
// Keys, document formats, duplicated ids, calls by id without a key, cleanup, waiting,
// retry delays, clocks that run at a wrong rate, clients with and without the guard on one
// key, and more than two clients. The contract suite (locktest) and recorded histories
// cover the first seven.
//
// # Reading a story
//
// Each line is a step and the tick at which it happens; the lines under it say what the
// store holds and what clients believe. It is the shortest history that breaks the
// property. All of them: go test ./lock/lockspec -run Variant -v
//
// To follow longer histories: go test ./lock/lockspec -run Specification -v -limit 1000000
//
// The package is for tests; no binary may import it. It must not import anything of this
// module. It fails with a Violation.
package lockspec
