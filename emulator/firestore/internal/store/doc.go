// Package store keeps the documents of one embedded Firestore database. Every name
// has a list of immutable versions. A commit publishes all of its versions in one
// step, at one commit time. Reads take no locks: they choose a snapshot time and see
// the newest version at or before it.
//
// All times are microseconds since 1970, the precision of Firestore.
//
// The package knows no transactions, locks or RPCs and must not import the server or
// the lock table. Callers must ensure that no two concurrent commits write the same
// document. It fails only when its Saver does; after that no commit succeeds.
package store
