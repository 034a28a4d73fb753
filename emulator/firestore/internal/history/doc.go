// Package history records what the transactions of an embedded Firestore read and
// wrote, and checks that they are serializable: that running them one after the
// other, in some order, would have had the same effects. Where real times are
// known, the order must agree with them (strict serializability).
//
// A transaction is described by the versions that it read, as update times in
// microseconds; 0 is a document that was never written. The times order the
// versions of a document, so it is known which transaction overwrote which.
//
// The package must not import the server. Check fails with a cycle that no order
// explains, or with a read of a version that no transaction wrote.
package history
