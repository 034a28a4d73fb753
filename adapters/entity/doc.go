// Package entity is the JSON form of the fleet's entities for people and their tools: the
// documents' field names, short enum names, times in RFC 3339 in UTC to the microsecond, and no
// empty fields.
//
// The HTTP API and the operators' commands share it, so that both print the same. It
// holds no rule and does no I/O; it must not import a store of entities, a policy or a wire format.
// Nothing in it fails.
package entity
