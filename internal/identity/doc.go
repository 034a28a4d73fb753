// Package identity tells who sends a request and what they may do: it verifies
// bearer tokens (RFC 6750) that an OpenID Connect issuer signed, and grants roles for
// the claims in them.
//
// It must not import any other package of this module but domain. It fails closed: a
// token that cannot be verified is a *TokenError; while the issuer does not answer
// and its keys are not known, the error is an *UnavailableError. Keys are cached: a
// token signed with a known key is accepted through an hour's outage of the issuer,
// a new key is found when the first token signed with it comes, and a key that the
// issuer withdraws is accepted for five minutes more.
//
// No error and no log line contains a token.
package identity
