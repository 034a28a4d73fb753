// Package firestoretx keeps the fleet in Firestore: it turns documents into
// domain values and back, and runs every state change as one transaction in
// which a pure policy decides.
//
// Every write has the same shape: read what the policy needs, let it decide at one
// point in time, write the changed fields together with their events. Documents are
// merged, never replaced, so fields added by other tools survive. A drone's document
// version stands for its whole binding: whatever changes a bound mission also writes
// its drone.
//
// Errors are a *policy.Rejection, which is final, a *MalformedError for a document
// that must be corrected, or wrap the client's gRPC error; Retryable tells the
// transient ones. The package must not import the message side (pubsubio, wire) or
// anything under cmd.
package firestoretx
