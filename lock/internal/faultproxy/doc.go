// Package faultproxy is a gRPC proxy between a Firestore client and any
// Firestore server that counts requests and makes them fail on demand: before
// they reach the server, after they were applied, or never answering. It can
// also shift the server's clock as seen by the client.
//
// It is test support. It knows the Firestore messages only as far as rules
// look into them, and passes everything else through as bytes.
//
// It must not import the lock or a backend.
package faultproxy
