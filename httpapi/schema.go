package httpapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/domain"
)

// schema is a JSON Schema (2020-12), as OpenAPI 3.1 uses them.
type schema = map[string]any

// content is a media type and its schema.
type content struct {
	mediaType string
	schema    schema
}

// schemas makes schemas of Go types by reflection: the fields that encoding/json writes,
// with their tags doc, example, min and max. A field without omitempty or omitzero is required.
type schemas struct {
	named map[string]schema // by the name of their type; what is not a struct has none
	types map[string]reflect.Type
}

func newSchemas() *schemas {
	return &schemas{named: map[string]schema{}, types: map[string]reflect.Type{}}
}

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// special are types whose JSON form does not follow from their kind.
var special = map[reflect.Type]schema{
	typeOf[time.Time]():            {"type": "string", "format": "date-time"},
	typeOf[entity.Number]():        {"oneOf": []schema{{"type": "number"}, {"type": "string", "enum": []string{"NaN", "Infinity", "-Infinity"}}}},
	typeOf[[]byte]():               {"type": "string", "contentEncoding": "base64"},
	typeOf[domain.DroneStatus]():   stored(domain.DroneStatuses),
	typeOf[domain.OrderStatus]():   stored(domain.OrderStatuses),
	typeOf[domain.MissionStatus](): stored(domain.MissionStatuses),
	typeOf[domain.Outcome]():       enum(domain.Outcomes),
	typeOf[domain.CycleOutcome]():  enum(domain.CycleOutcomes),
	typeOf[domain.WaypointType]():  enum(domain.WaypointTypes),
	typeOf[operator.Subject]():     enum(operator.Subjects),
	typeOf[domain.Unconfirmed]():   enum(domain.Unconfirmeds),
}

// described is a type that writes its own JSON form, or reads it.
type described interface{ schema(*schemas) schema }

// closed is the schema of a struct that is refused with other fields than its own.
func (s *schemas) closed(t reflect.Type) schema {
	ref := s.ref(t)
	s.named[componentName(t)]["additionalProperties"] = false
	return ref
}

// stored lists the values that a field of a document can have, and "": another tool's document may
// lack the field.
func stored[T ~string](values []T) schema { return enum(append(slices.Clip(values), "")) }

func enum[T ~string](values []T) schema { return schema{"type": "string", "enum": values} }

// page is the schema of one page of a collection.
func (s *schemas) page(collection string, item reflect.Type) schema {
	return schema{"type": "object", "required": []string{collection, "serverTime"}, "properties": schema{
		"serverTime": s.of(typeOf[time.Time]()),
		collection:   schema{"type": "array", "items": s.of(item)},
		"nextCursor": schema{"type": "string", "description": "Give it as cursor to get the next page; absent on the last one."},
		"malformed":  schema{"type": "array", "items": schema{"type": "string"}, "description": "Documents that cannot be decoded and are left out."},
	}}
}

// of is the schema of a type. It panics if it cannot describe the type, which any request to the
// API would show.
func (s *schemas) of(t reflect.Type) schema {
	if known, ok := special[t]; ok {
		return known
	}
	if own, is := reflect.Zero(t).Interface().(described); is {
		return own.schema(s)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.String:
		return schema{"type": "string"}
	case reflect.Bool:
		return schema{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return schema{"type": "integer"}
	case reflect.Float64:
		return schema{"type": "number"}
	case reflect.Slice:
		return schema{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return schema{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Interface:
		return schema{}
	case reflect.Struct:
		return s.ref(t)
	}
	panic(fmt.Sprintf("no schema for %s", t))
}

// ref is a reference to the schema of a struct.
func (s *schemas) ref(t reflect.Type) schema {
	name := componentName(t)
	if other := s.types[name]; other != nil && other != t {
		panic(fmt.Sprintf("%s and %s have the same name", other, t))
	}
	if s.types[name] == nil {
		s.types[name] = t // before its fields, which may refer to it
		s.named[name] = s.object(t)
	}
	return schema{"$ref": "#/components/schemas/" + name}
}

func componentName(t reflect.Type) string { return strings.ToUpper(t.Name()[:1]) + t.Name()[1:] }

// object is the schema of a struct.
func (s *schemas) object(t reflect.Type) schema {
	if t.Implements(typeOf[json.Marshaler]()) || t.Implements(typeOf[encoding.TextMarshaler]()) {
		panic(fmt.Sprintf("%s writes itself; describe it in special", t))
	}
	properties, required := schema{}, []string{}
	s.fields(t, properties, &required)
	return schema{"type": "object", "properties": properties, "required": required}
}

// fields describes a struct's fields, with those of embedded structs among them.
func (s *schemas) fields(t reflect.Type, properties schema, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			s.fields(f.Type, properties, required)
			continue
		case !f.IsExported() || name == "-":
			continue
		}
		property := schema{}
		of := s.of(f.Type)
		if f.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omit") {
			of = schema{"oneOf": []schema{of, {"type": "null"}}}
		}
		for key, value := range of {
			property[key] = value
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			property["description"] = doc
		}
		for tag, key := range map[string]string{"min": "minimum", "max": "maximum"} {
			if bound, ok := f.Tag.Lookup(tag); ok {
				property[key] = exampleOf(f.Type, bound)
			}
		}
		if example, ok := f.Tag.Lookup("example"); ok {
			property["examples"] = []any{exampleOf(f.Type, example)}
		}
		properties[name] = property
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

// exampleOf is the value of a tag: text for strings, else JSON.
func exampleOf(t reflect.Type, text string) (value any) {
	if t.Kind() == reflect.String || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.String {
		return text
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		panic(fmt.Sprintf("example %q is not JSON: %s", text, err))
	}
	return value
}
