package value

import (
	"slices"
	"strconv"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
)

const (
	// NameField is the pseudo-field by which queries refer to a document's name.
	NameField = "__name__"

	maxFieldPathBytes    = 1500
	maxFieldPathSegments = 20
)

// FieldPath is the path of a field, from the top of the document.
type FieldPath []string

// ParseFieldPath parses the field path of a query: segments separated by dots, each a
// simple word, or quoted with backticks and with the escape sequences of C. NameField
// on its own is allowed.
func ParseFieldPath(s string) (FieldPath, error) {
	path, err := splitFieldPath(s)
	if err != nil {
		return nil, err
	}
	if path.IsName() {
		return path, nil
	}
	return path, path.check()
}

// ParseWritePath is ParseFieldPath for masks and transforms, where NameField is not
// allowed.
func ParseWritePath(s string) (FieldPath, error) {
	path, err := splitFieldPath(s)
	if err != nil {
		return nil, err
	}
	return path, path.check()
}

// IsName reports whether the path is NameField.
func (p FieldPath) IsName() bool {
	return len(p) == 1 && p[0] == NameField
}

// isPrefixOf reports whether other is p or a field inside it.
func (p FieldPath) isPrefixOf(other FieldPath) bool {
	return len(p) <= len(other) && slices.Equal(p, other[:len(p)])
}

// Compare compares paths segment by segment, by their bytes.
func (p FieldPath) Compare(other FieldPath) int {
	return slices.Compare(p, other)
}

// String is the canonical form, in which only segments that must be are quoted.
func (p FieldPath) String() string {
	var b strings.Builder
	for i, segment := range p {
		if i > 0 {
			b.WriteByte('.')
		}
		if isSimpleSegment(segment) {
			b.WriteString(segment)
			continue
		}
		b.WriteByte('`')
		for j := range len(segment) {
			if segment[j] == '`' || segment[j] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(segment[j])
		}
		b.WriteByte('`')
	}
	return b.String()
}

func (p FieldPath) check() error {
	if len(p) > maxFieldPathSegments {
		return invalidf("paths must have at most %d elements", maxFieldPathSegments)
	}
	for _, segment := range p {
		if isReservedField(segment) {
			return invalidf("Invalid reserved name in field path %s", segment)
		}
	}
	return nil
}

func splitFieldPath(s string) (FieldPath, error) {
	if s == "" {
		return nil, invalidf("Invalid empty property path string.")
	}
	if len(s) > maxFieldPathBytes {
		return nil, invalidf("property path is longer than %d bytes.", maxFieldPathBytes)
	}
	path := make(FieldPath, 0, 1+strings.Count(s, "."))
	for rest := s; ; {
		segment, after, ok := cutSegment(rest)
		if !ok || after != "" && after[0] != '.' {
			return nil, badPath(s)
		}
		path = append(path, segment)
		if after == "" {
			return path, nil
		}
		rest = after[1:]
	}
}

func badPath(s string) error {
	return invalidf("Invalid property path \"%s\". Unquoted property paths must match regex ([a-zA-Z_][a-zA-Z_0-9]*), "+
		"and quoted property paths must match regex (`(?:[^`\\\\]|(?:\\\\.))+`)", s)
}

// cutSegment splits off the first segment of s and unquotes it.
func cutSegment(s string) (segment, rest string, ok bool) {
	if !strings.HasPrefix(s, "`") {
		end := 0
		for end < len(s) && isWordByte(s[end], end > 0) {
			end++
		}
		return s[:end], s[end:], end > 0
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '`':
			return b.String(), s[i+1:], b.Len() > 0
		case '\\':
			c, after, ok := unescape(s[i:])
			if !ok {
				return "", "", false
			}
			b.WriteRune(c)
			i = len(s) - len(after) - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

// unescape splits off and decodes the escape sequence that s begins with, one of Go or
// one that only C has.
func unescape(s string) (c rune, rest string, ok bool) {
	if len(s) > 1 {
		switch s[1] {
		case '`', '\'', '"', '?':
			return rune(s[1]), s[2:], true
		case 'X':
			s = `\x` + s[2:]
		}
	}
	c, _, rest, err := strconv.UnquoteChar(s, 0)
	return c, rest, err == nil
}

func isSimpleSegment(s string) bool {
	for i := range len(s) {
		if !isWordByte(s[i], i > 0) {
			return false
		}
	}
	return s != ""
}

func isWordByte(c byte, digitsToo bool) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || digitsToo && '0' <= c && c <= '9'
}

// isReservedField reports whether a field's name matches __.*__ .
func isReservedField(name string) bool {
	return len(name) >= 4 && strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__")
}

// Get returns the value at path, nil if there is none.
func Get(fields map[string]*pb.Value, path FieldPath) *pb.Value {
	for i, segment := range path {
		v, ok := fields[segment]
		if !ok {
			return nil
		}
		if i == len(path)-1 {
			return v
		}
		fields = inside(v)
	}
	return nil
}

// Set returns fields with v at path. Maps on the path are copied, missing ones
// created, and other values replaced by a map. The argument is not changed.
func Set(fields map[string]*pb.Value, path FieldPath, v *pb.Value) map[string]*pb.Value {
	changed := cloneFields(fields)
	if len(path) == 1 {
		changed[path[0]] = v
		return changed
	}
	inner := Set(inside(fields[path[0]]), path[1:], v)
	changed[path[0]] = mapValue(inner)
	return changed
}

// Delete returns fields without the value at path, or fields itself if there is none.
// The argument is not changed.
func Delete(fields map[string]*pb.Value, path FieldPath) map[string]*pb.Value {
	if Get(fields, path) == nil {
		return fields
	}
	changed := cloneFields(fields)
	if len(path) == 1 {
		delete(changed, path[0])
		return changed
	}
	inner := Delete(inside(fields[path[0]]), path[1:])
	changed[path[0]] = mapValue(inner)
	return changed
}

// inside returns the fields of a map. A vector is encoded as a map but has none.
func inside(v *pb.Value) map[string]*pb.Value {
	if isVector(v.GetMapValue()) {
		return nil
	}
	return v.GetMapValue().GetFields()
}

func cloneFields(fields map[string]*pb.Value) map[string]*pb.Value {
	clone := make(map[string]*pb.Value, len(fields)+1)
	for k, v := range fields {
		clone[k] = v
	}
	return clone
}

func mapValue(fields map[string]*pb.Value) *pb.Value {
	return &pb.Value{ValueType: &pb.Value_MapValue{MapValue: &pb.MapValue{Fields: fields}}}
}
