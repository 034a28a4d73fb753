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
	"strings"

	"github.com/dronefleet/dronefleet/internal/input"
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
	data, err := io.ReadAll(r.Body)
	if large, is := errors.AsType[*http.MaxBytesError](err); is {
		return problem(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", large.Limit)
	}
	if err == nil && len(bytes.TrimSpace(data)) == 0 {
		return problem(http.StatusBadRequest, "the body is empty; send a JSON object")
	}
	if err == nil {
		data, err = input.JSON(data)
	}
	if err != nil {
		return problem(http.StatusBadRequest, "the body cannot be decoded: %s; send one JSON object", err)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil || object == nil {
		return problem(http.StatusBadRequest, "the body is not an object; send one JSON object")
	}
	fields := fieldsOf(v)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(fields, name) { // the decoder would take it in any case
			return badParameters([]ParameterProblem{{fmt.Sprintf("%.64q", name), "is not a field; the fields are " + strings.Join(fields, ", ")}})
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(v)
	wrong, isWrong := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case err == nil:
		return nil
	case isWrong && wrong.Field != "":
		name := wrong.Field[strings.LastIndex(wrong.Field, ".")+1:] // without the structs it is embedded in
		return badParameters([]ParameterProblem{{name, fmt.Sprintf("is %s; give %s", article(wrong.Value), kindOf(wrong.Type))}})
	}
	return problem(http.StatusBadRequest, "the body cannot be decoded: %s; send one JSON object", strings.TrimPrefix(err.Error(), "json: "))
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
