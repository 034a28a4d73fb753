// Package history records what clients of a lock did and saw, and checks that
// it could have happened on a lock with fences: that the calls can be put in
// one order that respects real time and explains every answer.
//
// The model knows nothing of documents. A lock has a holder, the fence of the
// last grant, and the moment until which its holder may rely on it. An
// acquisition is granted only if there is no holder or if that moment has
// passed, with the next fence; only the holder's id releases and extends.
// Calls whose outcome the caller does not know may have happened or not, until
// the server is known to be done with them. It is test support.
//
// It must not import a backend.
package history
