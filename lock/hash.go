package lock

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"
)

// Hasher turns a key or a lock id into what may be logged: 24 hexadecimal
// digits by convention. It must be deterministic and safe for concurrent use.
type Hasher func(value string) string

const hashBytes = 12

// HashKey is the default Hasher: the first 24 hex digits of SHA-256 over the NFC form. Use
// KeyedHasher if keys are confidential and can be guessed.
func HashKey(value string) string { return digest(sha256.New(), value) }

// KeyedHasher returns a Hasher that uses HMAC-SHA-256, so that nobody can search hashes without
// the secret. Processes whose logs are joined share it. An empty secret is ErrInvalidArgument.
func KeyedHasher(secret []byte) (Hasher, error) {
	if len(secret) == 0 {
		return nil, Invalid("secret of the keyed hasher is empty; give at least 16 random bytes")
	}
	secret = append([]byte(nil), secret...)
	return func(value string) string { return digest(hmac.New(sha256.New, secret), value) }, nil
}

func digest(h hash.Hash, value string) string {
	h.Write(norm.NFC.AppendString(nil, value))
	return hex.EncodeToString(h.Sum(nil)[:hashBytes])
}

// SyncGuardHash is the hash in SyncGuard 2.5.2's logs, for joining logs with its processes. It
// reveals most of a short value: use HashKey for everything else.
func SyncGuardHash(value string) string {
	var h1, h2, h3 uint32
	for _, unit := range utf16.Encode([]rune(norm.NFC.String(value))) {
		c := uint32(unit)
		h1 = 31*h1 + c
		h2 = 127*h2 + 3*c
		h3 = 2047*h3 + 7*c
	}
	return fmt.Sprintf("%08x%08x%08x", h1, h2, h3)
}
