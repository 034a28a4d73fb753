// Package query turns a Firestore StructuredQuery into a Plan: which documents
// it admits, in which order, from where to where. A Plan is immutable, safe for
// concurrent use and holds no store: the server asks it about one document at a
// time, for results, for the range locks of transactions and for listeners.
//
// The package must never import the server, a transport or a clock; only
// package value and the Firestore protocol types.
//
// Compile and CompileAggregation fail with gRPC status errors: INVALID_ARGUMENT
// for what the real service refuses, UNIMPLEMENTED for protocol fields this
// server does not honour. Nothing else here fails.
package query
