// Package journal keeps the resources and messages of a Pub/Sub server in one
// bbolt file, with group commit: all changes that wait while one transaction is
// written share the next transaction and its disk sync.
//
// A message is stored once and removed with its last hold. A hold says that a
// holder (a subscription, a snapshot or a topic's retention log) keeps a
// message, unacked or acked. Changes are applied in the order in which they are
// enqueued, so that after a crash the file holds a state that the server has
// been in.
//
// It knows nothing of gRPC or of delivery and must import nothing of the server.
// Open fails when another process has the file, or when the file was emptied or
// is damaged: each record has a checksum, and the error names the file and the
// record. A change fails when the disk does, together with every change of its
// transaction and every later one.
package journal
