// Package planview writes a solver.Plan for people: as text for a terminal and as
// GeoJSON for a map. It must not import the store, the bus or a use case. It
// fails only if its writer does.
package planview
