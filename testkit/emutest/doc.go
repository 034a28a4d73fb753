// Package emutest provides tests with a Firestore and a Pub/Sub: the emulators named by
// FIRESTORE_EMULATOR_HOST and PUBSUB_EMULATOR_HOST if set, else embedded servers. Every
// test gets its own project, so tests can run in parallel on one server.
//
// It is for tests and must not be imported by the product.
package emutest
