// Package clockwatch compares the local clock with Firestore's every minute. It logs a
// wrong clock and a failed measurement, and tells metrics and the caller the offset. It
// must not import a use case.
package clockwatch
