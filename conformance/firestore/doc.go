// Package conformance holds the embedded Firestore server against Google's own
// emulator: random sequences of operations go to both, and every result, order
// and error code must agree. Beside it stands a suite that drives the whole
// surface of the Go client against one server.
//
// The package has no code but the table of Deliberate differences; everything
// else is tests. Nothing imports it.
//
// The official emulator is good for codes and results and wrong in locking, so
// the sequences hold no contention. It is found in this order:
//
//   - FIRESTORE_OFFICIAL_EMULATOR as host:port is one already running;
//   - FIRESTORE_OFFICIAL_EMULATOR as a path is its launcher, started and stopped
//     by the tests;
//   - otherwise the launcher of an installed gcloud, where there is one.
//
// Without any, the tests that need it are skipped and say so.
//
// The number of random sequences is bounded by -rapid.checks, which defaults to
// DefaultSequences here. Every run prints its seed. It is the same one unless
// -rapid.seed gives another, so that a failure tells of a change and not of
// luck; the search for new differences wants other seeds and more sequences. A
// failing sequence is shrunk before it is reported, as the list of requests.
//
// The client suite runs against the server that FIRESTORE_EMULATOR_HOST names,
// else against an embedded one.
package conformance

// DefaultSequences is how many random sequences each test runs unless
// -rapid.checks says otherwise.
const DefaultSequences = 40

// DefaultSeed is what they are drawn from unless -rapid.seed says otherwise.
const DefaultSeed = 20260101
