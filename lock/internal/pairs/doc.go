// Package pairs measures what a lock costs beside what its store can do at best.
//
// It is test support. It must not import a backend.
package pairs
