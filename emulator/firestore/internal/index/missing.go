package index

import (
	"encoding/json"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// missingIndexError is FAILED_PRECONDITION with the part of a firestore.indexes.json
// that would serve the query.
func (s *Set) missingIndexError(missing []need) error {
	var fragment file
	for _, n := range missing {
		if n.collection == "" {
			return status.Error(codes.FailedPrecondition, "The query requires an index, but there is none for a query over all collections; name a collection, or use ascending "+value.NameField+" order.")
		}
		fields := n.declaration()
		if len(fields) == 1 && !fields[0].path.IsName() {
			s.addOverrideTo(&fragment, n, fields[0])
		} else {
			fragment.Indexes = append(fragment.Indexes, compositeFor(n, fields))
		}
	}
	text, err := json.Marshal(fragment)
	if err != nil {
		return status.Errorf(codes.Internal, "embedded firestore: print missing index: %v", err)
	}
	return status.Errorf(codes.FailedPrecondition, "The query requires an index. Add to firestore.indexes.json: %s", text)
}

// declaration is the fields of an index that serves the need, without the document's
// name if that is implied.
func (n need) declaration() []indexField {
	pinned := slices.Clone(n.pinned)
	slices.SortFunc(pinned, func(a, b indexField) int { return a.path.Compare(b.path) })
	fields := slices.Concat(pinned, n.sort)
	if len(fields) < 2 {
		return fields
	}
	implied := entry{fields: fields[:len(fields)-1]}.completed()
	if slices.EqualFunc(implied.fields, fields, indexField.equal) {
		return fields[:len(fields)-1]
	}
	return fields
}

func compositeFor(n need, fields []indexField) fileIndex {
	index := fileIndex{CollectionGroup: n.collection, QueryScope: scopeText(n.group)}
	for _, f := range fields {
		declared := fileField{FieldPath: f.path.String()}
		declared.Order, declared.ArrayConfig = f.mode.text()
		index.Fields = append(index.Fields, declared)
	}
	return index
}

// addOverrideTo adds a single-field index. An override replaces all indexes of its
// field, so it lists the present ones too.
func (s *Set) addOverrideTo(fragment *file, n need, lacking indexField) {
	path := lacking.path.String()
	i := slices.IndexFunc(fragment.FieldOverrides, func(o fileOverride) bool {
		return o.CollectionGroup == n.collection && o.FieldPath == path
	})
	if i < 0 {
		i = len(fragment.FieldOverrides)
		fragment.FieldOverrides = append(fragment.FieldOverrides, s.currentOverride(n.collection, lacking.path))
	}
	override := &fragment.FieldOverrides[i]
	override.Indexes = append(override.Indexes, overrideIndex(n.group, lacking.mode))
}

// currentOverride declares the present single-field indexes of a field.
func (s *Set) currentOverride(collection string, path value.FieldPath) fileOverride {
	override := fileOverride{CollectionGroup: collection, FieldPath: path.String()}
	ttlPath, hasTTL := s.TTLField(collection)
	override.TTL = hasTTL && ttlPath.Compare(path) == 0
	for _, e := range s.singleField(collection, path) {
		override.Indexes = append(override.Indexes, overrideIndex(e.group, e.fields[0].mode))
	}
	return override
}

func overrideIndex(group bool, m mode) fileOverrideIndex {
	index := fileOverrideIndex{QueryScope: scopeText(group)}
	index.Order, index.ArrayConfig = m.text()
	return index
}

func scopeText(group bool) string {
	if group {
		return scopeGroup
	}
	return scopeCollection
}

func (m mode) text() (order, arrayConfig string) {
	switch m {
	case ascending:
		return orderAscending, ""
	case descending:
		return orderDescending, ""
	default:
		return "", arrayContains
	}
}
