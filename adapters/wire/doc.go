// Package wire translates between the fleet's messages and domain values:
// protobuf binary or JSON on one side, plain Go on the other.
//
// Decoding validates everything that can be judged without a store, so that no handler
// meets an illegal id, a NaN or a missing time. A message fails in one of two ways,
// both final: *UndecodableError when its bytes are not the message, *ValidationError
// when its content breaks the contract. The latter names every bad field and the fix.
//
// Times are cut to microseconds, the store's resolution: otherwise a redelivered report
// would look newer than its stored copy.
//
// It imports domain and the generated messages; it must not import policy, a store, a
// Pub/Sub client or a clock.
package wire
