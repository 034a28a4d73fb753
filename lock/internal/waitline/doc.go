// Package waitline queues the acquisitions of one process that wait for locks: a release wakes
// the first of its key. If the store can tell of other processes' releases, it starts the
// backend's listener for a key that somebody has waited for a while.
//
// It must not import a backend.
package waitline
