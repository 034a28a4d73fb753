// Package identity finds out who sends a request and what they may do: it
// verifies bearer tokens (RFC 6750) that an OpenID Connect issuer signed, and
// grants roles for what the tokens claim.
//
// It must not import anything of the fleet. It fails closed: whatever cannot be
// verified is a *TokenError, and while the issuer is out of reach and no key of
// it is known, nobody is let in and the error is an *UnavailableError. Keys are
// cached: an outage of the issuer locks nobody out whose token was signed with
// a key seen within the hour before, a new key is found when the first token
// signed with it comes, and a key that the issuer withdraws counts for five
// minutes more.
//
// Tokens appear in no error and no log line.
package identity
