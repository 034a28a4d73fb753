package filter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenWord
	tokenString
	tokenSymbol
)

type token struct {
	kind tokenKind
	text string
	at   int // byte offset
}

// is says whether the token is this keyword or symbol; a quoted string never is.
func (t token) is(text string) bool {
	return (t.kind == tokenWord || t.kind == tokenSymbol) && t.text == text
}

func (t token) unexpected(wanted string) error {
	found := strconv.Quote(t.text)
	if t.kind == tokenEnd {
		found = "the end"
	}
	return fmt.Errorf("filter: %s at byte %d; expected %s", found, t.at, wanted)
}

// scan splits text into tokens, the last of which is tokenEnd.
func scan(text string) ([]token, error) {
	var tokens []token
	for at := 0; at < len(text); {
		c := text[at]
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			at++
		case c == '"':
			value, end, err := scanString(text, at)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, token{tokenString, value, at})
			at = end
		case strings.HasPrefix(text[at:], "!="):
			tokens = append(tokens, token{tokenSymbol, "!=", at})
			at += 2
		case strings.IndexByte("().,:=", c) >= 0, c == '-' && !startsKey(tokens):
			tokens = append(tokens, token{tokenSymbol, string(c), at})
			at++
		case wordByte(c):
			end := at
			for end < len(text) && wordByte(text[end]) {
				end++
			}
			tokens = append(tokens, token{tokenWord, text[at:end], at})
			at = end
		default:
			r, _ := utf8.DecodeRuneInString(text[at:])
			return nil, fmt.Errorf("filter: %q at byte %d; put keys and values with such characters in double quotes", r, at)
		}
	}
	return append(tokens, token{tokenEnd, "", len(text)}), nil
}

// startsKey says that a key comes next, because a dot or a colon came last: there a
// hyphen belongs to the key, as in attributes.-k, and elsewhere it negates a term.
func startsKey(tokens []token) bool {
	if len(tokens) == 0 {
		return false
	}
	last := tokens[len(tokens)-1]
	return last.is(".") || last.is(":")
}

func wordByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-'
}

// scanString reads a double-quoted string with backslash, hexadecimal, octal
// and Unicode escapes, and returns the offset after it.
func scanString(text string, start int) (value string, end int, err error) {
	rest := text[start+1:]
	var b strings.Builder
	for rest != "" && rest[0] != '"' {
		r, multibyte, tail, err := strconv.UnquoteChar(rest, '"')
		if err != nil {
			return "", 0, fmt.Errorf("filter: bad escape or line end in the string at byte %d", start)
		}
		if multibyte || r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			b.WriteByte(byte(r))
		}
		rest = tail
	}
	if rest == "" {
		return "", 0, fmt.Errorf("filter: the string at byte %d is not closed; add a double quote", start)
	}
	if !utf8.ValidString(b.String()) {
		return "", 0, fmt.Errorf("filter: the string at byte %d is not UTF-8", start)
	}
	return b.String(), len(text) - len(rest) + 1, nil
}
