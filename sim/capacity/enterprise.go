package capacity

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cloud.google.com/go/firestore/apiv1/firestorepb"
	"google.golang.org/protobuf/proto"

	"github.com/dronefleet/dronefleet/deploy"
)

// unitBytes is what a write unit of Enterprise edition covers.
const unitBytes = 1 << 10

// shelf is the documents as they are stored, to bill writes as Enterprise edition does: an update
// counts as the whole document, and each entry of an index that it adds or removes counts too.
//
// Source: https://firebase.google.com/docs/firestore/enterprise/pricing-examples
type shelf struct {
	documents map[string]map[string]*firestorepb.Value
	indexes   map[string][][]string // fields, by collection
}

func newShelf() *shelf {
	s := &shelf{documents: map[string]map[string]*firestorepb.Value{}, indexes: map[string][][]string{}}
	var file struct {
		Indexes []struct {
			CollectionGroup string
			Fields          []struct{ FieldPath string }
		}
	}
	if err := json.Unmarshal(deploy.FirestoreIndexes, &file); err != nil {
		panic(err) // a test of deploy reads it as well
	}
	for _, index := range file.Indexes {
		var fields []string
		for _, f := range index.Fields {
			fields = append(fields, f.FieldPath)
		}
		s.indexes[index.CollectionGroup] = append(s.indexes[index.CollectionGroup], fields)
	}
	for _, index := range deploy.EnterpriseIndexes() {
		if !slices.ContainsFunc(s.indexes[index[0]], func(fields []string) bool { return slices.Equal(fields, index[1:]) }) {
			s.indexes[index[0]] = append(s.indexes[index[0]], index[1:])
		}
	}
	return s
}

// Kinds of what is billed beside a document: the entries of the index of dueAt, and those of all others.
const (
	dueEntries   = ".dueAt"
	otherEntries = ".index"
)

// write applies a write, and returns its units by collection or kind of entries.
func (s *shelf) write(w *firestorepb.Write) map[string]float64 {
	if name := w.GetDelete(); name != "" {
		units := s.units(name)
		delete(s.documents, name)
		return units
	}
	name := w.GetUpdate().GetName()
	was := s.entries(name)
	s.documents[name] = written(s.documents[name], w)
	is := s.entries(name)
	units := s.size(name)
	for i := range is {
		if was[i] != is[i] { // one entry to delete and one to create
			s.count(units, name, i, was[i], is[i])
		}
	}
	return units
}

// units are those of a document with its entries, as its creation and its deletion count.
func (s *shelf) units(name string) map[string]float64 {
	units := s.size(name)
	for i, entry := range s.entries(name) {
		s.count(units, name, i, entry)
	}
	return units
}

// size is a document's units.
func (s *shelf) size(name string) map[string]float64 {
	return map[string]float64{collectionOf(name): float64((documentBytes(name, s.documents[name]) + unitBytes - 1) / unitBytes)}
}

// count adds entries of the i-th index of a document's collection.
func (s *shelf) count(units map[string]float64, name string, i int, entries ...string) {
	kind := collectionOf(name) + otherEntries
	if slices.Contains(s.indexes[collectionOf(name)][i], "dueAt") {
		kind = collectionOf(name) + dueEntries
	}
	for _, entry := range entries {
		if entry != "" {
			units[kind]++
		}
	}
}

// entries are the values of a document in each index of its collection; "" where it lacks a field.
func (s *shelf) entries(name string) []string {
	indexes := s.indexes[collectionOf(name)]
	entries := make([]string, len(indexes))
	for i, fields := range indexes {
		var entry strings.Builder
		for _, field := range fields {
			value, has := s.documents[name][field]
			if !has {
				entry.Reset()
				break
			}
			text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(value)
			entry.WriteByte(byte(len(text)))
			entry.Write(text)
		}
		entries[i] = entry.String()
	}
	return entries
}

// written is a document after a write. The product's updates name whole fields.
func written(before map[string]*firestorepb.Value, w *firestorepb.Write) map[string]*firestorepb.Value {
	fields := w.GetUpdate().GetFields()
	if w.GetUpdateMask() == nil {
		return fields
	}
	after := maps.Clone(before)
	if after == nil {
		after = map[string]*firestorepb.Value{}
	}
	for _, name := range w.GetUpdateMask().GetFieldPaths() {
		if value, has := fields[name]; has {
			after[name] = value
		} else {
			delete(after, name)
		}
	}
	for _, counted := range w.GetUpdateTransforms() {
		if counted.GetSetToServerValue() == 0 {
			after[counted.GetFieldPath()] = counted.GetIncrement() // its size is that of every number
		}
	}
	return after
}

// documentBytes is the size of a document that is billed.
//
// Source: https://cloud.google.com/firestore/docs/storage-size
func documentBytes(name string, fields map[string]*firestorepb.Value) int {
	const perDocument, perName = 32, 16
	_, path, _ := strings.Cut(name, "/documents/")
	return perDocument + perName + len(path) + 1 + mapBytes(fields)
}

func mapBytes(fields map[string]*firestorepb.Value) (size int) {
	for name, v := range fields {
		size += len(name) + 1 + valueBytes(v)
	}
	return size
}

func valueBytes(v *firestorepb.Value) (size int) {
	switch t := v.GetValueType().(type) {
	case *firestorepb.Value_NullValue, *firestorepb.Value_BooleanValue:
		return 1
	case *firestorepb.Value_GeoPointValue:
		return 16
	case *firestorepb.Value_StringValue:
		return len(t.StringValue) + 1
	case *firestorepb.Value_BytesValue:
		return len(t.BytesValue)
	case *firestorepb.Value_ArrayValue:
		for _, e := range t.ArrayValue.GetValues() {
			size += valueBytes(e)
		}
		return size
	case *firestorepb.Value_MapValue:
		return mapBytes(t.MapValue.GetFields())
	}
	return 8
}
