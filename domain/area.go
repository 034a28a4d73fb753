package domain

import "slices"

// Area is a planning area: depots that one cycle plans for together. They are ordered by id; there
// is at least one.
type Area struct{ Depots []Depot }

// ID names the area. It is the first of its depots' ids, and the lock of that depot admits the
// area's cycles.
func (a Area) ID() DepotID { return a.Depots[0].ID }

// DepotIDs are the ids of the area's depots.
func (a Area) DepotIDs() []DepotID {
	ids := make([]DepotID, len(a.Depots))
	for i, d := range a.Depots {
		ids[i] = d.ID
	}
	return ids
}

// Has reports whether a depot belongs to the area.
func (a Area) Has(id DepotID) bool {
	return slices.ContainsFunc(a.Depots, func(d Depot) bool { return d.ID == id })
}
