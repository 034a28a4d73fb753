// Package explain answers, for the command line and for the HTTP API, why an order waited
// or was late: it reads the fleet as it was and lets package planner explain.
//
// It only reads. It must never publish, take a lock or import a command. It fails if the
// time cannot be read, or if the order was not open then.
package explain
