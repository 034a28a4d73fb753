// Package memlock keeps leases in the memory of one process, under the same
// contract as firestorelock: for tests, and for programs that run once.
//
// It excludes goroutines of this process only, and its fences start again when
// the process does: do not let them reach a resource that outlives it.
//
// It must not import a store, nor anything of this module but the lock
// package.
package memlock
