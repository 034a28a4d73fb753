// Package faultsim is the fault-injection simulation: several State Managers and
// optimizers, a simulated fleet and simulated hospitals run against the embedded
// servers while a seeded plan injects faults into all of them. Then every fault
// ends, the backlog is drained, and the invariant checker examines what is left:
// event log, ledger, documents, dead letters, and the messages that the servers
// confirmed to their senders. One rule leaves no trace in the end and is checked
// during the run: no report is acked before its effect is stored. Decisions and reports
// are forged as well: with fences that no lock handed out, and in the name of drones that
// made no such report or do not exist.
//
// A seed repeats the world (fleet, orders, clock errors) and the plan (which
// fault, when, for how long and how hard). It does not repeat the interleaving:
// goroutines, sockets and the scheduler are real, so a failing seed fails again
// with some probability, not with certainty.
//
// Shrink reduces a failing plan to the faults that the failure needs:
//
//	go test ./sim/faultsim -run EveryFault -faultsim.seed 7 -faultsim.seeds 1 -faultsim.shrink 3
//
// The package is for tests. No binary may import it, and it must not import
// policy: a rule of the fleet would be checked against itself. An error of Run
// means that the simulation could not be run; what the product did wrong is in
// the Result.
package faultsim
