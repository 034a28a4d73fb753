// Package history records what clients of a lock did and saw, and checks that
// it could have happened on a lock with fences: that the calls can be put in
// one order that respects real time and explains every answer.
//
// Each call must be a step of the specification, package lockspec: the answer must be
// the one that its rules give for what the store held and for times that the clocks can
// have shown between call and return. In addition an acquisition is granted only when the
// last holder no longer relies on its lease. The fences say in which order leases were
// granted, so that the search is short.
//
// Calls whose outcome the caller does not know may have happened or not, until
// the server is known to be done with them. It is test support.
//
// It must not import a backend; its tests do.
package history
