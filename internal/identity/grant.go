package identity

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4/json"
)

// Role is what a caller may do.
type Role string

const (
	Viewer    Role = "viewer"    // read
	Auditor   Role = "auditor"   // read, and never change, whatever other role there is
	Requester Role = "requester" // order; read and change the orders of one requester
	Operator  Role = "operator"  // read and change
)

// Roles are all roles, the least first among those that read the fleet.
var Roles = []Role{Requester, Viewer, Auditor, Operator}

// Grant is a condition for a role: a claim equals a value, or is a list that contains
// it, as in "email=ann@example.org", "groups=fleet" or "realm_access.roles=fleet",
// where dots lead into nested claims. "*" is everybody with a valid token. An email
// counts only if the issuer has verified it.
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

// String is the grant in the form that UnmarshalText takes.
func (g Grant) String() string {
	if g.claim == everybody {
		return everybody
	}
	return g.claim + "=" + g.value
}

// Everybody reports whether the grant is "*".
func (g Grant) Everybody() bool { return g.claim == everybody }

// meet reports whether the claims fulfil a grant.
func (c claims) meet(g Grant) bool {
	if g.claim == everybody {
		return true
	}
	if g.claim == "email" {
		// EqualFold takes letters such as the Kelvin sign for ASCII ones. They are longer.
		email := c.email()
		return email != "" && len(email) == len(g.value) && strings.EqualFold(email, g.value)
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

// text is the claim with a name as text, empty if it is not text. An email counts only if
// the issuer has verified it.
func (c claims) text(name string) string {
	if name == "email" {
		return c.email()
	}
	text, _ := c.find(name).(string)
	return text
}

// find is the claim with a name, which may contain dots, or else the nested claim
// that the dots lead to.
func (c claims) find(name string) any {
	if v, ok := c[name]; ok {
		return v
	}
	outer, inner, ok := strings.Cut(name, ".")
	if !ok {
		return nil
	}
	nested, _ := c[outer].(map[string]any) // nil if it is not an object
	return claims(nested).find(inner)
}
