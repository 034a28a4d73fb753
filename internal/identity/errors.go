package identity

import "fmt"

// TokenError says why a token is not valid. Repeating the request with the same
// token cannot succeed.
type TokenError struct{ Reason string }

// Error implements error.
func (e *TokenError) Error() string { return "invalid token: " + e.Reason }

// SignInError says why a browser is not signed in. It can start again.
type SignInError struct{ Reason string }

// Error implements error.
func (e *SignInError) Error() string {
	return "sign-in failed: " + e.Reason + "; open /signin to start again"
}

// UnavailableError says that tokens cannot be verified now; a later try may succeed.
type UnavailableError struct {
	Issuer string
	Err    error
}

// Error implements error.
func (e *UnavailableError) Error() string {
	return fmt.Sprintf("no token can be verified: the issuer %s does not provide its keys: %v", e.Issuer, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }
