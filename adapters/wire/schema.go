package wire

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	pb "github.com/dronefleet/dronefleet/proto/dronefleet/v1"
)

// SnapshotSchema is the JSON Schema of what MarshalSnapshot writes, made from the
// message's descriptor.
func SnapshotSchema() map[string]any {
	return objectSchema((*pb.OptimizationSnapshot)(nil).ProtoReflect().Descriptor())
}

// objectSchema describes a message as marshalJSON writes it: only messages may be absent.
func objectSchema(message protoreflect.MessageDescriptor) map[string]any {
	if message.FullName() == "google.protobuf.Timestamp" {
		return map[string]any{"type": "string", "format": "date-time"}
	}
	properties, required := map[string]any{}, []string{}
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		described := valueSchema(field)
		if field.IsList() {
			described = map[string]any{"type": "array", "items": described}
		}
		properties[field.JSONName()] = described
		if !field.HasPresence() {
			required = append(required, field.JSONName())
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// valueSchema describes a field's value, or an entry of its list. It panics for a kind that
// snapshots do not have, which a test of any request would show.
func valueSchema(field protoreflect.FieldDescriptor) map[string]any {
	switch field.Kind() {
	case protoreflect.StringKind:
		return map[string]any{"type": "string"}
	case protoreflect.BoolKind:
		return map[string]any{"type": "boolean"}
	case protoreflect.Int32Kind:
		return map[string]any{"type": "integer"}
	case protoreflect.DoubleKind:
		return map[string]any{"oneOf": []map[string]any{
			{"type": "number"}, {"type": "string", "enum": []string{"NaN", "Infinity", "-Infinity"}},
		}}
	case protoreflect.EnumKind:
		names := []string{}
		for i := range field.Enum().Values().Len() {
			names = append(names, string(field.Enum().Values().Get(i).Name()))
		}
		return map[string]any{"type": "string", "enum": names}
	case protoreflect.MessageKind:
		return objectSchema(field.Message())
	}
	panic(fmt.Sprintf("no schema for %s of kind %s", field.FullName(), field.Kind()))
}
