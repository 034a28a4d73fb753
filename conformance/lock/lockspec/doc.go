// Package lockspec is the specification of the lock protocol, and a bounded model checker that
// follows every history of small worlds in which it runs.
//
// # The specification
//
// [Rules] says what a store does with one key: Acquire, Extend, Release and Break are functions
// of the lock, the request and the clocks. The same functions judge recorded runs of the real
// backends (package history).
//
// # What is modelled
//
// Two clients contend for one key. A call is answered at once, or slowly: then each stage
// (request, read of a caller that decides by itself, write, reply) is a step, and anything may
// happen between them. Requests and replies are lost or late. A client whose acquisition has an
// unknown outcome asks again with the same id, or releases that id in the background and goes
// on with a new one. Clients crash, extend for a longer or shorter time, and are paused before
// a write to the resource. An operator breaks the lock.
//
// Time is a clock of a few ticks. Clients have wall clocks that differ and may be set, and
// monotonic clocks that show true intervals. A store decides by its own clock, its clients', or
// both ([Authority]).
//
// # What is checked
//
// Every state or step: see [Property]. [Variants] lists worlds with one rule or assumption
// missing; a test expects each to break its property after a known number of steps.
//
// # What is not modelled
//
// Keys, document formats, duplicated ids, calls by id without a key, cleanup, waiting, retry
// delays, clocks that run at a wrong rate, clients with and without the guard on one key, and
// more than two clients. The contract suite (locktest) and recorded histories cover the first
// seven.
//
// # Reading a story
//
// Each line is a step and its tick; the lines under it say what the store holds and what
// clients believe. It is the shortest history that breaks the property. All of them:
// go test ./conformance/lock/lockspec -run Variant -v
//
// To follow longer histories:
// go test ./conformance/lock/lockspec -run Specification -v -limit 1000000
//
// It is for tests. It must not import anything of this module. It fails with a Violation.
package lockspec
