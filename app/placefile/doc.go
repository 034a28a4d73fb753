// Package placefile reads what operators keep from files that people write: depots and
// warehouses from YAML, GeoJSON or CSV, drones and their types from YAML or CSV. It must
// not import the store, the bus or a use case.
//
// An error is Problems: everything that is wrong with a file, each with its line or
// feature, the field and the fix. Nothing of such a file should be used.
package placefile
