// Package policy decides: given the state of a drone, its mission and their
// orders, something that happened and the time, it returns the state that
// follows and the events that record it, or a Rejection with a stable reason.
//
// Policies are pure functions of their arguments: no clock, no randomness, no
// store, no wire format. A store may rerun them whenever it retries a
// transaction. Package policy must not import anything but domain and the
// standard library. It fails only with a *Rejection.
package policy
