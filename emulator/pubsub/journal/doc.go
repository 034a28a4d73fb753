// Package journal keeps the resources and messages of a Pub/Sub server in one
// bbolt file, with group commit: all changes that wait while one transaction is
// written share the next one and its disk sync.
//
// A message is stored once and removed with its last hold. A hold says that a
// holder (a subscription, a snapshot or a topic's retention log) keeps a
// message, unacked or acked. Changes apply in the order they are enqueued, so
// after a crash the file shows a state that the server has been in.
//
// It knows nothing of gRPC or of delivery, and must import nothing of the
// server. Open fails when another process has the file; a change fails when the
// disk does, and every change enqueued with it fails too.
package journal
