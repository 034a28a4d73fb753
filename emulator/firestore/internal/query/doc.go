// Package query compiles a Firestore StructuredQuery into a Plan, which knows the
// documents that match, their order, and where the results begin and end. A Plan is
// immutable, safe for concurrent use and has no store. The server asks it about one
// document at a time: for results, for range locks of transactions and for
// listeners.
//
// The package must not import the server, a transport or a clock, only package value
// and the types of the Firestore protocol.
//
// Compile and CompileAggregation fail with gRPC status errors: INVALID_ARGUMENT or
// FAILED_PRECONDITION for what the real service refuses, UNIMPLEMENTED for parts of
// the protocol that this server does not implement. Nothing else fails.
package query
