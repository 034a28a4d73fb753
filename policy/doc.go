// Package policy decides: given the state of a drone, its mission and their
// orders, something that happened and the time, it returns the state that
// follows and the events that record it, or a Rejection with a stable reason.
//
// Policies are pure functions of their arguments. They read no clock, draw no
// randomness, know no store and no wire, and may be run any number of times on
// the same input; that is what lets a store rerun them whenever a transaction
// is retried. Package policy imports domain and the standard library only.
package policy
