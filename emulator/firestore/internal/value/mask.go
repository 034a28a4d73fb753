package value

import pb "cloud.google.com/go/firestore/apiv1/firestorepb"

// ParseMask parses a document mask's field paths for a write. A nil mask gives
// nil paths; a mask that is present but empty gives an empty, non-nil slice.
func ParseMask(mask *pb.DocumentMask) ([]FieldPath, error) {
	return parseMask(mask, ParseWritePath)
}

// ParseReadMask is ParseMask for reads, where NameField may stand for "no
// field, just the name".
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

// ApplyMask returns what a document's fields become when update is written
// over stored (nil when the document does not exist). With nil paths update
// replaces everything. Otherwise each path present in update is set, each path
// absent from it is deleted, and fields outside the paths keep their stored
// values. Neither argument is changed.
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

// Project returns the fields at paths alone, as a read with a mask or a
// projection shows them; nil paths return fields itself. Paths with nothing
// there are left out.
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
