// Package devrun runs a whole fleet in one process with nothing but Go:
// embedded Firestore and Pub/Sub, State Manager, optimizer, simulated drones
// and hospitals. It ends with a summary and the result of the invariant checker.
//
// The parts communicate only through the two servers, as they would in the cloud,
// so further State Managers and optimizers can join from other processes.
//
// RunFleet runs the simulated drones and hospitals alone, on a fleet of others.
//
// No production binary may import it. An error of Run means that the run could not
// start or did not end in order; broken invariants are in the summary.
package devrun
