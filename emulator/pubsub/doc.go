// Package pubsubemu is an embedded Google Cloud Pub/Sub: a gRPC server for
// google.pubsub.v1 inside the process. It is for tests and local runs only, never
// for production: it checks no credentials and keeps everything in memory unless
// told otherwise.
//
// A Go test has a client in one line:
//
//	client := pubsubemu.NewClient(t)
//
// Start runs a server on a free port, which any Pub/Sub client in any language
// reaches through PUBSUB_EMULATOR_HOST set to Server.Addr, or with InProcess on no
// port at all. Server.Backlog and Server.Counters show what is outstanding,
// Server.Faults injects faults, Options.Clock is the clock that ack deadlines run
// on, and Options.DataDir keeps the messages across a crash.
//
// # What it does
//
// Topics, pull subscriptions and snapshots of any number of projects; Publish,
// Pull and StreamingPull; ack deadlines and their extension; ordering keys;
// exactly-once delivery; attribute filters; retry and dead-letter policies; flow
// control for each stream; retention; seeks to a time and to a snapshot. Limits
// and status codes are those of the service.
//
// With DataDir, a publish that was answered OK survives kill -9 until it is acked.
// Acks may be forgotten in a crash, so that messages come again. Every record has
// a checksum: Start refuses a damaged or emptied file with ErrDamaged instead of
// serving what nobody published.
//
// # What it does not do
//
//   - Push, BigQuery, Cloud Storage and Bigtable subscriptions, ingestion, message
//     transforms and schemas are answered UNIMPLEMENTED, never ignored.
//   - Permissions, quotas, regions and encryption keys are not modelled.
//   - Idle subscriptions never expire.
//   - The messages of a broken stream are redelivered at once, not after their ack
//     deadlines, unless delivery is exactly-once. The leases of a stream that its
//     client half-closed continue. Backoffs have no jitter.
//   - A connection is closed, and its streams break, when its client answers no ping
//     for 20 s, as when it is frozen.
//   - It does not imitate the service's duplicates, delays and reordering unless
//     Faults injects them.
//
// # How that was checked
//
// Random calls go to this server and to Google's emulator, and every result and
// status code must agree; package conformance/pubsub has that test and a table of
// every known difference from the service and from Google's emulator. Random calls
// of concurrent clients are held against a model of what a subscription owes, and
// servers that break one promise each show that the model would notice. Other tests
// kill the process in the middle of publishes, seeks and dead-lettering, and flip
// bits all over the data file. Where the service's behaviour is documented and
// Google's emulator does otherwise, the documents were followed; it was not run
// against the service itself.
//
// # How it works
//
// A backlog is a plain data structure of intrusive lists: a publish, a delivery, an
// ack and a nack take the same time whatever waits, and an acked message frees its
// memory. A subscription joins one backlog with a lock and a timer loop. Messages
// are stored encoded, as subscribers get them, and shared between subscriptions.
//
// The package must import nothing of this module but its own subpackages and the
// plumbing of the embedded servers. Calls fail with the status codes of the
// service; a bug inside a call is answered INTERNAL and logged with its stack.
//
// The requirement ids in tests (P-DEL-04 ...) are those of the project's contract
// for this server.
package pubsubemu
