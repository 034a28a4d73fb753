// Package store keeps the documents of one embedded Firestore database: every
// name has a list of immutable versions, and a commit publishes all of its
// versions in one step at one commit time. Reads take no lock: they pick a
// snapshot time and look for the newest version at or before it.
//
// All times are microseconds since 1970, the precision of Firestore's own.
//
// The package knows nothing of transactions, locks or RPCs and must never import
// the server or the lock table: callers must see to it that no two commits write
// one document at the same time. It fails only when its log does, and then for
// good: no commit after a failed log write succeeds.
package store
