// Package devrun runs a whole fleet in one process with nothing but Go:
// embedded Firestore and Pub/Sub, State Manager, optimizer, simulated drones
// and hospitals. It ends with a report and the verdict of the invariant
// checker.
//
// The parts meet only through the two servers, as they would in the cloud, so
// further State Managers and optimizers can join from other processes.
package devrun
