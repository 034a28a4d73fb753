package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dronefleet/dronefleet/internal/input"
	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// readJSON rewrites what protojson does not know, and leaves every other byte alone: the
// short enum names of a JSON payload (IDLE) become the long ones (DRONE_STATUS_IDLE), and
// the T and Z of times upper-case. It returns as problems what protojson, told to ignore
// unknown fields, would ignore: enum names that are neither, misspelt fields, and
// positions that lack a coordinate.
func readJSON(data []byte, root protoreflect.MessageDescriptor) ([]byte, []Problem, error) {
	text, err := input.JSON(data)
	if err != nil {
		return nil, nil, err
	}
	l := jsonReader{in: text, decoder: json.NewDecoder(bytes.NewReader(text))}
	l.decoder.UseNumber()
	if err := l.value(root, nil, ""); err != nil {
		return nil, nil, err
	}
	l.out = append(l.out, text[l.copied:]...)
	return l.out, l.problems, nil
}

type jsonReader struct {
	in       []byte
	out      []byte
	copied   int // bytes of in that out already stands for
	decoder  *json.Decoder
	problems []Problem
}

// value reads one JSON value. message is the type of an object there and enum
// that of a name there; both are nil where nothing is to be rewritten.
func (l *jsonReader) value(message protoreflect.MessageDescriptor, enum protoreflect.EnumDescriptor, path string) error {
	before := int(l.decoder.InputOffset())
	token, err := l.decoder.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case string:
		switch {
		case enum != nil:
			l.name(enum, token, before, path)
		case message == timeType:
			if at, err := input.Time(token); err == nil && strings.ContainsAny(token, "tz") {
				l.replace(before, at.Format(time.RFC3339Nano))
			}
		}
	case json.Delim:
		if token == '{' {
			return l.object(message, path)
		}
		return l.array(message, enum, path)
	}
	return nil
}

func (l *jsonReader) object(message protoreflect.MessageDescriptor, path string) error {
	given := map[protoreflect.Name]bool{}
	var unknown []string
	for l.decoder.More() {
		key, err := l.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		field := fieldByAnyName(message, name)
		var (
			inner protoreflect.MessageDescriptor
			enum  protoreflect.EnumDescriptor
		)
		fieldPath := path
		if field != nil {
			given[field.Name()] = true
			inner, enum = field.Message(), field.Enum()
			fieldPath = join(path, string(field.Name()))
		} else {
			unknown = append(unknown, name)
		}
		before := l.decoder.InputOffset()
		if err := l.value(inner, enum, fieldPath); err != nil {
			return err
		}
		is := bytes.TrimLeft(l.in[before:l.decoder.InputOffset()], ": \t\r\n")
		switch {
		case field == nil:
		case string(is) == "null":
			if message == positionType {
				l.problems = append(l.problems, Problem{fieldPath, "is null; give degrees"})
			}
		case inner != nil && !field.IsList() && is[0] != begins(inner):
			return fmt.Errorf("%s is %.64s; give %s", fieldPath, is, formOf(inner))
		}
	}
	switch {
	case message == positionType:
		l.problems = append(l.problems, missingCoordinates(path, given, unknown)...)
	case message != nil:
		l.problems = append(l.problems, misspelt(message, path, given, unknown)...)
	}
	_, err := l.decoder.Token()
	return err
}

var (
	positionType = (*pb.Position)(nil).ProtoReflect().Descriptor()
	timeType     = (*timestamppb.Timestamp)(nil).ProtoReflect().Descriptor()
)

// begins is the byte that a message begins with in JSON.
func begins(message protoreflect.MessageDescriptor) byte {
	if message == timeType {
		return '"'
	}
	return '{'
}

// formOf describes the JSON of a message.
func formOf(message protoreflect.MessageDescriptor) string {
	switch message {
	case timeType:
		return "a time such as " + timeExample
	case positionType:
		return "lat and lon in degrees"
	}
	return "an object"
}

// missingCoordinates reports the coordinates that a position lacks, and the first
// unknown name beside them, such as lng, which was probably meant.
func missingCoordinates(path string, given map[protoreflect.Name]bool, unknown []string) (bad []Problem) {
	beside := ""
	if len(unknown) > 0 {
		beside = fmt.Sprintf(" beside %.64q", unknown[0])
	}
	for _, name := range []protoreflect.Name{"lat", "lon"} {
		if !given[name] {
			bad = append(bad, Problem{join(path, string(name)), "is missing" + beside + "; give lat and lon in degrees"})
		}
	}
	return bad
}

// misspelt reports unknown names that are probably a misspelt field that the object
// lacks. A field that is given was not meant by another name.
func misspelt(message protoreflect.MessageDescriptor, path string, given map[protoreflect.Name]bool, unknown []string) (bad []Problem) {
	if len(unknown) == 0 {
		return nil
	}
	var lacking []string
	for i := range message.Fields().Len() {
		if field := message.Fields().Get(i); !given[field.Name()] {
			lacking = append(lacking, field.JSONName(), string(field.Name()))
		}
	}
	for _, name := range unknown {
		if known := input.Nearest(name, lacking); known != "" {
			field := fieldByAnyName(message, known)
			bad = append(bad, Problem{join(path, string(field.Name())), fmt.Sprintf("is spelt %.64q; give %q", name, known)})
		}
	}
	return bad
}

func (l *jsonReader) array(message protoreflect.MessageDescriptor, enum protoreflect.EnumDescriptor, path string) error {
	for i := 0; l.decoder.More(); i++ {
		if err := l.value(message, enum, at(path, i)); err != nil {
			return err
		}
	}
	_, err := l.decoder.Token()
	return err
}

// name replaces the enum name that ends where the decoder stands and began
// after before, if it is a short one.
func (l *jsonReader) name(enum protoreflect.EnumDescriptor, name string, before int, path string) {
	prefix := enumPrefix(enum)
	values := enum.Values()
	switch {
	case values.ByName(protoreflect.Name(name)) != nil:
	case values.ByName(protoreflect.Name(prefix+name)) != nil:
		l.replace(before, prefix+name)
	default:
		l.problems = append(l.problems, Problem{path, fmt.Sprintf("is %.64q; give %s", name, choices(enum))})
	}
}

// replace writes text for the string that ends where the decoder stands and began after
// before.
func (l *jsonReader) replace(before int, text string) {
	start := before + bytes.IndexByte(l.in[before:], '"')
	l.out = append(l.out, l.in[l.copied:start]...)
	l.out = strconv.AppendQuote(l.out, text)
	l.copied = int(l.decoder.InputOffset())
}

// fieldByAnyName finds a field by its snake_case or lowerCamelCase name.
func fieldByAnyName(message protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if message == nil {
		return nil
	}
	if field := message.Fields().ByJSONName(name); field != nil {
		return field
	}
	return message.Fields().ByTextName(name)
}

// enumPrefix is what the long names of an enum begin with: its name in upper
// snake case. The zero value spells it.
func enumPrefix(enum protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(enum.Values().ByNumber(0).Name()), "UNSPECIFIED")
}

// choices lists the short names of an enum, in order.
func choices(enum protoreflect.EnumDescriptor) string {
	prefix := enumPrefix(enum)
	var names []string
	for i := range enum.Values().Len() {
		if v := enum.Values().Get(i); v.Number() != 0 {
			names = append(names, strings.TrimPrefix(string(v.Name()), prefix))
		}
	}
	return oneOf(names)
}

// oneOf lists names for a person to choose from.
func oneOf(names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
