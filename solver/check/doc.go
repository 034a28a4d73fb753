// Package check replays a plan from raw coordinates and lists every rule it
// breaks: pairing, precedence, one route per drone, stock and cold chain,
// payload, landing reserve, flight time, start and end, each order exactly once
// in a route or unserved, stored times, charges and totals, the objective.
//
// It imports only the plain values of solver/model and must never import the
// solver: it shares no formula with what it judges. It is fast enough to run on
// every plan before the plan is published. It never panics; a plan it rejects
// must not be flown.
package check
