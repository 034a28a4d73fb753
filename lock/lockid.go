package lock

import (
	"crypto/rand"
	"encoding/base64"
)

const (
	lockIDBytes = 16
	lockIDChars = 22
)

// NewLockID returns 16 random bytes as 22 characters of unpadded base64url: the
// secret that proves ownership of one acquisition.
func NewLockID() string {
	var id [lockIDBytes]byte
	_, _ = rand.Read(id[:]) // never fails: crypto/rand ends the process instead
	return base64.RawURLEncoding.EncodeToString(id[:])
}

// ValidateLockID refuses anything but 22 characters of A-Z a-z 0-9 _ and -
// with ErrInvalidArgument. The last character need not be canonical.
func ValidateLockID(id string) error {
	if len(id) != lockIDChars {
		return Invalid("lock id must have 22 characters; pass the id an acquisition returned")
	}
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-':
		default:
			return Invalid("lock id holds a character outside A-Z a-z 0-9 _ -; pass the id an acquisition returned")
		}
	}
	return nil
}
