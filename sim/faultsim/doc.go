// Package faultsim proves the State Manager under fire: several State Managers
// and optimizers, a simulated fleet and simulated hospitals run against the
// embedded servers while a seeded plan of faults strikes at all of them. Then
// everything is healed and drained, and the invariant checker judges what is
// left: event log, ledger, documents, dead letters, and the journal of what the
// servers confirmed to the world. What no longer shows in the end is watched on the
// way: no report is acked before its effect is stored.
//
// A seed repeats the world (fleet, orders, clock errors) and the plan (which
// fault strikes when, for how long and how hard). It does not repeat the
// interleaving: goroutines, sockets and the scheduler are real, so a failing
// seed fails again with some probability, not with certainty.
//
// The package is for tests. It must never be imported by a binary and holds no
// rule of the fleet. An error of Run means that the simulation could not be
// run; what the product did wrong is in the Result.
package faultsim
