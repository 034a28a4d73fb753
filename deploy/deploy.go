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
