// Package explore is a bounded model checker for the fleet's rules. It runs the real
// functions of package policy on a small world of up to two drones, three orders, two
// State Managers and any number of optimizers, follows every history of it breadth
// first, and checks the invariants in every state. The first history that breaks one
// is the shortest, and is told as a story.
//
// # What is modelled
//
// The store holds drones, orders, missions, the ledger and the highest fence. A
// transaction reads, decides by a policy and commits whole. One that is slow is dated
// when it begins and commits later; if something else wrote what it has read, it is over
// and its message comes again. A State Manager may die between commit and ack, or
// between commit and publishing the command.
//
// Messages (reports, requests, decisions, commands) are delivered in any order, late,
// twice or, where that can happen, never. A snapshot shows what is committed; the plan
// made from it is any that the snapshot allows, and its fence is the next of the lock, or
// the last one for a holder that lost its lease. The world "forged" adds decisions that
// no optimizer makes.
//
// Drones fly, hover, give up, break, fall silent and report at most once a tick. What
// they do in truth is kept beside what the store believes, so that the two can be
// compared. Time is a clock of a few ticks; the contract's limits are scaled down to it
// in the same order (see DefaultLimits).
//
// # What is checked
//
// I1 to I9 of package invariant, on states or on single changes, and beside them:
//
//	I10    no parcel that was put down, by any evidence the store has, is sent again,
//	       nor while such evidence is under way and within the grace
//	TRUE   what the store calls IN_DELIVERY or DELIVERED was picked up or put down, and
//	       a mission flies to where its order is wanted
//	AIR    nobody flies a mission that was given up because its drone did not know of it
//	       or had left it
//	READY  an applied decision rests on what is: drone, battery, load, route, snapshot
//	LIVE   wherever nothing is under way, a history may come to its fair end: nothing
//	       more goes wrong until every limit has passed. Then each order is delivered,
//	       cancelled or visibly waiting, and no drone flies a failed mission
//
// The checks do not use the policies' code. Tests remove each rule of the contract and
// expect one of these to notice, after a known number of steps.
//
// # What is not
//
// A decision whose fence equals the highest applied is taken without a look at the lock's
// counter (F-DEC-07). If an earlier version applied a forged fence, further decisions
// with that fence pass until the next cycle's decision lowers it. The exploration found
// this; the world "blocked" leaves such decisions out.
//
// Distances (a drone is at a stop or at none), batches of telemetry (policy's tests show
// that a batch is the fold of its reports), the lock, the wire format, caches of the
// adapters, and amended missions. Package faultsim runs the real adapters. Each world
// bounds its clock, the messages under way at once, and how often each thing goes wrong. A
// drone that waits has one report of that under way at most. Within that, everything that
// can happen is followed to the depth that the test logs.
//
// # Why few states stand for many
//
//   - Documents and messages are interned: a state is some 130 bytes of numbers, and two
//     histories that lead to equal documents, messages and truth meet in one state. That
//     is exact. Every field counts, except those that policies only copy: revisions
//     (checked when they are written), the times of ledger entries, and when a command
//     was published.
//   - A policy's answer is remembered by everything that it read. Policies are pure, which
//     their own tests check, so the answer would be the same.
//   - State Managers are alike, so their transactions are kept in one order. A
//     transaction that is over at the next commit is ended at once: whatever it does
//     later has no effect. One that nothing disturbs is a single step.
//   - Commands are published with the commit, as any delay until they arrive is possible
//     on the way; dying in between is a step of its own. Commands that have expired by
//     the store's clock are taken off, as no drone's clock in the model is behind it.
//   - Seen states are kept as 64-bit hashes. Among two million states of a world, the
//     probability that any two collide, which would hide one, is one in ten million.
//
// # Reading a story
//
// Each line is a step and the tick at which it happens; the line under it says what
// changed: documents, what drones do in truth, and what was sent. D1 is a drone, O1 an
// order, X1 a decision, M-X1 its mission. Decimals of a time tell apart what happens
// within one tick. Removed on purpose, the rule that an IDLE report frees an unacked
// drone only after its command expired makes the story of
// TestStory_ADroneIsFreedBeforeItsCommandArrives.
//
// To follow longer histories: go test ./sim/explore -run Contract -v -limit 1000000
//
// The package is for tests; no binary may import it. It must not import adapters, and of
// package policy it uses only what adapters use. It fails with a Violation, or panics if
// a world needs more documents than it can number.
package explore
