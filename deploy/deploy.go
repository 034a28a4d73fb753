// Package deploy holds what the fleet needs of Google Cloud. The index
// configuration is one source for the real database and for the embedded one,
// so that a query which production would refuse fails at home first.
package deploy

import _ "embed"

// FirestoreIndexes is firestore.indexes.json: the composite indexes, the
// fields exempted from indexing, and the TTL policies.
//
//go:embed firestore.indexes.json
var FirestoreIndexes []byte

// ShardedFirestoreIndexes is firestore.indexes.sharded.json, for fleets whose
// State Managers write the field shard of events (--event-shards): it exempts the
// time of events and indexes it behind the shard.
//
//go:embed firestore.indexes.sharded.json
var ShardedFirestoreIndexes []byte
