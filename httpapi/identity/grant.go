package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Role is what somebody may do.
type Role string

const (
	Viewer   Role = "viewer"   // read
	Operator Role = "operator" // also change
)

// Grant is a condition under which a token's bearer has a role: that a claim is
// some text or contains it in a list, as in "email=ann@example.org",
// "groups=fleet" or "realm_access.roles=fleet", with dots leading into nested
// claims. "*" is everybody the issuer vouches for. An email counts only when
// the issuer has verified it.
type Grant struct{ claim, value string }

// everybody is the claim of the grant "*".
const everybody = "*"

// UnmarshalText implements encoding.TextUnmarshaler.
func (g *Grant) UnmarshalText(text []byte) error {
	if string(text) == everybody {
		*g = Grant{claim: everybody}
		return nil
	}
	claim, value, ok := strings.Cut(string(text), "=")
	if claim, value = strings.TrimSpace(claim), strings.TrimSpace(value); !ok || claim == "" || value == "" {
		return errors.New(`give claim=value, such as email=ann@example.org or groups=fleet, or "*" for everybody with a token`)
	}
	*g = Grant{claim, value}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (g Grant) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// String is the grant as it was given.
func (g Grant) String() string {
	if g.claim == everybody {
		return everybody
	}
	return g.claim + "=" + g.value
}

// claims are what a verified token says.
type claims map[string]any

// meet reports whether the claims fulfil a grant.
func (c claims) meet(g Grant) bool {
	if g.claim == everybody {
		return true
	}
	if g.claim == "email" {
		email := c.email()
		return email != "" && strings.EqualFold(email, g.value)
	}
	switch v := c.find(g.claim).(type) {
	case []any:
		for _, item := range v {
			if isText(item, g.value) {
				return true
			}
		}
		return false
	default:
		return isText(v, g.value)
	}
}

func isText(v any, want string) bool {
	switch v := v.(type) {
	case string:
		return v == want
	case bool, json.Number:
		return fmt.Sprint(v) == want
	}
	return false
}

// find is the claim of a name, which may itself contain dots, or else the one
// the dots lead to.
func (c claims) find(name string) any {
	if v, ok := c[name]; ok {
		return v
	}
	outer, inner, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	nested, _ := c[outer].(map[string]any) // another type has no claims
	return claims(nested).find(inner)
}

// email is the bearer's address if the issuer has verified it.
func (c claims) email() string {
	email, _ := c["email"].(string)
	if verified := c["email_verified"]; !isText(verified, "true") {
		return ""
	}
	return email
}
