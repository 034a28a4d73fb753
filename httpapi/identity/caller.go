package identity

import (
	"strings"
	"unicode"

	"github.com/dronefleet/dronefleet/domain"
)

// Caller is who sent a request.
type Caller struct {
	// Name is for audits and logs: the verified email address or, without one, the
	// token's subject.
	Name  string
	roles []Role
}

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
