// Package index decides whether the real service has an index for a query: an
// automatic single-field index, or one declared in firestore.indexes.json. The
// embedded server needs no indexes. The check makes a query that would fail in
// production fail in tests.
//
// The rules are those of Native mode, Standard edition. An index serves a conjunction
// if its first fields are equality or array-contains fields of the query and the
// others are exactly the rest of the sort order. Several indexes serve it together if
// they cover all equality fields. Indexes are not scanned in reverse.
//
// The package must not import the server, a transport or a store, only packages query
// and value.
//
// Load fails on a file that the real service would refuse, and names the entry. Check
// fails with FAILED_PRECONDITION and the JSON to add to the file.
package index
