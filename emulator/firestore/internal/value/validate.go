package value

import (
	"strconv"
	"strings"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/genproto/googleapis/type/latlng"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	// MaxValueBytes bounds one string or bytes value.
	MaxValueBytes = 1<<20 - 89

	maxFieldNameBytes   = 1500
	maxDepth            = 20 // nested maps and arrays
	maxVectorDimensions = 2048
)

// bsonKeys are the keys of maps with one key that encode BSON values.
var bsonKeys = map[string]bool{
	"__min__": true, "__max__": true, "__int__": true, "__decimal128__": true, "__oid__": true,
	"__binary__": true, "__regex__": true, "__request_timestamp__": true,
}

// ValidateFields returns an error if a document cannot have these fields, because a
// field name is illegal or the service does not accept a value.
func ValidateFields(fields map[string]*pb.Value) error {
	for field, v := range fields {
		switch {
		case field == "":
			return invalidf("The property.name is the empty string.")
		case len(field) > maxFieldNameBytes:
			return invalidf("The property.name is longer than %d bytes.", maxFieldNameBytes)
		case isReservedField(field):
			return invalidf("field name %s is reserved", field)
		}
		if err := (valueValidator{property: field}).value(v, 0); err != nil {
			return err
		}
	}
	return nil
}

// ValidateSize returns an error if a document has more than MaxDocumentBytes.
func ValidateSize(name Name, fields map[string]*pb.Value) error {
	if size := documentSize(name, fields); size > MaxDocumentBytes {
		return invalidf("Document '%s' cannot be written because its size (%s bytes) exceeds the maximum allowed size of %s bytes.",
			name, withThousands(size), withThousands(MaxDocumentBytes))
	}
	return nil
}

// ValidateOperand returns an error if v cannot be the operand of a filter or cursor.
// The rules are those of ValidateFields, except that arrays can contain arrays.
func ValidateOperand(v *pb.Value) error {
	return valueValidator{property: "value", nestedArrays: true}.value(v, 0)
}

func withThousands(n int) string {
	digits := strconv.Itoa(n)
	var b strings.Builder
	for i, digit := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	return b.String()
}

// valueValidator checks the value of a top-level field. property is the name of the
// field, for the errors.
type valueValidator struct {
	property     string
	nestedArrays bool
}

// value checks v, which is inside depth maps and arrays.
func (c valueValidator) value(v *pb.Value, depth int) error {
	switch t := v.GetValueType().(type) {
	case nil:
		return invalidf("Cannot convert firestore.v1.Value with type unset.")
	case *pb.Value_NullValue, *pb.Value_BooleanValue, *pb.Value_IntegerValue, *pb.Value_DoubleValue:
		return nil
	case *pb.Value_StringValue:
		return c.length(len(t.StringValue))
	case *pb.Value_BytesValue:
		return c.length(len(t.BytesValue))
	case *pb.Value_TimestampValue:
		return checkTimestamp(t.TimestampValue)
	case *pb.Value_ReferenceValue:
		_, err := ParseReference(t.ReferenceValue)
		return err
	case *pb.Value_GeoPointValue:
		return checkGeoPoint(t.GeoPointValue)
	case *pb.Value_ArrayValue:
		return c.array(t.ArrayValue, depth+1)
	case *pb.Value_MapValue:
		return c.mapping(t.MapValue, depth+1)
	case *pb.Value_FieldReferenceValue:
		return invalidf("Value type is not supported: FIELD_REFERENCE_VALUE")
	case *pb.Value_VariableReferenceValue:
		return invalidf("Value type is not supported: VARIABLE_REFERENCE_VALUE")
	case *pb.Value_FunctionValue:
		return invalidf("Value type is not supported: FUNCTION_VALUE")
	case *pb.Value_PipelineValue:
		return invalidf("Value type is not supported: PIPELINE_VALUE")
	default:
		return unimplemented("value type")
	}
}

func (c valueValidator) length(n int) error {
	if n > MaxValueBytes {
		return invalidf(`The value of property "%s" is longer than %d bytes.`, c.property, MaxValueBytes)
	}
	return nil
}

func (c valueValidator) array(array *pb.ArrayValue, depth int) error {
	if depth > maxDepth {
		return c.badNesting()
	}
	for _, element := range array.GetValues() {
		switch kind := KindOf(element); {
		case kind == KindArray && !c.nestedArrays:
			return invalidf("Cannot convert an array value in an array value.")
		case kind == KindVector:
			return invalidf("Cannot convert a vector value in an array value.")
		}
		if err := c.value(element, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c valueValidator) mapping(m *pb.MapValue, depth int) error {
	if isVector(m) {
		return checkVector(m)
	}
	if depth > maxDepth {
		return c.badNesting()
	}
	for name, v := range m.GetFields() {
		switch {
		case len(m.GetFields()) == 1 && bsonKeys[name]:
			return unimplemented("BSON value " + name)
		case name == "" || len(name) > maxFieldNameBytes || name == typeKey:
			return c.badNesting()
		case isReservedField(name):
			return invalidf("field name '%s' is reserved.", name)
		}
		if err := c.value(v, depth); err != nil {
			return err
		}
	}
	return nil
}

func (c valueValidator) badNesting() error {
	return invalidf("Property %s contains an invalid nested entity.", c.property)
}

func checkVector(m *pb.MapValue) error {
	elements, ok := m.GetFields()[vectorKey]
	switch {
	case !ok:
		return invalidf("Vector map is missing key 'value'.")
	case len(m.GetFields()) > 2:
		return invalidf("Vector Value map has extraneous entries.")
	}
	values := elements.GetArrayValue().GetValues()
	switch {
	case len(values) == 0:
		return invalidf("Cannot have a zero length vector.")
	case len(values) > maxVectorDimensions:
		return invalidf("Vectors must be at most %d dimensions.", maxVectorDimensions)
	}
	for _, v := range values {
		if _, ok := v.GetValueType().(*pb.Value_DoubleValue); !ok {
			return invalidf("Vector must only contain values of type 'double'")
		}
	}
	return nil
}

func checkTimestamp(t *timestamppb.Timestamp) error {
	if err := t.CheckValid(); err != nil {
		return invalidf("Timestamp seconds %d, nanos %d is outside 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z.", t.GetSeconds(), t.GetNanos())
	}
	return nil
}

// checkGeoPoint is written so that NaN is out of both ranges.
func checkGeoPoint(p *latlng.LatLng) error {
	if lat := p.GetLatitude(); !(lat >= -90 && lat <= 90) {
		return invalidf("Geo point latitude '%s' outside permitted range -90.0 to 90.0.", decimal(lat))
	}
	if lng := p.GetLongitude(); !(lng >= -180 && lng <= 180) {
		return invalidf("Geo point longitude '%s' outside permitted range -180.0 to 180.0.", decimal(lng))
	}
	return nil
}

// decimal formats f with at least one digit after the point.
func decimal(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if strings.ContainsAny(s, ".Ny") { // NaN and +Inf have no point
		return s
	}
	return s + ".0"
}
