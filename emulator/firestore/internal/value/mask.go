package value

import pb "cloud.google.com/go/firestore/apiv1/firestorepb"

// ParseMask parses the field paths of the mask of a write. A nil mask gives nil paths,
// an empty mask an empty slice that is not nil.
func ParseMask(mask *pb.DocumentMask) ([]FieldPath, error) {
	return parseMask(mask, ParseWritePath)
}

// ParseReadMask is ParseMask for reads, where NameField is allowed and selects no
// field.
func ParseReadMask(mask *pb.DocumentMask) ([]FieldPath, error) {
	return parseMask(mask, ParseFieldPath)
}

func parseMask(mask *pb.DocumentMask, parse func(string) (FieldPath, error)) ([]FieldPath, error) {
	if mask == nil {
		return nil, nil
	}
	paths := make([]FieldPath, 0, len(mask.GetFieldPaths()))
	for _, s := range mask.GetFieldPaths() {
		path, err := parse(s)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// ApplyMask returns the fields of a document after an update of the stored fields,
// which are nil if the document does not exist. With nil paths the update replaces
// everything. Otherwise, paths that are in update are set, paths that are not are
// deleted, and all other fields keep their stored values. No argument is changed.
func ApplyMask(stored, update map[string]*pb.Value, paths []FieldPath) map[string]*pb.Value {
	if paths == nil {
		return update
	}
	result := stored
	for _, path := range paths {
		if v := Get(update, path); v != nil {
			result = Set(result, path, v)
		} else {
			result = Delete(result, path)
		}
	}
	return result
}

// Project returns only the fields at paths, for a read with a mask or a projection.
// Nil paths return fields itself. Paths without a value are left out.
func Project(fields map[string]*pb.Value, paths []FieldPath) map[string]*pb.Value {
	if paths == nil {
		return fields
	}
	projected := map[string]*pb.Value{}
	for _, path := range paths {
		if v := Get(fields, path); v != nil {
			projected = Set(projected, path, v)
		}
	}
	return projected
}
