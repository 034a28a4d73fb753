// Package dispatch runs solve cycles. A cycle plans for an area, the depots whose drones
// serve the same orders (policy.AreasOf). Under the area's fenced lock it reads a
// consistent snapshot, plans (package planner), writes its record, publishes one decision
// per mission, hands over orders that another area serves better, and completes the
// record. At most one cycle of an area runs at a time. A cycle that loses its lease
// publishes nothing more; what it publishes too late carries a fence that the State
// Manager refuses.
//
// It decides nothing about the fleet: a decision becomes a mission only if the
// assignment policy agrees. It must never import the State Manager (app/manager).
//
// Failures are logged and recorded, and the next tick tries again: nothing is
// published without a record, and an order whose decision was not published
// stays pending.
//
// # Terms
//
//   - solve cycle, or cycle: one run for one area, as above.
//   - decision: a mission as the optimizer proposes it.
//   - unserved order: one that the plan does not serve, with the reason.
package dispatch
