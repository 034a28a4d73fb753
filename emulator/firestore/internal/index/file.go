package index

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// The forms of firestore.indexes.json.
// Source: https://firebase.google.com/docs/reference/firestore/indexes

const (
	scopeCollection = "COLLECTION"
	scopeGroup      = "COLLECTION_GROUP"

	orderAscending  = "ASCENDING"
	orderDescending = "DESCENDING"
	arrayContains   = "CONTAINS"

	wildcardPath = "*"
)

type file struct {
	Indexes        []fileIndex    `json:"indexes,omitempty"`
	FieldOverrides []fileOverride `json:"fieldOverrides,omitempty"`
}

type fileIndex struct {
	CollectionGroup string      `json:"collectionGroup"`
	QueryScope      string      `json:"queryScope"`
	Fields          []fileField `json:"fields"`

	// Attributes of the Enterprise edition and of Datastore mode, which the tools
	// export. They have no effect.
	APIScope string `json:"apiScope,omitempty"`
	Density  string `json:"density,omitempty"`
	Multikey bool   `json:"multikey,omitempty"`
	Unique   bool   `json:"unique,omitempty"`
}

type fileField struct {
	FieldPath    string          `json:"fieldPath"`
	Order        string          `json:"order,omitempty"`
	ArrayConfig  string          `json:"arrayConfig,omitempty"`
	VectorConfig json.RawMessage `json:"vectorConfig,omitempty"`
}

type fileOverride struct {
	CollectionGroup string              `json:"collectionGroup"`
	FieldPath       string              `json:"fieldPath"`
	TTL             bool                `json:"ttl,omitempty"`
	Indexes         []fileOverrideIndex `json:"indexes"`
}

type fileOverrideIndex struct {
	QueryScope  string `json:"queryScope"`
	Order       string `json:"order,omitempty"`
	ArrayConfig string `json:"arrayConfig,omitempty"`
}

// Load reads a firestore.indexes.json. Errors name the invalid entry. An empty object
// declares nothing, which leaves the automatic indexes.
func Load(data []byte) (*Set, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var f file
	if err := decoder.Decode(&f); err != nil {
		return nil, fmt.Errorf("firestore indexes: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("firestore indexes: unexpected text after the JSON object")
	}
	s := &Set{overrides: map[overrideKey][]entry{}, ttl: map[string]value.FieldPath{}}
	for i, declared := range f.Indexes {
		e, err := declared.entry()
		if err != nil {
			return nil, fmt.Errorf("firestore indexes: indexes[%d]: %w", i, err)
		}
		if e.fields != nil {
			s.composite = append(s.composite, e)
		}
	}
	for i, override := range f.FieldOverrides {
		if err := s.addOverride(override); err != nil {
			return nil, fmt.Errorf("firestore indexes: fieldOverrides[%d]: %w", i, err)
		}
	}
	return s, nil
}

// entry converts a declared composite index. A vector index, which no query can use
// here, gives an entry without fields.
func (f fileIndex) entry() (entry, error) {
	e := entry{collection: f.CollectionGroup}
	if err := value.ValidateCollectionID(e.collection); err != nil {
		return entry{}, fmt.Errorf("collectionGroup %q is not a collection id", e.collection)
	}
	var err error
	if e.group, err = parseScope(f.QueryScope); err != nil {
		return entry{}, err
	}
	for i, declared := range f.Fields {
		if declared.VectorConfig != nil {
			return entry{}, nil
		}
		field, err := parseField(declared.FieldPath, declared.Order, declared.ArrayConfig)
		if err != nil {
			return entry{}, fmt.Errorf("fields[%d]: %w", i, err)
		}
		e.fields = append(e.fields, field)
	}
	switch {
	case len(e.fields) == 0:
		return entry{}, fmt.Errorf("fields is empty; list at least two")
	case len(e.fields) == 1 && !e.fields[0].path.IsName():
		return entry{}, fmt.Errorf("fields has only one entry; declare single-field indexes under fieldOverrides")
	}
	return e.completed(), nil
}

func (s *Set) addOverride(f fileOverride) error {
	if err := value.ValidateCollectionID(f.CollectionGroup); err != nil {
		return fmt.Errorf("collectionGroup %q is not a collection id", f.CollectionGroup)
	}
	path := value.FieldPath{wildcardPath}
	if f.FieldPath != wildcardPath {
		var err error
		if path, err = value.ParseWritePath(f.FieldPath); err != nil {
			return fmt.Errorf("fieldPath %q is not a field path", f.FieldPath)
		}
	}
	key := overrideKey{f.CollectionGroup, path.String()}
	if _, twice := s.overrides[key]; twice {
		return fmt.Errorf("fieldPath %s of collectionGroup %s is overridden twice; keep one entry", f.FieldPath, f.CollectionGroup)
	}
	entries := []entry{}
	for i, declared := range f.Indexes {
		group, err := parseScope(declared.QueryScope)
		if err != nil {
			return fmt.Errorf("indexes[%d]: %w", i, err)
		}
		field, err := parseField(f.FieldPath, declared.Order, declared.ArrayConfig)
		if err != nil {
			return fmt.Errorf("indexes[%d]: %w", i, err)
		}
		entries = append(entries, entry{collection: f.CollectionGroup, group: group, fields: []indexField{field}})
	}
	s.overrides[key] = entries
	if f.TTL {
		s.ttl[f.CollectionGroup] = path
	}
	return nil
}

func parseScope(s string) (group bool, err error) {
	switch s {
	case scopeCollection, "":
		return false, nil
	case scopeGroup:
		return true, nil
	default:
		return false, fmt.Errorf("unknown queryScope %q; use %s or %s", s, scopeCollection, scopeGroup)
	}
}

func parseField(path, order, array string) (indexField, error) {
	f := indexField{path: value.FieldPath{wildcardPath}}
	if path != wildcardPath {
		var err error
		if f.path, err = value.ParseFieldPath(path); err != nil {
			return indexField{}, fmt.Errorf("fieldPath %q is not a field path", path)
		}
	}
	switch {
	case order == orderAscending && array == "":
		f.mode = ascending
	case order == orderDescending && array == "":
		f.mode = descending
	case order == "" && array == arrayContains:
		f.mode = contains
	default:
		return indexField{}, fmt.Errorf("fieldPath %s: set either order (%s, %s) or arrayConfig (%s)", path, orderAscending, orderDescending, arrayContains)
	}
	return f, nil
}
