// Package gateway is the core of the drone gateway: sessions of drones, whatever their
// transport. It publishes their reports with the name of the drone that it has authenticated,
// and tells Pub/Sub's answers; it sends each connected drone the commands that concern it, and
// tells one that connects which mission it has.
//
// It must not import a transport's library, and writes nothing to Firestore. If Pub/Sub does
// not answer, sessions end and the drones keep their reports; if Firestore does not answer,
// reports flow and drones learn their mission later.
package gateway
