package entity

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// A cursor names the entry that a page ended with, so that pages neither repeat nor skip
// an entry that exists throughout, whatever is written meanwhile. It also names its
// collection: the cursor of another one is refused.

const cursorSeparator = "\x00" // no entry's name contains it

// Cursor is the cursor of the page of a collection after the one that ended with last.
func Cursor(collection, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(collection + cursorSeparator + last))
}

// ReadCursor is what a cursor was made of; both are empty if it cannot be decoded.
func ReadCursor(cursor string) (collection, last string) {
	data, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil {
		return "", ""
	}
	collection, last, _ = strings.Cut(string(data), cursorSeparator)
	return collection, last
}

// CheckCursor says what is wrong with a cursor of a collection and what to give instead.
// check says what is wrong with an entry's name.
func CheckCursor(collection, cursor string, check func(last string) error) error {
	// The decoder passes over line breaks.
	if of, last := ReadCursor(cursor); of != collection || check(last) != nil || Cursor(of, last) != cursor {
		return fmt.Errorf("is %.64q; give nextCursor of a page of %s, unchanged", cursor, collection)
	}
	return nil
}
