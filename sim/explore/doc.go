// Package explore is a bounded model checker for the fleet's rules. It runs the real
// functions of package policy on a small world of up to two drones, three orders, two
// State Managers and any number of optimizers, follows every history of that world
// breadth first, and checks the invariants in every state. The first history that breaks
// one is the shortest; the package prints it as a story.
//
// # What is modelled
//
// The store holds drones, orders, missions, the ledger and the highest fence. A
// transaction reads, decides by a policy and commits atomically. A slow one is dated when
// it begins and commits later; if something else wrote what it has read, it fails and its
// message is redelivered. A State Manager may die between commit and ack, or
// between commit and publishing the command.
//
// Messages (reports, requests, decisions, commands) are delivered in any order, late,
// twice or, where that can happen, never. A snapshot shows what is committed. Every plan
// that the snapshot allows is tried; its fence is the lock's next one, or the previous one
// for a holder that lost its lease. The world "forged" adds decisions that no optimizer
// makes.
//
// The worlds "areas", "readdressed", "grouped", "regrouped", "founded" and "passed" have three depots.
// Those within a radius are one planning area; each area has a lock, fences and a control
// document of its own. A snapshot shows the area's orders and drones, the first area's also
// the orders that no depot plans. A cycle hands an order over in a transaction of its own,
// under its fence and some time after its snapshot: any order of its area to any depot of
// another area, more than the planner chooses. Depots are added and deleted, which joins and
// splits areas; State Managers may still know the depots of the beginning, and the sweeper
// finds another depot. One order comes before there is any, one gets a new place of delivery,
// one was handed over three times before the histories begin, which leaves it one hand-over.
// "passed" adds hand-overs that no honest cycle makes. In most of them drones report in the
// fair end only.
//
// In the world "owned" two members own two areas, and each ownership has one fence for all its cycles.
// Leases are not modelled: a member may take an area at any time, and the one that had it goes on, as
// one that was frozen or has a wrong clock does.
//
// In the world "moved" an order waits at a warehouse, which an operator moves to another place
// in a transaction that reads every ACTIVE mission and marks the document that decisions read.
// Package adapters/firestoretx decides that move; visitors and markedAtCommit restate it. A
// move within the stop tolerance, which does neither, is not modelled.
//
// Drones fly, hover, give up, break, fall silent and report at most once a tick. The state
// holds what they really do as well as what the store records, so that the two can be
// compared. Time is a clock of a few ticks; the contract's limits are scaled down to it
// in the same order (see DefaultLimits).
//
// In the world "boaster" drones have a top speed. An honest one flies a leg of its route in a
// tick. One that lies claims every stop, from where it is or from where it cannot be.
//
// # What is checked
//
// I1 to I9 of package invariant, on states or on single changes, and in addition:
//
//	I10    no parcel is sent again if reports in the store prove that it was put down,
//	       or while such a report is under way and within the grace
//	I12    no decision is applied to a drone that nobody has registered, or that is retired
//	I11    a mission picks its orders up where they wait and flies them to where they are
//	       wanted; no ACTIVE mission or its amendment leads to where the warehouse is not, and
//	       a DELIVERED order was picked up where that was when the order's decision was applied
//	TRUE   what the store calls IN_DELIVERY or DELIVERED was picked up or put down; a mission
//	       without orders is not COMPLETED before its drone has waited
//	I1     also: an order that a drone in flight is about to serve, by whatever revision it
//	       flies in truth, belongs to its mission, so that no other drone is given it
//	AIR    nobody flies a mission that was given up because its drone did not know of it
//	       or had left it
//	READY  an applied decision fits the drone, battery, load, route and snapshot, and one
//	       with orders for a mission that has none is applied unless something stands
//	       against it
//	AREA   each order that waits is planned by exactly one area, in every state with a depot;
//	       a hand-over takes an order that waits from a depot of the cycle's area, which plans
//	       it, to one that exists and has not had it, four times at most; one that is refused
//	       has no effect; a new order, one that is wanted elsewhere and one whose depot is gone
//	       come to the nearest depot, and no other order moves
//	DUE    what the sweeper has something to do about is due by then (F-SWP-01), so that it is found
//	CLAIM  in the place of TRUE for a drone that lied (F-SND-03): it could have picked up or put
//	       down what the store says, by where its reports that are possible say that it was; a
//	       drone that told no lie is not recorded as implausible
//	LIVE   in every state with nothing under way, if nothing more goes wrong until every
//	       limit has passed (a fair end), each order is delivered, cancelled or visibly
//	       waiting with no area's drone left that could serve it, and no drone flies a
//	       failed mission
//
// The checks do not use the policies' code. Tests remove each rule of the contract and
// expect one of these checks to fail, after a known number of steps.
//
// # What is not checked
//
// A decision whose fence equals the highest applied is accepted without reading the lock's
// counter (F-DEC-07). If an earlier version applied a forged fence, further decisions
// with that fence pass until the next cycle's decision lowers it. The exploration found
// this; the world "blocked" leaves such decisions out.
//
// Not modelled are distances outside "boaster" (a drone is at a stop or at none), batches of telemetry
// (package policy's tests show that a batch is the fold of its reports), the lock, the
// wire format and caches of the adapters. An optimizer amends a mission by any choice of
// its orders and those that wait; no stop is almost reached. A mission without orders waits
// until a time; charging would be the same with a battery. A depot does not move. readByArea
// restates the queries by which the store reads an area's orders. A decision of an area that
// no longer plans its orders is applied: the first of two decisions wins. Package faultsim runs
// the real adapters.
//
// Each world bounds its clock, the messages under way at once, and how often each thing
// goes wrong. A waiting drone has at most one report under way. Within these bounds,
// everything that can happen is followed to the depth that the test logs.
//
// # How the number of states stays small
//
//   - Documents and messages are interned: a state is under 200 bytes of numbers, and two
//     histories that lead to equal documents, messages and real drones meet in one state.
//     This loses nothing. Every field counts, except those that policies only copy:
//     revisions (checked when they are written), the times of ledger entries, and when a
//     command was published.
//   - A policy's answer is cached under everything that it read. Policies are pure, which
//     their own tests check, so the answer would be the same.
//   - State Managers are interchangeable, so their transactions are kept sorted. A
//     transaction that another commit makes fail ends at once, as it has no effect. An
//     undisturbed one is a single step.
//   - Commands are published with the commit, because they may be delayed on the way
//     anyway; dying in between is a separate step. Commands that have expired by the
//     store's clock are removed, because no drone's clock in the model is behind it.
//   - Seen states are kept as 64-bit hashes. Among two million states of a world, the
//     probability that any two collide, which would hide one, is one in ten million.
//
// # Reading a story
//
// Each line is a step and the tick at which it happens; the line under it says what
// changed: documents, what drones really do, and what was sent. D1 is a drone, O1 an
// order, X1 a decision, M-X1 its mission. Decimals of a time order what happens within
// one tick. TestStory_ADroneIsFreedBeforeItsCommandArrives shows the story of removing the
// rule that an IDLE report frees an unacked drone only after its command has expired.
//
// To follow longer histories: go test ./sim/explore -run Contract -v -limit 1000000
//
// The package is for tests; no binary may import it. It must not import adapters, and of
// package policy it uses only what adapters use. It fails with a Violation, or panics if
// a world needs more documents than it can number.
package explore
