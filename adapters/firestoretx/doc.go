// Package firestoretx keeps the fleet in Firestore: it turns documents into
// domain values and back, and runs every state change as one transaction in
// which a pure policy decides.
//
// The shape of every write is the same: read what the policy needs, let it
// decide at one point in time, write the fields that changed together with the
// events that say so. Documents are merged, never replaced, so fields that
// other tools added survive. A drone's document stands for its whole binding:
// whatever changes a bound mission also writes its drone.
//
// Errors are a *policy.Rejection (final: an answer) or wrap the client's gRPC
// error; Retryable tells the transient ones. The package must not import the
// message side (pubsubio, wire) nor anything under cmd.
package firestoretx
