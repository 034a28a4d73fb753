// Package history publishes what has happened to topics whose subscriptions write to BigQuery: events,
// decisions, refused messages, and orders and missions that have ended. docs/history.md has the whole.
//
// One process at a time publishes. It reads Firestore behind a cursor, some time after the events, so
// nothing waits for it and a crash loses nothing: what was not published before the cursor was stored is
// published again.
//
// It must not import other use cases.
package history
