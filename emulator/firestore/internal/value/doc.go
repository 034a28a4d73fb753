// Package value holds what Firestore values mean without any server around
// them: their order and equality, document names, field paths, masks, field
// transforms, size and validity.
//
// Everything here is a pure function of its arguments. Nothing reads a clock,
// a random source or a store, and nothing mutates a value it was given: stored
// document versions are immutable, so Set, Delete, ApplyMask and ApplyTransform
// return new maps that share the parts they did not change.
//
// The package must never import the server, a transport or anything of the
// product; only the Firestore protocol types, the standard library and gRPC's
// status package.
//
// Every error is a gRPC status error, nearly always INVALID_ARGUMENT, carrying
// the text a client of the real service would see; UNIMPLEMENTED marks protocol
// features the embedded server refuses rather than ignores.
package value
