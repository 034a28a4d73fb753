// Package memlock keeps leases in the memory of one process: for tests, and for programs that
// run once. Its fences start again with the process, so do not pass them to a resource that
// outlives it.
//
// It must not import a store, nor anything of this module but the lock package and
// lock/internal.
package memlock
