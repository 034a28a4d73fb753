// Package connect opens the clients of Firestore and Pub/Sub, real or emulated,
// and says in one line what is wrong when they cannot be had.
//
// It must not import an adapter or a use case.
package connect
