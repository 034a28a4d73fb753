package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Format is the encoding of a payload.
type Format string

const (
	Protobuf Format = "protobuf"
	JSON     Format = "json"
)

// AttrContentType is the message attribute that names the format.
const AttrContentType = "content-type"

// AttrSender is the authenticated name of the drone or requester that a message comes from. A
// trusted publisher sets it, such as a gateway that knows its drones; Pub/Sub itself does not
// tell who published.
const AttrSender = "dronefleet-sender"

// AttrDrone is the drone that a command is for, so that a subscription can filter by it.
const AttrDrone = "dronefleet-drone"

const (
	contentTypeProtobuf = "application/protobuf"
	contentTypeJSON     = "application/json"
)

// MaxBytes is the largest payload that is read or published.
const MaxBytes = 256 << 10

// ParseFormat is the inverse of Format's text, for flags.
func ParseFormat(name string) (Format, error) {
	switch f := Format(name); f {
	case Protobuf, JSON:
		return f, nil
	default:
		return "", fmt.Errorf("format is %q; give %q or %q", name, Protobuf, JSON)
	}
}

// formatOf finds the format of a payload by its attribute or, without one, by its first
// byte that is not a space.
func formatOf(data []byte, attrs map[string]string) (Format, error) {
	declared := attrs[AttrContentType]
	switch declared { // nearly always one of these, which need no parsing
	case "":
		return sniff(data), nil
	case contentTypeProtobuf:
		return Protobuf, nil
	}
	mediaType, _, err := mime.ParseMediaType(declared)
	switch {
	case err == nil && mediaType == contentTypeProtobuf:
		return Protobuf, nil
	case err == nil && mediaType == contentTypeJSON:
		return JSON, nil
	default:
		return "", fmt.Errorf("attribute %s is %.64q; give %q or %q",
			AttrContentType, declared, contentTypeProtobuf, contentTypeJSON)
	}
}

// MediaType is a content type without its parameters. They mean nothing here, and may be more than
// Pub/Sub takes.
func MediaType(contentType string) string {
	mediaType, _, _ := mime.ParseMediaType(contentType)
	return mediaType
}

// sniff looks for the "{" that begins a JSON payload. Protobuf can begin with the same
// bytes: the tag of a first string field is a newline, and a length of 123 is "{". A
// payload that begins with a newline and is not valid JSON is therefore protobuf.
func sniff(data []byte) Format {
	trimmed := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return Protobuf
	}
	if data[0] == '\n' && !json.Valid(data) {
		return Protobuf
	}
	return JSON
}

// unmarshal fills m from a payload of either format. Field problems that only the JSON
// shows are returned as such; anything else that is wrong is one error.
func unmarshal(kind string, data []byte, attrs map[string]string, m proto.Message) ([]Problem, error) {
	if len(data) > MaxBytes {
		return nil, &UndecodableError{kind, fmt.Sprintf("payload is %d bytes; send at most %d", len(data), MaxBytes)}
	}
	format, err := formatOf(data, attrs)
	if err != nil {
		return nil, &UndecodableError{kind, err.Error()}
	}
	if format == JSON {
		return unmarshalJSON(kind, data, m)
	}
	err = proto.Unmarshal(data, m)
	switch {
	case err == nil:
		return nil, nil
	case attrs[AttrContentType] == "": // perhaps text or JSON that is not an object
		e := neither(m, kind)
		e.Detail += ": " + oneLine(err)
		return nil, e
	}
	return nil, notA(m, kind, Protobuf, err)
}

func unmarshalJSON(kind string, data []byte, m proto.Message) ([]Problem, error) {
	long, problems, err := readJSON(data, m.ProtoReflect().Descriptor())
	if err == nil {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(long, m)
	}
	if err != nil {
		return nil, notA(m, kind, JSON, err)
	}
	return problems, nil
}

// timeExample is a time in the form that JSON has.
const timeExample = "2026-11-21T10:15:30Z"

func notA(m proto.Message, kind string, f Format, err error) error {
	detail := fmt.Sprintf("not a %s in %s: %s", m.ProtoReflect().Descriptor().FullName(), f, oneLine(err))
	switch { // the library does not say what would be valid
	case strings.Contains(detail, "invalid google.protobuf.Timestamp"):
		detail += "; give a time such as " + timeExample + ", with its zone"
	case strings.Contains(detail, "google.protobuf.Timestamp value out of range"):
		detail += "; give a time within the years 1 to 9999"
	}
	return &UndecodableError{kind, detail}
}

// neither is the error for a payload without a content type that is neither format.
func neither(m proto.Message, kind string) *UndecodableError {
	return &UndecodableError{kind, fmt.Sprintf("neither a JSON object {…} nor protobuf of a %s", m.ProtoReflect().Descriptor().FullName())}
}

// marshal writes m in the format and names the format in the attributes.
func marshal(kind string, m proto.Message, f Format) (data []byte, attrs map[string]string, err error) {
	contentType := contentTypeProtobuf
	switch f {
	case Protobuf:
		data, err = proto.MarshalOptions{Deterministic: true}.Marshal(m)
	case JSON:
		contentType = contentTypeJSON
		data, err = compactJSON(protojson.MarshalOptions{}, m)
	default:
		_, err = ParseFormat(string(f))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	if len(data) > MaxBytes {
		return nil, nil, fmt.Errorf("encode %s: payload is %d bytes; send at most %d", kind, len(data), MaxBytes)
	}
	return data, map[string]string{AttrContentType: contentType}, nil
}

// marshalJSON writes any of the fleet's messages as the HTTP API shows it:
// lowerCamelCase names, long enum names, RFC 3339 times, zeros included.
func marshalJSON(m proto.Message) ([]byte, error) {
	return compactJSON(protojson.MarshalOptions{EmitDefaultValues: true}, m)
}

// compactJSON removes the spacing that protojson varies on purpose, so that equal
// messages have equal bytes.
func compactJSON(options protojson.MarshalOptions, m proto.Message) ([]byte, error) {
	loose, err := options.Marshal(m)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.Grow(len(loose))
	if err := json.Compact(&b, loose); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
