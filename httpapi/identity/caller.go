package identity

import (
	"strings"
	"time"
	"unicode"

	"github.com/dronefleet/dronefleet/domain"
)

// Caller is who sent a request.
type Caller struct {
	// Name is for audits and logs: the verified email address or, without one, the
	// token's subject.
	Name string
	// Method is how the caller proved who it is.
	Method Method
	// Until is when the proof ends.
	Until time.Time
	roles []Role
}

// Method is a way to prove who one is.
type Method string

const (
	NoMethod Method = "none"    // no credentials were required
	Token    Method = "token"   // a bearer token
	Session  Method = "session" // a browser that signed in at the issuer
	IAP      Method = "iap"     // an assertion of Google's Identity-Aware Proxy
)

// Roles are what the caller may do, the least first.
func (c Caller) Roles() (roles []Role) {
	for _, r := range []Role{Viewer, Operator} {
		if c.May(r) {
			roles = append(roles, r)
		}
	}
	return roles
}

// Anybody is the caller of a request that needs no credentials: a viewer without a
// name.
func Anybody() Caller { return Caller{Method: NoMethod, roles: []Role{Viewer}} }

// May reports whether the caller has a role. Operators are viewers too.
func (c Caller) May(r Role) bool {
	for _, has := range c.roles {
		if has == r || has == Operator {
			return true
		}
	}
	return false
}

// nameOf is the caller's name, in printable characters and of limited length.
func nameOf(c claims, subject string) string {
	name := c.email()
	if name == "" {
		name = subject
	}
	name = strings.Map(func(r rune) rune {
		if !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, name)
	if runes := []rune(name); len(runes) > domain.MaxActorRunes {
		name = string(runes[:domain.MaxActorRunes])
	}
	return name
}
