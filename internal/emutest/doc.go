// Package emutest gives tests a Firestore and a Pub/Sub of their own: the
// emulators named by FIRESTORE_EMULATOR_HOST and PUBSUB_EMULATOR_HOST if set,
// else embedded servers. Every test gets a project that no other test uses, so
// tests can run together on one server.
//
// It is for tests and must not be imported by the product.
package emutest
