// Package solver plans which idle drone delivers which pending orders, from
// which warehouse and in which sequence: a pickup-and-delivery problem with
// deadlines, batteries, payloads, alternative pickup places and optional
// orders, solved anytime within seconds on two cores.
//
// The method is ruin and recreate by slack induction on pickup-delivery pairs
// (strings of neighbouring routes are removed, then reinserted greedily or, one
// time in ten, by regret, with blinks over all warehouses of the routes around)
// under simulated annealing, with an order bank whose value is lexicographic: no
// distance buys an urgent order off. A step that can no longer be accepted is left
// at once. The most urgent orders are planned first and alone, then with the next
// rank, and so on until all are. Routes exchange tails where both are empty, and routes of
// earlier bests are put back and recombined. Two chains share what they find;
// problems above 300 orders are cut into clusters whose borders move. Tiny ones are
// tried afresh many times, and then the best combination of all routes tried, and of
// their kin, is found by branch and bound.
//
// An order that some drone could still deliver in time is planned in time or
// not at all; what is left over at the end is added late where that costs
// nobody else's deadline. An order that is too late for every drone ranks below
// all that are not, and one rank higher for every Params.AgingStep it is
// overdue; in the highest rank it then outweighs one order more per step. So
// nothing feasible waits without end.
//
// The package takes and returns plain values (solver/model). It must never
// import a store, a wire format or a message bus, nor read a clock except the
// one in Options. It never panics on bad input: impossible orders and broken
// records come back with a reason. Every plan should pass solver/check before
// it is used; that package shares no code with this one.
package solver
