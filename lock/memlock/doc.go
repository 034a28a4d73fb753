// Package memlock keeps leases in the memory of one process: for tests, and for programs that
// run once. Its fences start again with the process, so do not pass them to a resource that
// outlives it.
//
// Of this module it may import only the lock package and lock/internal, and no store.
package memlock
