package domain

import (
	"fmt"
	"math"
	"time"
)

// PlaceKind is the kind of a record that operators keep: a place, an entry of the registry of
// drones, or a webhook.
type PlaceKind string

const (
	PlaceDepot     PlaceKind = "depot"
	PlaceWarehouse PlaceKind = "warehouse"
	PlaceDrone     PlaceKind = "drone"
	PlaceDroneType PlaceKind = "droneType"
	PlaceWebhook   PlaceKind = "webhook"
)

// MaintenanceRecord records the maintenance of a drone's item by an operator.
type MaintenanceRecord struct {
	DroneID DroneID
	Item    string
	// FlightSeconds, Landings and BatteryHealth are the drone's then.
	FlightSeconds int64
	Landings      int
	BatteryHealth *float64
	At            time.Time
	By            string
	Why           string
}

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

// PlaceChange records that an operator created, changed or deleted a depot, a warehouse, a
// drone, a type of drones or a webhook.
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
	Warning   string // for whoever makes the change; not on record
	Drones    int    // of a type that change with it; not on record
}

// SwapWarning says that a place is far from all others, but would be near one of them and nearer to
// most with latitude and longitude exchanged. Otherwise it is empty.
func SwapWarning(place Position, others []Position) string {
	const far = 100_000 // metres; areas are smaller
	swapped := Position{Lat: place.Lon, Lon: place.Lat}
	if math.Abs(swapped.Lat) > 90 || len(others) == 0 {
		return ""
	}
	now, then := math.Inf(1), math.Inf(1)
	var sumNow, sumThen float64
	for _, other := range others {
		isNow, isThen := place.DistanceMetres(other), swapped.DistanceMetres(other)
		if now, then = min(now, isNow), min(then, isThen); now < far {
			return ""
		}
		sumNow, sumThen = sumNow+isNow, sumThen+isThen
	}
	if then > now/10 || sumThen > sumNow/2 { // the sum tells the swapped place from the others
		return ""
	}
	return fmt.Sprintf("position is %.0f km from every other place, and would be %.0f km from one with lat and lon exchanged; are they swapped?", now/1000, then/1000)
}
