package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// MaxBodyBytes bounds the body of a request.
const MaxBodyBytes = 64 << 10

// body is what the JSON body of a request is decoded into. check says what is
// wrong with its fields.
type body interface{ check(*problems) }

// readJSON decodes the body of a request, which must be one JSON object without
// unknown fields. The content type is required because browsers do not let a web
// page send it to another host without asking that host first.
func readJSON(r *http.Request, v any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return problem(http.StatusUnsupportedMediaType, "content type %.64q not supported; send \"Content-Type: application/json\"", r.Header.Get("Content-Type"))
	}
	decoder := json.NewDecoder(r.Body)
	var object json.RawMessage
	err := decoder.Decode(&object)
	if err == nil && !bytes.HasPrefix(object, []byte("{")) {
		err = errors.New("it is not an object")
	}
	if err == nil {
		known := json.NewDecoder(bytes.NewReader(object))
		known.DisallowUnknownFields()
		err = known.Decode(v)
	}
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.Join(errors.New("data follows the object"), tooLarge(more))
		}
	}
	large, isLarge := errors.AsType[*http.MaxBytesError](err)
	wrong, isWrong := errors.AsType[*json.UnmarshalTypeError](err)
	unknown, isUnknown := unknownField(err)
	switch {
	case err == nil:
		return nil
	case isWrong && wrong.Field != "":
		name := wrong.Field[strings.LastIndex(wrong.Field, ".")+1:] // without the structs it is embedded in
		return badParameter(name, "is %s; give %s", article(wrong.Value), kindOf(wrong.Type))
	case isUnknown:
		return badParameter(fmt.Sprintf("%.64q", unknown), "is not a field; the fields are %s", strings.Join(fieldsOf(v), ", "))
	case isLarge:
		return problem(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", large.Limit)
	case errors.Is(err, io.EOF):
		return problem(http.StatusBadRequest, "the body is empty; send a JSON object")
	}
	return problem(http.StatusBadRequest, "the body cannot be decoded: %s; send one JSON object", strings.TrimPrefix(err.Error(), "json: "))
}

// unknownField is the field that the decoder does not know, if that is what err says.
func unknownField(err error) (name string, is bool) {
	if err == nil {
		return "", false
	}
	quoted, is := strings.CutPrefix(err.Error(), "json: unknown field ")
	if !is {
		return "", false
	}
	name, err = strconv.Unquote(quoted)
	return name, err == nil
}

// fieldsOf lists the fields of a body.
func fieldsOf(v any) []string {
	properties, required := schema{}, []string{}
	newSchemas().fields(reflect.TypeOf(v).Elem(), properties, &required)
	return slices.Sorted(maps.Keys(properties))
}

// kindOf names the values that a type is decoded from.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

func article(value string) string {
	switch {
	case value == "bool":
		return "true or false"
	case strings.ContainsRune("aeiou", rune(value[0])):
		return "an " + value
	}
	return "a " + value
}

// tooLarge is err if it says that the body is too large, nil otherwise.
func tooLarge(err error) error {
	if large, is := errors.AsType[*http.MaxBytesError](err); is {
		return large
	}
	return nil
}
