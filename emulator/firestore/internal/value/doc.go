// Package value defines what Firestore values mean: their order and equality,
// document names, field paths, masks, field transforms, size and validity.
//
// Every function is pure: it reads no clock, random source or store and changes no
// argument. Stored documents are immutable, so Set, Delete, ApplyMask and
// ApplyTransform return new maps that share the unchanged parts.
//
// The package must not import anything of this module, only the types of the
// Firestore protocol, the standard library and gRPC's status package.
//
// Every error is a gRPC status error with the text of the real service, nearly
// always INVALID_ARGUMENT. UNIMPLEMENTED marks parts of the protocol that the
// embedded server refuses and does not ignore.
package value
