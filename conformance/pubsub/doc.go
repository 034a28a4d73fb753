// Package conformance compares the embedded Pub/Sub server with Google's own
// emulator: the same random calls go to both, and every result and status code
// must agree. Where they differ on purpose, the difference is in Deliberate. Other
// tests drive both servers through the client.
//
// The package has no code but that table; everything else is tests. Nothing
// imports it. A difference that is not in the table fails TestDifferential with
// the calls that lead to it.
//
// Google's emulator is good for codes and results. It ignores filters and retry
// policies, and it loses ordering keys (see Deliberate), so the random calls have
// no streams. It is found in this order:
//
//   - PUBSUB_OFFICIAL_EMULATOR as host:port is one already running;
//   - otherwise one is started from an installed gcloud.
//
// Without either the tests are skipped and say so. PUBSUB_SEED sets the first
// seed; a failure names its seed.
package conformance
