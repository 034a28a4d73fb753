// Package firestoreemu is an embedded Firestore for tests and local runs: a
// google.firestore.v1 gRPC server in the process of the test. It needs no Java,
// no gcloud and no network. In a test, a client takes one line:
//
//	client := firestoreemu.NewClient(t)
//
// Programs call [Start]. Clients in the same process use [Server.Client]; other
// programs find the server by FIRESTORE_EMULATOR_HOST set to [Server.Addr].
//
// Do not use it in production. It checks no credentials, listens on loopback
// only, and keeps all documents in memory.
//
// # What it keeps
//
// It behaves as Native mode, Standard edition, with the pessimistic concurrency
// that server client libraries meet in the cloud:
//
//   - Transactions are strictly serializable. They lock the documents that they
//     read, missing ones included, and the ranges that their queries scanned, so
//     there are no phantoms. Wound-wait resolves conflicts without deadlocks.
//   - Commits are atomic. A read sees one state of the database. Earlier states
//     stay readable for an hour.
//   - Writes, preconditions, transforms, queries, cursors, aggregations, listeners,
//     partitions and paging, with the limits and error codes of the service.
//   - With [Options.Indexes], a query that production would refuse for lack of an
//     index is refused; the error has the JSON to add.
//   - With [Options.DataDir], an acknowledged commit survives kill -9.
//
// These tests check it:
//
//   - TestHistory_RandomUnderFaults runs random transactions, queries and writes
//     while requests fail, answers get lost, transactions expire and connections
//     break. The server's record and what the clients saw must each be strictly
//     serializable. TestHistory_StaysSerializableAcrossKills does the same while
//     the server is killed. TestHistory_DetectsUnlockedReads shows that the check
//     notices a server without read locks.
//   - TestContention runs the interleavings whose outcomes in the cloud are known.
//   - TestDurability_KillUnderLoad kills the server under load and looks for lost
//     and torn commits. The data file's tests flip bits all over it; none of what
//     they damage is served.
//   - The suite in conformance/firestore sends random sequences, queries and
//     malformed requests to this server and to Google's emulator and compares the
//     answers. It lists the deliberate differences.
//
// # What it lacks
//
//   - Security rules, authentication and TLS; REST and gRPC-Web; Datastore mode and
//     the Enterprise edition; the Admin API, backups and imports.
//   - The RPCs Write and ExecutePipeline, vector search, query explanation and BSON
//     values. Requests that ask for something it does not implement are answered
//     UNIMPLEMENTED and never ignored. Labels, tags and a listener's expected_count
//     have no effect.
//   - The cloud's latency, rate limits, quotas and hotspots. Expired documents are
//     deleted by [Server.SweepTTL] only.
//   - A data format that lasts: a newer version may refuse an older data directory.
//
// # Inside
//
// The package joins parts that know nothing of each other: internal/value (what
// values mean), internal/query (what a query admits), internal/index (which
// queries need an index), internal/store (versions and snapshots), internal/locks
// (wound-wait), internal/datafile (durability), internal/history (the check for
// serializability) and fault (injected faults). It parses a request, takes the
// locks or the snapshot that the request needs, and turns every failure into the
// gRPC status that a client of the real service would see.
//
// The package must not import anything of this module but these parts and
// emulator/internal.
//
// Requirement ids in comments and tests (E-TX-08 ...) are explained in
// docs/requirements.md.
package firestoreemu
