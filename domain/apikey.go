package domain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// KeyRole is what the bearer of an API key may do.
type KeyRole string

const (
	KeyViewer    KeyRole = "viewer"    // read the fleet
	KeyOperator  KeyRole = "operator"  // read and change it
	KeyRequester KeyRole = "requester" // order, and see and change the orders of one requester
	KeyDrone     KeyRole = "drone"     // fly as one drone, at a gateway
)

// KeyRoles lists all roles of keys.
var KeyRoles = []KeyRole{KeyViewer, KeyOperator, KeyRequester, KeyDrone}

// MaxKeyLifetime is how long a key may last: one that never ends is forgotten.
const MaxKeyLifetime = 5 * 366 * 24 * time.Hour

// APIKey opens the fleet's doors to a machine that has no token of an issuer. Only its bearer has
// its text.
type APIKey struct {
	Hash    string // SHA-256 of the text in hexadecimal; the key's id
	Role    KeyRole
	Subject string // the id of the requester or drone that it speaks for; empty for other roles

	CreatedAt time.Time
	CreatedBy string
	Why       string
	ExpiresAt time.Time

	RevokedAt  time.Time // zero while it is not revoked
	RevokedBy  string
	RevokedWhy string
	// LastUsedAt is up to an hour older than the last use.
	LastUsedAt time.Time
}

// Ended says why a key no longer counts; "" while it does.
func (k APIKey) Ended(now time.Time) string {
	switch {
	case !k.RevokedAt.IsZero():
		return "it was revoked " + k.RevokedAt.UTC().Format(time.RFC3339)
	case !now.Before(k.ExpiresAt):
		return "it expired " + k.ExpiresAt.UTC().Format(time.RFC3339)
	}
	return ""
}

// Name is the key in audits and logs, such as "key 3f9a0c1b2d4e of HOSPITAL-7".
func (k APIKey) Name() string {
	name := "key " + k.Hash[:min(len(k.Hash), 12)]
	if k.Subject != "" {
		name += " of " + k.Subject
	}
	if runes := []rune(name); len(runes) > MaxActorRunes {
		name = string(runes[:MaxActorRunes-1]) + "…"
	}
	return name
}

// CheckKeyRole says what is wrong with the role of a key.
func CheckKeyRole(role KeyRole) error {
	if slices.Contains(KeyRoles, role) {
		return nil
	}
	return fmt.Errorf("is %q; give viewer, operator, requester or drone", role)
}

// CheckKeyLifetime says what is wrong with the time at which a key expires.
func CheckKeyLifetime(expires, now time.Time) error {
	switch {
	case !expires.After(now):
		return fmt.Errorf("is %s, which is past; give a later time", expires.UTC().Format(time.RFC3339))
	case expires.After(now.Add(MaxKeyLifetime)):
		return fmt.Errorf("is %s; keys last at most 5 years", expires.UTC().Format(time.RFC3339))
	}
	return nil
}

// CheckKeyHash says what is wrong with the id of a key.
func CheckKeyHash(hash string) error {
	if len(hash) != 64 || strings.Trim(hash, "0123456789abcdef") != "" {
		return errors.New(`is not a key's id, which has 64 hexadecimal digits; "keys list" shows them`)
	}
	return nil
}
