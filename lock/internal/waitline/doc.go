// Package waitline keeps the acquisitions of one process that wait for locks, in the
// order in which they came: a release wakes the first of its key. Where releases of other
// processes can be heard of, the backend's listener is started for a key once somebody
// has waited for it a while.
//
// It must not import a backend.
package waitline
