// Package firestoreemu is an embedded Firestore: a gRPC server for
// google.firestore.v1 inside the process, Native mode, Standard edition, with
// the pessimistic concurrency control that server client libraries meet in the
// cloud. Start one, hand Addr to a client as FIRESTORE_EMULATOR_HOST, Close it.
//
// It is made of parts that know nothing of each other: package value (what
// values mean), package query (what a query admits), package index (which
// queries need a declared index), package store (versions and snapshots),
// package locks (wound-wait), package wal (durability), package fault (misbehaviour
// on purpose), package history (what transactions saw, and whether that can be).
// This package alone joins them into RPCs: it parses a request, takes the locks or the snapshot the
// request needs, and turns every failure into the gRPC status a client of the
// real service would see. Requests and fields it does not honour are answered
// UNIMPLEMENTED, never ignored.
//
// What only describes a request, its labels and tags, is accepted and has no
// effect. So is a listener's expected_count: what it asks for may be left out.
//
// It must never import anything of the product it is used by. It listens on
// loopback only and checks no credentials.
//
// The requirement ids in comments and tests (E-TX-08 ...) are those of the
// project's contract for this server.
package firestoreemu
