package entity

import "github.com/dronefleet/dronefleet/domain"

// Depot is a depot.
type Depot struct {
	ID            domain.DepotID `json:"id"`
	Name          string         `json:"name,omitempty"`
	Position      Position       `json:"position"`
	Capacity      int            `json:"capacity,omitempty"`
	ChargingSlots int            `json:"chargingSlots,omitempty"`
	Group         string         `json:"group,omitempty"`
}

// OfDepot is the JSON form of a depot.
func OfDepot(d domain.Depot) Depot {
	return Depot{d.ID, d.Name, position(d.Position), d.Capacity, d.ChargingSlots, d.Group}
}

// Warehouse is a warehouse.
type Warehouse struct {
	ID                     domain.WarehouseID `json:"id"`
	Name                   string             `json:"name,omitempty"`
	Position               Position           `json:"position"`
	AuthorizedProductTypes []string           `json:"authorizedProductTypes"`
	IsColdStorageCapable   bool               `json:"isColdStorageCapable"`
}

// OfWarehouse is the JSON form of a warehouse.
func OfWarehouse(w domain.Warehouse) Warehouse {
	return Warehouse{w.ID, w.Name, position(w.Position), OrEmpty(w.ProductTypes), w.ColdStorage}
}
