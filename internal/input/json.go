package input

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON returns data without its byte order mark, if it is one JSON value whose text is
// valid Unicode and whose objects give each name once. The standard library's decoders
// need this check: they replace invalid text by U+FFFD and keep the last of two values.
func JSON(data []byte) ([]byte, error) {
	text, err := Text(data)
	if err != nil {
		return nil, err
	}
	r := jsonReader{data: data, mark: len(data) - len(text), decoder: jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))}
	r.read()
	return text, r.problems.err()
}

type jsonReader struct {
	data     []byte // with the byte order mark
	mark     int    // its length
	decoder  *jsontext.Decoder
	names    []name // of all open objects
	begins   []int  // where those of each open object or array begin
	problems Problems
}

func (r *jsonReader) refuse(offset int, text string) {
	if len(r.problems) < maxProblems { // each counts the lines before it
		r.problems = append(r.problems, at(r.data, offset, text))
	}
}

// read ends at the first byte that is not JSON.
func (r *jsonReader) read() {
	for values := 0; ; {
		before := r.mark + int(r.decoder.InputOffset())
		token, err := r.decoder.ReadToken()
		after := r.mark + int(r.decoder.InputOffset())
		starts := after - len(bytes.TrimLeft(r.data[before:after], " \t\r\n,:"))
		switch {
		case errors.Is(err, io.EOF):
			if values == 0 {
				r.refuse(len(r.data), "there is no JSON; give one value")
			}
			return
		case err != nil:
			r.refuseSyntax(err)
			return
		case len(r.begins) == 0:
			if values++; values > 1 {
				r.refuse(starts, "more than one JSON value; give one")
				return
			}
		}
		switch token.Kind() {
		case '{', '[':
			r.begins = append(r.begins, len(r.names))
			if len(r.begins) > MaxDepth {
				r.refuse(starts, fmt.Sprintf("nested deeper than %d levels", MaxDepth))
				return
			}
		case '}', ']':
			last := len(r.begins) - 1
			repeated(r.names[r.begins[last]:], func(n name, text string) { r.refuse(n.where, text) })
			r.names, r.begins = r.names[:r.begins[last]], r.begins[:last]
		case '"':
			if kind, length := r.decoder.StackIndex(len(r.begins)); kind == '{' && length%2 == 1 {
				r.names = append(r.names, newName(token.String(), starts))
			}
		}
	}
}

func (r *jsonReader) refuseSyntax(err error) {
	syntax, is := errors.AsType[*jsontext.SyntacticError](err)
	if !is {
		r.refuse(len(r.data), err.Error())
		return
	}
	text := "not JSON: " + syntax.Err.Error()
	if strings.Contains(text, "invalid surrogate pair") {
		text = "half of a surrogate pair is not a character; give the other half too, or the character itself"
	}
	r.refuse(min(r.mark+int(syntax.ByteOffset), len(r.data)), text)
}
