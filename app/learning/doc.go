// Package learning learns from what happened: how fast the fleet's drones really fly and how
// long they stay at stops, how much later than planned deliveries are, and when and where
// orders come. It takes in missions that ended and orders that came, keeps sums of them in
// the store, and estimates from the sums.
//
// Everything is bounded: sums fade, so that what is old counts less; an estimate begins at
// what is assumed without a past, and moves away only as far as observations weigh; and it
// stays within limits. A leg that no drone flies, such as one of no time, is counted and
// otherwise ignored.
//
// Taking in and estimating are pure. A Learner does it with a store: at most once for each
// mission and order, whatever the number of processes.
//
// Errors are those of the store. It must not import the planner, which plans with its
// estimates, or an adapter.
package learning
