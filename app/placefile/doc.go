// Package placefile reads depots and warehouses from files that people write: YAML,
// GeoJSON or CSV. It must not import the store, the bus or a use case.
//
// An error is Problems: everything that is wrong with a file, each with its line or
// feature, the field and the fix. Nothing of such a file should be used.
package placefile
