// Package solver plans which idle drone delivers which pending orders, from
// which warehouse and in which sequence: a pickup-and-delivery problem with
// deadlines, batteries, payloads, alternative pickup places and optional orders.
// It always has a plan, and improves it until a time limit of seconds, on two
// cores.
//
// The method is ruin and recreate: SISR (Christiaens and Vanden Berghe 2020) on
// pickup-delivery pairs under simulated annealing. Strings of stops are removed
// from neighbouring routes, then reinserted greedily with blinks or, one time in
// ten, by regret, over all warehouses of the routes around. Orders without a
// route are in a bank whose value is lexicographic: no distance outweighs a more
// urgent order. The search is staged: the most urgent orders are planned first
// and alone, then together with the next rank, until all are planned. Problems
// above 300 orders are cut into clusters whose borders move from round to round;
// smaller ones are searched by two chains that exchange their best. Problems of up
// to 20 orders are searched afresh many times, and set partitioning then finds
// the best combination of the routes tried.
//
// An order that some drone could still deliver in time is planned in time or
// not at all; what is left over at the end is added late where that costs no
// other order its deadline. An order that is too late for every drone ranks
// below all that are not, and one rank higher for every Params.AgingStep it is
// overdue; in the highest rank it then outweighs one order more per step. So no
// feasible order waits forever.
//
// The package takes and returns plain values (solver/model). It must never
// import a store, a wire format or a message bus, nor read a clock except the
// one in Options. It never panics on bad input: impossible orders and broken
// records come back with a reason. Every plan should pass solver/check before
// it is used; that package shares no code with this one.
package solver
