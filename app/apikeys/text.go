package apikeys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Prefix begins every key, so that people and scanners of secrets recognise one.
const Prefix = "dfk_"

// keyBytes are random: nobody guesses 256 bits, and their hash needs no salt.
const keyBytes = 32

// textLength is the length of a key's text.
var textLength = len(Prefix) + base64.RawURLEncoding.EncodedLen(keyBytes)

// NewText is the text of a new key.
func NewText() string {
	random := make([]byte, keyBytes)
	_, _ = rand.Read(random) // never fails
	return Prefix + base64.RawURLEncoding.EncodeToString(random)
}

// Hash is the id of the key with a text: its SHA-256 in hexadecimal.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Is reports whether a bearer token is meant as an API key.
func Is(token string) bool { return strings.HasPrefix(token, Prefix) }

// checkText returns an *InvalidError if a text cannot be that of a key.
func checkText(text string) error {
	if len(text) != textLength {
		return &InvalidError{fmt.Sprintf("it has %d characters, and keys have %d; copy the whole key", len(text), textLength)}
	}
	if _, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, Prefix)); err != nil || !Is(text) {
		return &InvalidError{"it has characters that no key has; copy the key again"}
	}
	return nil
}

// ParseExpiry is the time at which a key expires: days from now, as in 90d, a duration, as in 12h,
// a date or a time.
func ParseExpiry(text string, now time.Time) (time.Time, error) {
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.ParseUint(days, 10, 15); err == nil {
			return now.AddDate(0, 0, int(n)), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(d), nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, strings.ToUpper(text)); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("is not a time; give days such as 90d, a duration such as 12h, or a time such as 2027-11-21T12:00:00Z")
}
