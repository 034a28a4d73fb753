// Package conformance compares the embedded Firestore with Google's emulator. Random
// sequences of requests go to both, and all results, orders and error codes must
// agree. A second suite calls the whole surface of the Go client on one server.
//
// The package consists of tests and of Deliberate, the table of known differences. It
// uses only the public API of the embedded server. Nothing imports it.
//
// The emulator's codes and results are reliable, but not its locking, so the
// sequences have no contention. It is found in this order:
//
//   - FIRESTORE_OFFICIAL_EMULATOR=host:port is an emulator that is running.
//   - FIRESTORE_OFFICIAL_EMULATOR=path is its launcher. The tests start and stop it.
//   - Otherwise the launcher of an installed gcloud.
//
// Without one, the tests that need it are skipped.
//
// Each random test runs DefaultSequences sequences; -rapid.checks sets another
// number. They are the same in every run, so that a failure means that something
// changed; -rapid.seed sets another seed, to search for new differences. A failing
// sequence is shrunk and reported as a list of requests.
//
// The client suite runs against the server at FIRESTORE_EMULATOR_HOST, or else against
// an embedded one.
package conformance

// DefaultSequences is the number of random sequences of each test, unless
// -rapid.checks is set.
const DefaultSequences = 40

// DefaultSeed is the seed of the random sequences, unless -rapid.seed is set.
const DefaultSeed = 20260101
