// Package clockwatch measures the local clock against Firestore's every minute,
// for logs, metrics and callers that must know. It must not import a use case.
// A failed measurement is logged and repeated a minute later.
package clockwatch
