package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dronefleet/dronefleet/domain"
)

// Caller is who sent a request.
type Caller struct {
	// Name is for audits and logs: the verified email address or, without one, "subject"
	// and the token's subject.
	Name string
	// ID stands for the issuer and the subject. It tells callers apart, whatever their
	// names.
	ID string
	// Method is how the caller proved who it is.
	Method Method
	// Until is when the proof ends.
	Until time.Time
	// Still, if set, returns an error once the proof has ended before that. Streams ask again.
	Still func(context.Context) error
	// Requester is whose orders a caller with the role Requester may see and change.
	Requester string
	roles     []Role
	lacking   string // why the role Requester, which the caller was granted, is missing
}

// Method is a way to prove who one is.
type Method string

const (
	NoMethod Method = "none"    // no credentials were required
	Token    Method = "token"   // a bearer token
	Session  Method = "session" // a browser that signed in at the issuer
	IAP      Method = "iap"     // an assertion of Google's Identity-Aware Proxy
	Key      Method = "key"     // an API key
	Local    Method = "local"   // none were required of the one user of this machine
)

// Roles are what the caller may do, the least first.
func (c Caller) Roles() (roles []Role) {
	for _, r := range Roles {
		if c.May(r) {
			roles = append(roles, r)
		}
	}
	return roles
}

// Anybody is the caller of a request that needs no credentials: a viewer without a
// name.
func Anybody() Caller { return Caller{Method: NoMethod, roles: []Role{Viewer}} }

// OfMachine is the user of this machine: an operator without credentials, under a name for the audit.
func OfMachine(name string) Caller {
	return Caller{Name: name, ID: "local", Method: Local, roles: []Role{Operator}}
}

// OfKey is the caller with an API key, until still says that the key has ended.
func OfKey(k domain.APIKey, still func(context.Context) error) Caller {
	c := Caller{Name: k.Name(), ID: "key " + k.Hash, Method: Key, Until: k.ExpiresAt, Still: still}
	switch k.Role {
	case domain.KeyViewer:
		c.roles = []Role{Viewer}
	case domain.KeyOperator:
		c.roles = []Role{Operator}
	case domain.KeyRequester:
		if err := domain.CheckID(k.Subject); err != nil { // somebody has edited the document
			c.lacking = fmt.Sprintf("the subject of the key, which must be a requester's id, %s", err)
		} else {
			c.Requester, c.roles = k.Subject, []Role{Requester}
		}
	case domain.KeyDrone:
		c.lacking = "the key of a drone only opens a gateway"
	}
	return c
}

// May reports whether the caller has a role. Operators and auditors are viewers too. An
// auditor is never an operator or a requester, so that nobody audits their own changes.
func (c Caller) May(r Role) bool {
	has := func(r Role) bool { return slices.Contains(c.roles, r) }
	switch r {
	case Viewer:
		return has(Viewer) || has(Auditor) || has(Operator)
	case Operator, Requester:
		return has(r) && !has(Auditor)
	case Auditor:
	}
	return has(r)
}

// Lacks says that the caller lacks a role, and why if that is known.
func (c Caller) Lacks(r Role) string {
	text := fmt.Sprintf("%s lacks the required role %s", c.Name, r)
	if c.lacking != "" {
		text += ", and " + c.lacking
	}
	return text
}

// idOf stands for an issuer's subject, in a few characters.
func idOf(issuer, subject string) string {
	sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// nameOf is the caller's name. Only a verified address stands there as it is.
func nameOf(c claims, subject string) string {
	name := legible(c.email())
	if name == "" {
		name = "subject " + legible(subject)
	}
	if runes := []rune(name); len(runes) > domain.MaxActorRunes {
		name = string(runes[:domain.MaxActorRunes-1]) + "…"
	}
	return name
}

// legible quotes a text that may look like another one, because of spaces or of
// characters that nobody sees.
func legible(text string) string {
	plain := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("@._-+:/|=~#", r)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return strconv.Quote(text)
	}
	return text
}
