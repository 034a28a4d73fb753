package domain

import "time"

// PlaceKind names the kind of a place: where drones live, or where parcels are.
type PlaceKind string

const (
	PlaceDepot     PlaceKind = "depot"
	PlaceWarehouse PlaceKind = "warehouse"
)

// Place is a depot or a warehouse.
type Place interface{ Depot | Warehouse }

// PlaceAction is what a command did to a place.
type PlaceAction string

const (
	PlaceCreated   PlaceAction = "CREATED"
	PlaceChanged   PlaceAction = "CHANGED"
	PlaceDeleted   PlaceAction = "DELETED"
	PlaceUnchanged PlaceAction = "UNCHANGED"
)

// PlaceChange records that an operator created, changed or deleted a depot or a
// warehouse.
type PlaceChange struct {
	Kind   PlaceKind
	ID     string
	Action PlaceAction
	// Fields are the changed fields of the document, each with its value before and
	// after, as in "capacity: 10 -> 20".
	Fields    []string
	ChangedAt time.Time // zero if nothing was written
	ChangedBy string
	Why       string
}
