// Package tasks lets a backend answer its callers in time: calls end soon after their
// contexts, though an operation may be stuck, and what they leave behind is waited for
// when the backend is closed.
//
// It must not import a backend.
package tasks
