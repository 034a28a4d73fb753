package lock

import (
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// defaultDenied are words in keys that name secrets, or that are made of them.
var defaultDenied = []string{
	"token", "secret", "password", "passwd", "passphrase", "credential", "apikey", "api-key", "api_key",
	"private-key", "private_key", "privatekey", "bearer", "authorization", "session", "cookie",
}

// DefaultDenied lists the words by which keys stay hashed unless DenyRaw replaces
// them.
func DefaultDenied() []string { return slices.Clone(defaultDenied) }

// DenyRaw replaces DefaultDenied: an event whose key contains one of the words, in any case,
// shows neither key nor lock id, whatever IncludeRaw says. No words deny nothing; an event of a
// call by lock id alone has no key to check.
func DenyRaw(words ...string) TelemetryOption {
	denied := matchAny(words)
	return func(o *Observed) { o.denied = denied }
}

// denies reports whether a key may never be shown.
func (o *Observed) denies(key string) bool {
	return o.denied != nil && o.denied.MatchString(norm.NFC.String(key))
}

// matchAny matches text in NFC that contains one of the words, in any case; nil if there are
// none. An empty word denies every key.
func matchAny(words []string) *regexp.Regexp {
	if len(words) == 0 {
		return nil
	}
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = regexp.QuoteMeta(norm.NFC.String(strings.ToValidUTF8(word, "")))
	}
	return regexp.MustCompile("(?i)" + strings.Join(quoted, "|"))
}
