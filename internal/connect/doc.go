// Package connect opens the clients of Firestore and Pub/Sub, real or emulated, and
// explains in one line why one cannot be used.
//
// It must not import an adapter or a use case.
package connect
