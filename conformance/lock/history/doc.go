// Package history records what clients of a lock did and saw, and checks that a lock with
// fences could have behaved so: the calls have an order that respects real time and explains
// every answer.
//
// Each answer must be the one that the rules of package lockspec give, for times that the
// clocks can have shown. An acquisition is granted only when the last holder no longer relies
// on its lease. A call of unknown outcome may have happened or not, until the server is known
// to be done with it.
//
// It is test support. It must not import a backend; its tests do.
package history
