package input

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxDepth bounds the nesting of JSON and YAML.
const MaxDepth = 100

// maxProblems bounds what is reported of one file.
const maxProblems = 20

// Problem is one thing that is wrong with an input.
type Problem struct {
	Line   int    // 0 if the whole is meant
	Offset int    // of the byte in the input; 0 if the line says enough
	Text   string // what is wrong, and the fix
}

// Where names the place; empty if the whole is meant.
func (p Problem) Where() string {
	switch {
	case p.Line == 0:
		return ""
	case p.Offset == 0:
		return fmt.Sprintf("line %d", p.Line)
	}
	return fmt.Sprintf("line %d, byte offset %d", p.Line, p.Offset)
}

// Problems is what is wrong with an input, in order.
type Problems []Problem

// Error implements error, on one line.
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i, problem := range p {
		texts[i] = problem.Text
		if where := problem.Where(); where != "" {
			texts[i] = where + ": " + problem.Text
		}
	}
	return strings.Join(texts, " | ")
}

// err joins the problems in their order; nil if there are none.
func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int { return cmp.Or(a.Line-b.Line, a.Offset-b.Offset) })
	return p[:min(len(p), maxProblems)]
}

// whole is a problem of the whole input.
func whole(format string, args ...any) Problems {
	return Problems{{Text: fmt.Sprintf(format, args...)}}
}

// at is a problem of the byte at an offset of data.
func at(data []byte, offset int, text string) Problem {
	return Problem{1 + bytes.Count(data[:offset], []byte("\n")), offset, text}
}

// Read reads at most most bytes.
func Read(in io.Reader, most int) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err == nil && len(data) > most {
		return nil, whole("has more than %d bytes; is it the right file?", most)
	}
	return data, err
}

// File reads a file of at most most bytes. Problems do not name the file; the caller does.
func File(name string, most int) ([]byte, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return Read(in, most)
}

// Text returns data without its byte order mark, if it is UTF-8.
func Text(data []byte) ([]byte, error) {
	if bytes.HasPrefix(data, []byte("\xfe\xff")) || bytes.HasPrefix(data, []byte("\xff\xfe")) {
		return nil, whole("is UTF-16; save or send the text as UTF-8")
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, Problems{at(data, i, fmt.Sprintf("byte %#x is not UTF-8; save or send the text as UTF-8", data[i]))}
		}
		i += size
	}
	return bytes.TrimPrefix(data, []byte("\ufeff")), nil
}

// Time reads a time in the form of RFC 3339, whose T and Z may be in lower case.
func Time(text string) (time.Time, error) { return time.Parse(time.RFC3339, strings.ToUpper(text)) }

// name is a name that an object, mapping or header gives.
type name struct {
	given, folded string
	where         int // offset, line or column
}

func newName(given string, where int) name { return name{given, fold(given), where} }

// fold makes names equal that differ only in case.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf {
			return unicode.ToLower(r)
		}
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return unicode.ToLower(least)
	}, name)
}

// repeated calls report for each name that repeats another, in the same or another case.
// It sorts names.
func repeated(names []name, refuse func(n name, text string)) {
	slices.SortStableFunc(names, func(a, b name) int { return strings.Compare(a.folded, b.folded) })
	for i := 1; i < len(names); i++ {
		switch before, n := names[i-1], names[i]; {
		case before.folded != n.folded:
		case before.given == n.given:
			refuse(n, fmt.Sprintf("%.64q is given twice; give it once", n.given))
		default:
			refuse(n, fmt.Sprintf("%.64q and %.64q differ only in case; give one of them", before.given, n.given))
		}
	}
}
