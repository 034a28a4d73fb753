// Package faultproxy makes requests fail on demand between a lock and its store. [Proxy] knows
// gRPC and enough of Firestore to pick requests and shift the server's clock; [TCPProxy] knows
// no protocol.
//
// It is test support. It must not import the lock or a backend.
package faultproxy
