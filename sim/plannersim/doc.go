// Package plannersim replays hours of orders through the planner in seconds. It
// has the simulated drones of fleetsim, the planner and checker of production,
// and between them the policies of the State Manager.
// There is no server, and only the measurement Result.Slowest depends on the
// machine's clock: the same scenario and seed give the same result. Planning rules
// are tuned and regression-tested on it; "go run ./bench/dynamic" confirms them on
// the real system.
//
// A Scenario can have demand shocks and drones that break down, but no lost or late
// messages, other faults or locks. A decision reaches its drone after a fixed latency. The
// package must never be imported by production code. It fails when the planner does; a plan
// that the checker refuses must be reported through planner.Config.Refused.
package plannersim
