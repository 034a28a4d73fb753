// Package tasks answers a backend's callers soon after their contexts end, even if an operation
// is stuck. Closing the backend waits for what they left behind.
//
// It must not import a backend.
package tasks
