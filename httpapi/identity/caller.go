package identity

import (
	"strings"
	"unicode"
)

// Caller is whoever sent a request.
type Caller struct {
	// Name is for audits and logs: the verified email address, else the
	// issuer's name for the subject.
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

// MaxNameRunes bounds what of a name is recorded.
const MaxNameRunes = 128

// nameOf is a name fit for one line of a log.
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
	if runes := []rune(name); len(runes) > MaxNameRunes {
		name = string(runes[:MaxNameRunes])
	}
	return name
}
