package identity

import "fmt"

// TokenError says why a token proves nothing. Trying again with the same token
// is in vain.
type TokenError struct{ Reason string }

// Error implements error.
func (e *TokenError) Error() string { return "the token is refused: " + e.Reason }

// UnavailableError says that tokens cannot be verified now.
type UnavailableError struct {
	Issuer string
	Err    error
}

// Error implements error.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the issuer %s cannot be asked for its keys, so that no token can be verified: %v", e.Issuer, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }
