// Package pubsubemu is an in-process google.pubsub.v1 server for tests and
// local runs, never for production. Any Pub/Sub client reaches it through
// PUBSUB_EMULATOR_HOST set to Server.Addr.
//
// It serves topics, pull subscriptions, Pull and StreamingPull with ordering,
// exactly-once delivery, filters, retry and dead-letter policies, seeks and
// snapshots. Push, BigQuery and Cloud Storage subscriptions, ingestion,
// message transforms and schemas answer UNIMPLEMENTED. What else differs from
// production or from the official emulator is listed in differences.go.
//
// How it works: a backlog is a plain data structure of intrusive lists, so that
// every publish, delivery, ack and nack costs the same whatever waits, and an
// acked message frees its memory. A subscription couples one backlog with a
// lock and a timer loop on the injected clock. Messages are stored encoded, as
// subscribers get them, and shared between subscriptions.
//
// With Options.DataDir, a publish that answered OK survives a crash of the
// process; acks may be forgotten in one, so messages may come again.
//
// The package knows nothing of drones: it must import nothing of this module
// except its own subpackages. Calls fail with the status codes of the service;
// Start fails when the address is taken or the data directory is unusable, and
// a bug inside a call is answered INTERNAL and logged with its stack.
package pubsubemu
