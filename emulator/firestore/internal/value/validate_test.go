package value

import (
	"math"
	"strings"
	"testing"

	pb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// E-ER-01
func TestValidateFields_RefusesIllegalFields(t *testing.T) {
	long := strings.Repeat("x", MaxValueBytes)
	tooLong := long + "x"
	name1500 := strings.Repeat("x", 1500)
	manyElements := make([]float64, maxVectorDimensions+1)
	foreign := &pb.Value{ValueType: &pb.Value_ReferenceValue{ReferenceValue: "projects/q/databases/d/documents/a/b"}}
	badReference := &pb.Value{ValueType: &pb.Value_ReferenceValue{ReferenceValue: "a/b"}}

	tests := map[string]struct {
		fields fields
		want   string // empty: legal
	}{
		"no fields":                     {nil, ""},
		"every type":                    {fields{"a": array(nullValue(), boolean(true), integer(1), double(1), instant(0, 0), text(""), blob(""), reference("a/b"), geoPoint(90, -180), mapValue(nil)), "v": vector(1)}, ""},
		"odd names":                     {fields{"é": integer(1), "a.b": integer(1), "a`b": integer(1), "__x": integer(1), "x__": integer(1), "_": integer(1), name1500: integer(1)}, ""},
		"reference to another database": {fields{"a": foreign}, ""},
		"array in a map in an array":    {fields{"a": array(mapValue(fields{"a": array()}))}, ""},
		"string at the limit":           {fields{"a": text(long)}, ""},
		"20 deep":                       {fields{"a": nested(20, integer(1))}, ""},

		"empty name":                {fields{"": integer(1)}, "The property.name is the empty string."},
		"name of 1501 bytes":        {fields{name1500 + "x": integer(1)}, "The property.name is longer than 1500 bytes."},
		"reserved name":             {fields{"__x__": integer(1)}, "field name __x__ is reserved"},
		"four underscores":          {fields{"____": integer(1)}, "field name ____ is reserved"},
		"the document's name":       {fields{"__name__": integer(1)}, "field name __name__ is reserved"},
		"empty name inside":         {fields{"m": mapValue(fields{"": integer(1)})}, "Property m contains an invalid nested entity."},
		"reserved name inside":      {fields{"m": mapValue(fields{"__x__": integer(1), "y": integer(1)})}, "field name '__x__' is reserved."},
		"value without a type":      {fields{"a": {}}, "Cannot convert firestore.v1.Value with type unset."},
		"nil value":                 {fields{"a": nil}, "Cannot convert firestore.v1.Value with type unset."},
		"element without a type":    {fields{"a": array(&pb.Value{})}, "Cannot convert firestore.v1.Value with type unset."},
		"array in an array":         {fields{"a": array(array())}, "Cannot convert an array value in an array value."},
		"vector in an array":        {fields{"a": array(vector(1))}, "Cannot convert a vector value in an array value."},
		"bad reference":             {fields{"a": badReference}, `Resource name "a/b" lacks "projects" at index 0.`},
		"reference to a collection": {fields{"a": reference("a")}, `Resource name "projects/p/databases/(default)/documents/a" lacks "/" at index 42.`},
		"latitude":                  {fields{"a": geoPoint(91, 0)}, "Geo point latitude '91.0' outside permitted range -90.0 to 90.0."},
		"latitude NaN":              {fields{"a": geoPoint(math.NaN(), 0)}, "Geo point latitude 'NaN' outside permitted range -90.0 to 90.0."},
		"longitude":                 {fields{"a": geoPoint(0, -180.5)}, "Geo point longitude '-180.5' outside permitted range -180.0 to 180.0."},
		"string too long":           {fields{"a": text(tooLong)}, `The value of property "a" is longer than 1048487 bytes.`},
		"bytes too long, inside":    {fields{"a": array(blob(tooLong))}, `The value of property "a" is longer than 1048487 bytes.`},
		"21 deep":                   {fields{"a": nested(21, integer(1))}, "Property a contains an invalid nested entity."},
		"timestamp out of range":    {fields{"a": instant(1<<40, 0)}, "Timestamp seconds 1099511627776, nanos 0 is outside 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z."},
		"empty vector":              {fields{"a": vector()}, "Cannot have a zero length vector."},
		"vector too long":           {fields{"a": vector(manyElements...)}, "Vectors must be at most 2048 dimensions."},
		"vector of integers":        {fields{"a": mapValue(fields{typeKey: text(vectorType), vectorKey: array(integer(1))})}, "Vector must only contain values of type 'double'"},
		"vector without elements":   {fields{"a": mapValue(fields{typeKey: text(vectorType)})}, "Vector map is missing key 'value'."},
		"vector with more":          {fields{"a": mapValue(fields{typeKey: text(vectorType), vectorKey: array(double(1)), "z": integer(1)})}, "Vector Value map has extraneous entries."},
		"another __type__":          {fields{"a": mapValue(fields{typeKey: text("x")})}, "Property a contains an invalid nested entity."},
		"field reference":           {fields{"a": {ValueType: &pb.Value_FieldReferenceValue{FieldReferenceValue: "b"}}}, "Value type is not supported: FIELD_REFERENCE_VALUE"},
	}
	for rule, tt := range tests {
		t.Run(rule, func(t *testing.T) {
			err := ValidateFields(tt.fields)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != tt.want {
				t.Errorf("%v, want %s", err, tt.want)
			}
		})
	}
}

// E-RPC-03
func TestValidateFields_RefusesBSON(t *testing.T) {
	err := ValidateFields(fields{"a": mapValue(fields{"__oid__": text("507f191e810c19729de860ea")})})
	const want = "embedded firestore: BSON value __oid__ not implemented (E-RPC-03)"
	if status.Code(err) != codes.Unimplemented || status.Convert(err).Message() != want {
		t.Errorf("%v, want Unimplemented %s", err, want)
	}
}

// E-ER-01
func TestValidateSize_RefusesLargeDocument(t *testing.T) {
	// name a/b: 2 + 2 + 16; per document 32; fields a, b: 2 + len + 1 each.
	const overhead = 20 + 32 + 3 + 3
	ofSize := func(total int) fields {
		return fields{"a": text(strings.Repeat("x", 1_000_000)), "b": text(strings.Repeat("y", total-overhead-1_000_000))}
	}
	name, err := ParseName(testRoot + "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	if err := ValidateSize(name, ofSize(MaxDocumentBytes)); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	err = ValidateSize(name, ofSize(MaxDocumentBytes+1))
	const want = "Document '" + testRoot + "/a/b' cannot be written because its size (1,048,577 bytes) exceeds the maximum allowed size of 1,048,576 bytes."
	if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// The example in https://firebase.google.com/docs/firestore/storage-size,
// users/jeff/tasks/my_task_id, has 147 bytes.
func TestDocumentSize_AgreesWithDocumentation(t *testing.T) {
	name, err := ParseName(testRoot + "/users/jeff/tasks/my_task_id")
	if err != nil {
		t.Fatal(err)
	}
	task := fields{"type": text("Personal"), "done": boolean(false), "priority": integer(1), "description": text("Learn Cloud Firestore")}
	if got := documentSize(name, task); got != 147 {
		t.Errorf("documentSize = %d, want 147", got)
	}
	others := fields{"n": nullValue(), "d": double(1), "t": instant(0, 0), "g": geoPoint(0, 0), "b": blob("xyz"), "r": reference("a/b"), "a": array(integer(1), text("x")), "m": mapValue(fields{"k": boolean(true)}), "v": vector(1, 2)}
	const wantFields = 9*2 + 1 + 8 + 8 + 16 + 3 + 20 + 10 + 3 + 16
	if got := fieldsSize(others); got != wantFields {
		t.Errorf("fieldsSize = %d, want %d", got, wantFields)
	}
}

// E-WR-07
func TestNormalizeFields_FloorsTimestamps(t *testing.T) {
	original := fields{
		"t": instant(1, 123_456_789),
		"z": double(math.Copysign(0, -1)),
		"m": mapValue(fields{"a": array(instant(-1, 999))}),
		"k": array(integer(1)),
	}
	got := NormalizeFields(original)
	want := fields{"t": instant(1, 123_456_000), "z": double(math.Copysign(0, -1)), "m": mapValue(fields{"a": array(instant(-1, 0))}), "k": array(integer(1))}
	if !EqualFields(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got["k"] != original["k"] {
		t.Error("an unchanged value was copied")
	}
	if original["t"].GetTimestampValue().GetNanos() != 123_456_789 {
		t.Error("the argument changed")
	}
	if again := NormalizeFields(got); !EqualFields(again, got) {
		t.Errorf("normalized twice: %v", again)
	}
}
