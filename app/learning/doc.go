// Package learning learns from the past: how fast the fleet's drones really fly and how long
// they stay at stops, how much later than planned deliveries are, and when and where orders
// come. It adds ended missions and new orders to sums in the store, and estimates from the
// sums.
//
// Everything is bounded. Sums fade, so that old observations count less. An estimate starts
// at an assumed value, moves away from it as observations gain weight, and stays within
// limits. Implausible legs, such as kilometres in no time, are counted and ignored.
//
// Adding and estimating are pure. A Learner does both for an area with a store, and counts
// each mission and order at most once, whatever the number of processes and areas.
//
// Errors are those of the store. It must not import the planner, which plans with its
// estimates, or an adapter.
package learning
