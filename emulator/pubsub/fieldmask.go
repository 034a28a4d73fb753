package pubsubemu

import (
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// applyMask copies the masked fields from update to config, which have the
// same type. Only fields whose first path element is mutable may be named.
func applyMask(config, update proto.Message, mask *fieldmaskpb.FieldMask, mutable map[string]bool) error {
	if len(mask.GetPaths()) == 0 {
		return invalid("update_mask: empty; name the fields to change")
	}
	for _, path := range mask.Paths {
		elements := strings.Split(path, ".")
		if !known(config.ProtoReflect().Descriptor(), elements) {
			return invalid("update_mask: %q is not a field of %s", path, config.ProtoReflect().Descriptor().Name())
		}
		if !mutable[elements[0]] {
			return invalid("update_mask: %q cannot be changed; delete and create the resource instead", path)
		}
		copyField(config.ProtoReflect(), update.ProtoReflect(), elements)
	}
	return nil
}

func known(in protoreflect.MessageDescriptor, path []string) bool {
	field := in.Fields().ByName(protoreflect.Name(path[0]))
	if field == nil {
		return false
	}
	if len(path) == 1 {
		return true
	}
	return field.Message() != nil && !field.IsMap() && !field.IsList() && known(field.Message(), path[1:])
}

func copyField(to, from protoreflect.Message, path []string) {
	field := to.Descriptor().Fields().ByName(protoreflect.Name(path[0]))
	switch {
	case len(path) > 1:
		copyField(to.Mutable(field).Message(), from.Get(field).Message(), path[1:])
	case from.Has(field):
		to.Set(field, from.Get(field))
	default:
		to.Clear(field)
	}
}
