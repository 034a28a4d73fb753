package lock

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxKeyBytes is the longest key, in UTF-8 bytes after NFC.
const MaxKeyBytes = 512

// NormalizeKey returns the NFC form of a key, which every operation and stored field uses. An
// empty key, invalid UTF-8 and more than 512 bytes after NFC are ErrInvalidArgument.
func NormalizeKey(key string) (string, error) {
	if key == "" {
		return "", Invalid("key is empty; name the resource to lock")
	}
	if !utf8.ValidString(key) {
		return "", Invalid("key is not valid UTF-8")
	}
	key = norm.NFC.String(key)
	if len(key) > MaxKeyBytes {
		return "", Invalid(fmt.Sprintf("key has %d bytes in NFC, at most %d are allowed; shorten or hash it", len(key), MaxKeyBytes))
	}
	return key, nil
}

// StorageKey builds the id of a stored document, prefix:key, or prefix: and a hash if that
// exceeds limit less reserve, the room for what the caller appends. Both count UTF-8 bytes;
// trailing colons of the prefix are dropped. An empty key, or a prefix too long for even the
// hash, is ErrInvalidArgument.
func StorageKey(prefix, key string, limit, reserve int) (string, error) {
	prefix = strings.TrimRight(prefix, ":")
	key = norm.NFC.String(key)
	if key == "" {
		return "", Invalid("key is empty; name the resource to lock")
	}
	head := prefix
	if head != "" {
		head += ":"
	}
	if len(head)+reserve > limit {
		return "", Invalid("prefix leaves no room for a key within the limit; shorten the prefix")
	}
	full := head + key
	if len(full)+reserve <= limit {
		return full, nil
	}
	hashed := head + shortHash(full)
	if len(hashed)+reserve > limit {
		return "", Invalid("prefix leaves no room for a hashed key within the limit; shorten the prefix")
	}
	return hashed, nil
}

// shortHash is the first half of SHA-256 in unpadded base64url: 22 characters.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}
