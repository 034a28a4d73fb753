package identity

import (
	"bytes"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4/json"
)

// claims are the payload of a verified token.
type claims map[string]any

// registered are the claims that this package and the library read. The library ignores
// the case of their names.
var registered = []string{
	"iss", "sub", "aud", "exp", "iat", "nbf", "nonce", "azp", "at_hash", "_claim_names", "_claim_sources", "email", "email_verified",
}

// readClaims decodes a payload that every reader understands in the same way: no claim is
// given twice, not even in another case.
func readClaims(payload []byte) (claims, error) {
	if !utf8.Valid(payload) {
		return nil, &TokenError{"its claims are not UTF-8"}
	}
	var c claims
	decoder := json.NewDecoder(bytes.NewReader(payload)) // refuses a name that an object has twice
	decoder.SetNumberType(json.UnmarshalJSONNumber)      // a grant compares digits: 1e3 is not 1000
	if err := decoder.Decode(&c); err != nil {
		return nil, &TokenError{reason(err)}
	}
	names := make(map[string]string, len(c)+len(registered))
	for _, name := range registered {
		names[fold(name)] = name
	}
	for name := range c {
		other, known := names[fold(name)]
		if known && other != name {
			return nil, &TokenError{fmt.Sprintf("it has a claim %.64q, which differs from %.64q only in case", name, other)}
		}
		names[fold(name)] = name
	}
	return c, nil
}

// fold is the same for names that differ only in case, as encoding/json compares them.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}

// times checks when a token is valid, give or take leeway, and returns its expiry.
func (c claims) times(now time.Time, leeway time.Duration) (expiry time.Time, err error) {
	at := map[string]time.Time{}
	for _, name := range []string{"exp", "iat", "nbf"} {
		value, present := c[name]
		if !present {
			continue
		}
		if at[name], err = numericDate(name, value); err != nil {
			return time.Time{}, err
		}
	}
	expiry, expires := at["exp"]
	switch {
	case !expires:
		return time.Time{}, &TokenError{"it has no expiry (exp)"}
	case expiry.Before(now.Add(-leeway)):
		return time.Time{}, &TokenError{fmt.Sprintf("it expired %s; get a new one", expiry.UTC().Format(time.RFC3339))}
	case at["iat"].After(now.Add(leeway)):
		return time.Time{}, &TokenError{fmt.Sprintf("it was issued in the future (iat %s); check the clocks", at["iat"].UTC().Format(time.RFC3339))}
	case at["nbf"].After(now.Add(leeway)):
		return time.Time{}, &TokenError{fmt.Sprintf("it is not valid before %s (nbf); check the clocks", at["nbf"].UTC().Format(time.RFC3339))}
	}
	return expiry, nil
}

// latest is the latest time that a claim may have. Later ones, with some leeway added,
// have no form in JSON.
var latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// numericDate is the time of a claim (RFC 7519, section 2).
func numericDate(name string, value any) (time.Time, error) {
	number, is := value.(json.Number)
	if !is {
		return time.Time{}, &TokenError{fmt.Sprintf("its claim %s is not a number", name)}
	}
	seconds, err := number.Float64()
	if err != nil || !(seconds >= 0 && seconds <= float64(latest.Unix())) {
		return time.Time{}, &TokenError{fmt.Sprintf("its claim %s is %.32s, which is out of range", name, number)}
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9)), nil
}

// email is the caller's address, empty if the issuer has not verified it.
func (c claims) email() string {
	email, _ := c["email"].(string)
	if verified := c["email_verified"]; !isText(verified, "true") {
		return ""
	}
	return email
}
