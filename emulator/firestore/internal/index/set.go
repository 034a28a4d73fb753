package index

import (
	"slices"

	"github.com/dronefleet/dronefleet/emulator/firestore/internal/query"
	"github.com/dronefleet/dronefleet/emulator/firestore/internal/value"
)

// Set is the indexes of a database: the declared ones, and the automatic single-field
// ones that no override replaces. It is immutable.
type Set struct {
	composite []entry
	overrides map[overrideKey][]entry
	ttl       map[string]value.FieldPath
}

type overrideKey struct{ collection, path string }

// entry is an index of collections with an id. With group, one index spans all of
// them; otherwise each collection has its own.
type entry struct {
	collection string
	group      bool
	fields     []indexField
}

type indexField struct {
	path value.FieldPath
	mode mode
}

func (f indexField) equal(other indexField) bool {
	return f.mode == other.mode && f.path.Compare(other.path) == 0
}

// mode is how a field is indexed.
type mode int

const (
	ascending mode = iota
	descending
	contains
)

// completed appends the document's name, in the direction of the last field, unless
// it is listed.
func (e entry) completed() entry {
	last := e.fields[len(e.fields)-1]
	if last.path.IsName() {
		return e
	}
	name := indexField{path: value.FieldPath{value.NameField}}
	if last.mode == descending {
		name.mode = descending
	}
	e.fields = append(slices.Clone(e.fields), name)
	return e
}

// TTLField is the field with the expiry time of documents in collections with an id,
// if one is declared.
func (s *Set) TTLField(collection string) (value.FieldPath, bool) {
	path, ok := s.ttl[collection]
	return path, ok
}

// singleField lists the single-field indexes of a field: those of an override of the
// field, of a map that contains it or of the collection id, else the automatic ones.
func (s *Set) singleField(collection string, path value.FieldPath) []entry {
	for n := len(path); n > 0; n-- {
		if declared, ok := s.overrides[overrideKey{collection, path[:n].String()}]; ok {
			return retarget(declared, path)
		}
	}
	if declared, ok := s.overrides[overrideKey{collection, value.FieldPath{wildcardPath}.String()}]; ok {
		return retarget(declared, path)
	}
	automatic := make([]entry, 0, 3)
	for _, m := range []mode{ascending, descending, contains} {
		automatic = append(automatic, entry{collection: collection, fields: []indexField{{path, m}}}.completed())
	}
	return automatic
}

// retarget applies the indexes of an inherited override to path.
func retarget(declared []entry, path value.FieldPath) []entry {
	entries := make([]entry, len(declared))
	for i, e := range declared {
		e.fields = []indexField{{path, e.fields[0].mode}}
		entries[i] = e.completed()
	}
	return entries
}

// need is what a conjunction of a query requires of indexes.
type need struct {
	collection string
	group      bool
	pinned     []indexField // equality fields (ascending) and array-contains fields
	sort       []indexField // the rest of the full order
}

// Check returns nil if the indexes serve the query, else FAILED_PRECONDITION with the
// JSON to add to firestore.indexes.json. aggregated are the fields that the query sums
// or averages.
func (s *Set) Check(plan *query.Plan, aggregated []value.FieldPath) error {
	var missing []need
	for _, disjunct := range plan.Disjuncts() {
		n := newNeed(plan, disjunct, aggregated)
		if !s.serves(n) && !slices.ContainsFunc(missing, n.equal) {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return s.missingIndexError(missing)
}

func newNeed(plan *query.Plan, disjunct query.Disjunct, aggregated []value.FieldPath) need {
	scope := plan.Scope()
	n := need{collection: scope.CollectionID, group: scope.AllDescendants}
	for _, path := range disjunct.Equalities {
		n.pin(indexField{path, ascending})
	}
	for _, path := range disjunct.ArrayContains {
		n.pin(indexField{path, contains})
	}
	orders := plan.Orders()
	name := orders[len(orders)-1] // always the document's name
	for _, o := range orders[:len(orders)-1] {
		n.appendSort(o.Field, o.Descending)
	}
	for _, path := range slices.SortedFunc(slices.Values(aggregated), value.FieldPath.Compare) {
		n.appendSort(path, name.Descending)
	}
	n.appendSort(name.Field, name.Descending)
	return n
}

// pin adds an equality or array-contains field. The document's name needs no index.
func (n *need) pin(f indexField) {
	if !f.path.IsName() && !slices.ContainsFunc(n.pinned, f.equal) {
		n.pinned = append(n.pinned, f)
	}
}

func (n *need) appendSort(path value.FieldPath, isDescending bool) {
	mentions := func(f indexField) bool { return f.path.Compare(path) == 0 }
	if slices.ContainsFunc(n.pinned, mentions) || slices.ContainsFunc(n.sort, mentions) {
		return
	}
	f := indexField{path: path}
	if isDescending {
		f.mode = descending
	}
	n.sort = append(n.sort, f)
}

func (n need) equal(other need) bool {
	return n.collection == other.collection && n.group == other.group &&
		slices.EqualFunc(n.pinned, other.pinned, indexField.equal) &&
		slices.EqualFunc(n.sort, other.sort, indexField.equal)
}

// isByNameAlone reports whether the need is all documents in ascending name order,
// which requires no index.
func (n need) isByNameAlone() bool {
	return len(n.pinned) == 0 && len(n.sort) == 1 && n.sort[0].mode == ascending
}

// serves reports whether the usable indexes together cover all pinned fields.
func (s *Set) serves(n need) bool {
	if n.isByNameAlone() {
		return true
	}
	covered := make([]bool, len(n.pinned))
	usable := false
	for _, e := range s.candidates(n) {
		prefix, ok := e.prefixFor(n)
		if !ok {
			continue
		}
		usable = true
		for _, f := range prefix {
			covered[slices.IndexFunc(n.pinned, f.pins)] = true
		}
	}
	return usable && !slices.Contains(covered, false)
}

func (s *Set) candidates(n need) []entry {
	entries := slices.Clone(s.composite)
	for _, f := range n.sort {
		if !f.path.IsName() {
			entries = append(entries, s.singleField(n.collection, f.path)...)
		}
	}
	for _, f := range n.pinned {
		for _, e := range s.singleField(n.collection, f.path) {
			// Single-field indexes merge only in ascending name order.
			if e.fields[0].mode != descending {
				entries = append(entries, e)
			}
		}
	}
	return slices.DeleteFunc(entries, func(e entry) bool {
		return e.collection != n.collection || e.group != n.group
	})
}

// prefixFor returns the fields of the index before the sort order of the need. ok is
// false unless the index consists of pinned fields and exactly that sort order.
func (e entry) prefixFor(n need) (prefix []indexField, ok bool) {
	split := len(e.fields) - len(n.sort)
	if split < 0 || !slices.EqualFunc(e.fields[split:], n.sort, indexField.equal) {
		return nil, false
	}
	prefix = e.fields[:split]
	for _, f := range prefix {
		if !slices.ContainsFunc(n.pinned, f.pins) {
			return nil, false
		}
	}
	return prefix, true
}

// pins reports whether an index with field f serves the needed field: for equality in
// any direction, for array-contains with its elements.
func (f indexField) pins(needed indexField) bool {
	return (f.mode == contains) == (needed.mode == contains) && f.path.Compare(needed.path) == 0
}
