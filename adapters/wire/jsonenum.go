package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// maxDepth bounds the nesting of JSON; the messages need four levels.
const maxDepth = 100

// lengthenEnums rewrites the short enum names of a JSON payload (IDLE) to the
// long ones (DRONE_STATUS_IDLE) that protojson knows, leaving every other byte
// alone. Names that are neither come back as problems: protojson, told to
// ignore unknown fields, would silently ignore them too. So do coordinates that
// are null or have another name: it would take them for zero, which is a place.
func lengthenEnums(data []byte, root protoreflect.MessageDescriptor) ([]byte, []Problem, error) {
	l := enumLengthener{in: data, decoder: json.NewDecoder(bytes.NewReader(data))}
	l.decoder.UseNumber()
	if err := l.value(root, nil, "", 0); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, nil, err
	}
	l.out = append(l.out, data[l.copied:]...)
	return l.out, l.problems, nil
}

type enumLengthener struct {
	in       []byte
	out      []byte
	copied   int // bytes of in that out already stands for
	decoder  *json.Decoder
	problems []Problem
}

// value reads one JSON value. message is the type of an object there and enum
// that of a name there; both are nil where nothing is to be rewritten.
func (l *enumLengthener) value(message protoreflect.MessageDescriptor, enum protoreflect.EnumDescriptor, path string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	before := int(l.decoder.InputOffset())
	token, err := l.decoder.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case string:
		if enum != nil {
			l.name(enum, token, before, path)
		}
	case json.Delim:
		if token == '{' {
			return l.object(message, path, depth)
		}
		return l.array(message, enum, path, depth)
	}
	return nil
}

func (l *enumLengthener) object(message protoreflect.MessageDescriptor, path string, depth int) error {
	var c coordinates
	for l.decoder.More() {
		key, err := l.decoder.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		field := fieldByAnyName(message, name)
		c.note(name, field != nil)
		var (
			inner protoreflect.MessageDescriptor
			enum  protoreflect.EnumDescriptor
		)
		fieldPath := path
		if field != nil {
			inner, enum = field.Message(), field.Enum()
			fieldPath = join(path, string(field.Name()))
		}
		before := l.decoder.InputOffset()
		if err := l.value(inner, enum, fieldPath, depth+1); err != nil {
			return err
		}
		if field != nil && message == positionType && bytes.HasSuffix(l.in[before:l.decoder.InputOffset()], []byte("null")) {
			l.problems = append(l.problems, Problem{fieldPath, "is null; give degrees"})
		}
	}
	if message == positionType {
		l.problems = append(l.problems, c.problems(path)...)
	}
	_, err := l.decoder.Token()
	return err
}

var positionType = (*pb.Position)(nil).ProtoReflect().Descriptor()

// coordinates are the names in a position.
type coordinates struct {
	lat, lon bool
	unknown  string // the first, if any
}

func (c *coordinates) note(name string, known bool) {
	switch {
	case name == "lat":
		c.lat = true
	case name == "lon":
		c.lon = true
	case !known && c.unknown == "":
		c.unknown = name
	}
}

// problems complains about a coordinate that is missing beside something
// unknown, such as lng: that is what it was meant to be. One that is merely
// missing is zero, as JSON of protobuf leaves it out.
func (c *coordinates) problems(path string) (bad []Problem) {
	if c.unknown == "" {
		return nil
	}
	for _, of := range []struct {
		name  string
		given bool
	}{{"lat", c.lat}, {"lon", c.lon}} {
		if !of.given {
			bad = append(bad, Problem{join(path, of.name), fmt.Sprintf("is missing beside %.64q; give lat and lon in degrees", c.unknown)})
		}
	}
	return bad
}

func (l *enumLengthener) array(message protoreflect.MessageDescriptor, enum protoreflect.EnumDescriptor, path string, depth int) error {
	for i := 0; l.decoder.More(); i++ {
		if err := l.value(message, enum, at(path, i), depth+1); err != nil {
			return err
		}
	}
	_, err := l.decoder.Token()
	return err
}

// name replaces the enum name that ends where the decoder stands and began
// after before, if it is a short one.
func (l *enumLengthener) name(enum protoreflect.EnumDescriptor, name string, before int, path string) {
	prefix := enumPrefix(enum)
	values := enum.Values()
	switch {
	case values.ByName(protoreflect.Name(name)) != nil:
	case values.ByName(protoreflect.Name(prefix+name)) != nil:
		start := before + bytes.IndexByte(l.in[before:], '"')
		l.out = append(l.out, l.in[l.copied:start]...)
		l.out = append(l.out, '"')
		l.out = append(l.out, prefix+name...)
		l.out = append(l.out, '"')
		l.copied = int(l.decoder.InputOffset())
	default:
		l.problems = append(l.problems, Problem{path, fmt.Sprintf("is %.64q; give %s", name, choices(enum))})
	}
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
