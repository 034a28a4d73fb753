// Package plannersim flies hours of orders through the cycle's planner in seconds:
// the simulated drones of fleetsim, the same planner and checker as production,
// and between them a State Manager reduced to what a fault-free day needs of
// it. No server, no goroutine of its own, no clock of the machine: the same
// scenario and seed give the same result. It is what policies are tuned and
// regression-tested on; "go run ./bench/dynamic" proves them on the real
// system.
//
// What it leaves out: lost and late messages, refused decisions, faults, locks.
// A decision reaches its drone after a fixed latency. It must never be imported
// by what runs in production. It fails when the planner does; a plan the
// checker refuses fails the replay.
package plannersim
