// Package history records what transactions on an embedded Firestore read and
// wrote, and checks whether some order of them one after the other explains it:
// serializability, or with real time taken into account strict serializability.
//
// A transaction is told by the versions it saw, as update times in microseconds;
// 0 stands for a missing document that was never written. Versions of one
// document are ordered by their times, so no guess is needed about who
// overwrote whom.
//
// It must never import the server. Check fails with the cycle that no order can
// explain, or with a read of a version nobody wrote.
package history
