package capacity

import (
	"maps"
	"testing"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
)

func text(s string) *firestorepb.Value {
	return &firestorepb.Value{ValueType: &firestorepb.Value_StringValue{StringValue: s}}
}

// F-CAP-01: Enterprise edition bills as in Google's examples: an update is the whole document, and an entry of
// an index that changes is one unit to delete and one to create.
func TestShelf_BillsAsGoogleDoes(t *testing.T) {
	s := &shelf{documents: map[string]map[string]*firestorepb.Value{}, indexes: map[string][][]string{
		"drones": {{"dueArea", "dueAt"}, {"status"}},
	}}
	const name = "projects/p/databases/(default)/documents/drones/D1"
	set := func(fields map[string]*firestorepb.Value, mask ...string) *firestorepb.Write {
		w := &firestorepb.Write{Operation: &firestorepb.Write_Update{Update: &firestorepb.Document{Name: name, Fields: fields}}}
		if mask != nil {
			w.UpdateMask = &firestorepb.DocumentMask{FieldPaths: mask}
		}
		return w
	}
	long := text(string(make([]byte, 9<<10)))
	for _, step := range []struct {
		what  string
		write *firestorepb.Write
		units map[string]float64
	}{
		{"a new document", set(map[string]*firestorepb.Value{"status": text("IDLE")}), map[string]float64{"drones": 1, "drones.index": 1}},
		{"nothing changed", set(map[string]*firestorepb.Value{"status": text("IDLE")}, "status"), map[string]float64{"drones": 1}},
		{"an indexed field", set(map[string]*firestorepb.Value{"status": text("MOVING")}, "status"), map[string]float64{"drones": 1, "drones.index": 2}},
		{"a field of two", set(map[string]*firestorepb.Value{"dueArea": text("A")}, "dueArea"), map[string]float64{"drones": 1}},
		{"both", set(map[string]*firestorepb.Value{"dueAt": text("12:00")}, "dueAt"), map[string]float64{"drones": 1, "drones.dueAt": 1}},
		{"a long field", set(map[string]*firestorepb.Value{"note": long}, "note"), map[string]float64{"drones": 10}},
		{"one field of a long document", set(map[string]*firestorepb.Value{"dueAt": text("13:00")}, "dueAt"), map[string]float64{"drones": 10, "drones.dueAt": 2}},
		{"a field less", set(nil, "note"), map[string]float64{"drones": 1}},
		{"a deletion", &firestorepb.Write{Operation: &firestorepb.Write_Delete{Delete: name}}, map[string]float64{"drones": 1, "drones.index": 1, "drones.dueAt": 1}},
	} {
		if units := s.write(step.write); !maps.Equal(units, step.units) {
			t.Errorf("%s: %v units, want %v", step.what, units, step.units)
		}
	}
}

// The example of https://cloud.google.com/firestore/docs/storage-size.
func TestDocumentBytes_IsGooglesExample(t *testing.T) {
	fields := map[string]*firestorepb.Value{
		"type": text("Personal"), "description": text("Learn Cloud Firestore"),
		"done":     {ValueType: &firestorepb.Value_BooleanValue{}},
		"priority": {ValueType: &firestorepb.Value_IntegerValue{IntegerValue: 1}},
	}
	if size := documentBytes("projects/p/databases/(default)/documents/users/jeff/tasks/my_task_id", fields); size != 147 {
		t.Errorf("%d bytes, want 147", size)
	}
}
