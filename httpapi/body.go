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

	"github.com/dronefleet/dronefleet/internal/input"
)

// MaxBodyBytes bounds the body of a request.
const MaxBodyBytes = 64 << 10

// body is what the JSON body of a request is decoded into. check says what is
// wrong with its fields.
type body interface{ check(*problems) }

// headed is a body that also needs the request's header; see head.
type headed interface{ head(http.Header) }

// readBody decodes and checks the body of a request, and adds what is wrong with its fields to
// bad, each with a pointer. The error says what is wrong with the whole.
func readBody(r *http.Request, v body, bad *problems) error {
	object, err := readObject(r)
	if err != nil {
		return err
	}
	before := *bad
	var undecoded, unfit problems
	if err := decodeFields(object, reflect.ValueOf(v).Elem(), "", &undecoded); err != nil {
		return err
	}
	if h, is := v.(headed); is {
		h.head(r.Header)
	}
	v.check(&unfit)
	unfit = slices.DeleteFunc(unfit, func(p ParameterProblem) bool { // it follows from the field's other problem
		return slices.ContainsFunc(undecoded, func(other ParameterProblem) bool { return other.Name == p.Name })
	})
	*bad = slices.Concat(before, pointed(undecoded), pointed(unfit))
	return nil
}

// readObject reads the body of a request, which must be one JSON object. The content type is
// required because browsers do not let a web page send it to another host without asking that
// host first.
func readObject(r *http.Request) (object map[string]json.RawMessage, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, problem(http.StatusUnsupportedMediaType, "content type %.64q not supported; send \"Content-Type: application/json\"", r.Header.Get("Content-Type"))
	}
	data, err := io.ReadAll(r.Body)
	if large, is := errors.AsType[*http.MaxBytesError](err); is {
		return nil, problem(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", large.Limit)
	}
	if err == nil && len(bytes.TrimSpace(data)) == 0 {
		return nil, problem(http.StatusBadRequest, "the body is empty; send a JSON object")
	}
	if err == nil {
		data, err = input.JSON(data)
	}
	if err != nil {
		return nil, problem(http.StatusBadRequest, "the body cannot be decoded: %s; send one JSON object", err)
	}
	if json.Unmarshal(data, &object) != nil || object == nil {
		return nil, problem(http.StatusBadRequest, "the body is not an object; send one JSON object")
	}
	return object, nil
}

// decodeFields decodes an object into a struct, field by field, and adds the fields that it cannot
// decode or does not know to bad. within is the path of the object in the body. A field may also be
// given by the name in its tag wire.
func decodeFields(object map[string]json.RawMessage, v reflect.Value, within string, bad *problems) error {
	fields := fieldsOf(v)
	unknown := 0
	for _, name := range slices.Sorted(maps.Keys(object)) {
		field, known := fields[name]
		if !known {
			if unknown++; unknown <= maxUnknown {
				bad.add(fmt.Sprintf("%.64q", within+name), "is not a field; the fields are %s", strings.Join(namesOf(v), ", "))
			}
			continue
		}
		var inner map[string]json.RawMessage
		if t := field.Type(); t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && json.Unmarshal(object[name], &inner) == nil {
			if inner != nil {
				field.Set(reflect.New(t.Elem()))
				if err := decodeFields(inner, field.Elem(), within+name+".", bad); err != nil {
					return err
				}
			}
			continue
		}
		err := json.Unmarshal(object[name], field.Addr().Interface())
		wrong, isWrong := errors.AsType[*json.UnmarshalTypeError](err)
		switch {
		case isWrong:
			field.SetZero()
			bad.add(within+name, "is %s; give %s", article(wrong.Value), kindOf(wrong.Type))
		case err != nil:
			return problem(http.StatusBadRequest, "the body cannot be decoded: %s; send one JSON object", strings.TrimPrefix(err.Error(), "json: "))
		}
	}
	return nil
}

// fieldsOf are the fields of a struct by each of their names, with those of embedded structs.
func fieldsOf(v reflect.Value) map[string]reflect.Value {
	fields := map[string]reflect.Value{}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(fields, fieldsOf(v.Field(i)))
		case f.IsExported() && name != "" && name != "-":
			fields[name] = v.Field(i)
			if wireName := f.Tag.Get("wire"); wireName != "" {
				fields[wireName] = v.Field(i)
			}
		}
	}
	return fields
}

// namesOf lists the names of a struct's fields as the API shows them.
func namesOf(v reflect.Value) []string {
	properties, required := schema{}, []string{}
	newSchemas().fields(v.Type(), properties, &required)
	return slices.Sorted(maps.Keys(properties))
}

// pointed adds to each problem of a body the pointer to its field (RFC 6901).
func pointed(bad problems) problems {
	for i, p := range bad {
		path := strings.Split(p.Name, ".")
		if name, err := strconv.Unquote(p.Name); err == nil { // an unknown field
			path = []string{name}
		}
		for _, name := range path {
			bad[i].Pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		}
	}
	return bad
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
	case reflect.Float64:
		return "a number"
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
