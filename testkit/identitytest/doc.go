// Package identitytest is an OpenID Connect issuer for tests: a real HTTP server with
// a discovery document, a key set, and keys that sign tokens. Only tests may import
// it.
package identitytest
