// Package apikeys makes API keys and checks them, for the HTTP API and for gateways. A key's text
// is random and known to its bearer alone; documents have its hash. The package must not import
// other use cases, httpapi or internal/identity.
//
// A checked key is remembered for ten seconds, so a revoked one ends within ten seconds in every
// process. If Firestore does not answer, no key can be checked and callers are refused. No error
// and no log line has the text of a key.
package apikeys
