package terminal

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Escape replaces control characters and characters that change the direction of text:
// anyone can write them into ids, products and errors. A JSON parser reads the escapes as
// the same text.
func Escape(text string, kept ...rune) string {
	obeyed := func(r rune) bool { return !unicode.IsPrint(r) && !slices.Contains(kept, r) }
	i := strings.IndexFunc(text, obeyed)
	if i < 0 {
		return text
	}
	var b strings.Builder
	for ; i >= 0; i = strings.IndexFunc(text, obeyed) {
		b.WriteString(text[:i])
		r, size := utf8.DecodeRuneInString(text[i:])
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
		text = text[i+size:]
	}
	return b.String() + text
}
