// Package index tells whether the real service could answer a query: whether
// its automatic single-field indexes, or those declared in
// firestore.indexes.json, serve it. The embedded server itself needs no index;
// the check exists so that a query that would fail in production fails in tests.
//
// The rules are those of Native mode's Standard edition: an index serves a
// conjunction when its leading fields are equality (or array-contains) fields of
// the query and the rest is exactly the remaining sort order; several indexes
// merge when together they cover every equality field. There is no reverse
// scan.
//
// The package must never import the server, a transport or a store; only
// packages query and value.
//
// Load fails on a file the real service would refuse, naming the entry. A
// Checker fails with FAILED_PRECONDITION and the JSON to paste, or, in Warn
// mode, logs the same and lets the query pass.
package index
