// Package fairness checks that whoever waits for a lock has it in about their turn.
//
// It is test support. It must not import a backend.
package fairness
