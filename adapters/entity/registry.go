package entity

import "github.com/dronefleet/dronefleet/domain"

// DroneType is a type of drones.
type DroneType struct {
	ID                   domain.DroneTypeID `json:"id"`
	PayloadCapacityKg    Number             `json:"payloadCapacityKg,omitempty"`
	ConsumptionPerKm     Number             `json:"consumptionPerKm,omitempty"`
	MaxFlightTimeMinutes int                `json:"maxFlightTimeMinutes,omitempty"`
	ConsumptionPerKmKg   Number             `json:"consumptionPerKmKg,omitempty"`
	ChargeRate           Number             `json:"chargeRate,omitempty"`
	BatteryCapacityMah   int                `json:"batteryCapacityMah,omitempty"`
	ColdBox              *ColdBox           `json:"coldBox,omitempty"`
	Due                  []DueItem          `json:"due,omitempty"`
	MinBatteryHealth     Number             `json:"minBatteryHealth,omitempty"`
}

// OfDroneType is the JSON form of a type of drones.
func OfDroneType(t domain.DroneType) DroneType {
	return DroneType{
		ID: t.ID, PayloadCapacityKg: Number(t.PayloadCapacityKg), ConsumptionPerKm: Number(t.ConsumptionPerKm), MaxFlightTimeMinutes: t.MaxFlightTimeMinutes,
		ConsumptionPerKmKg: Number(t.ConsumptionPerKmKg), ChargeRate: Number(t.ChargeRate), BatteryCapacityMah: t.BatteryCapacityMah,
		ColdBox: coldBox(t.ColdBox), Due: Each(t.Due, dueItem), MinBatteryHealth: Number(t.MinBatteryHealth),
	}
}

// ColdBox is the range of a cold box.
type ColdBox struct {
	MinCelsius Number `json:"minCelsius"`
	MaxCelsius Number `json:"maxCelsius"`
}

func coldBox(box *domain.ColdBox) *ColdBox {
	if box == nil {
		return nil
	}
	return &ColdBox{Number(box.MinCelsius), Number(box.MaxCelsius)}
}

// DueItem is maintenance that a drone needs.
type DueItem struct {
	Item             string `json:"item"`
	At               Time   `json:"at,omitempty"`
	FlightHours      Number `json:"flightHours,omitempty"`
	Landings         int    `json:"landings,omitempty"`
	EveryDays        int    `json:"everyDays,omitempty"`
	EveryFlightHours Number `json:"everyFlightHours,omitempty"`
	EveryLandings    int    `json:"everyLandings,omitempty"`
}

func dueItem(i domain.DueItem) DueItem {
	return DueItem{
		Item: i.Item, At: moment(i.At), FlightHours: Number(i.FlightHours), Landings: i.Landings,
		EveryDays: i.EveryDays, EveryFlightHours: Number(i.EveryFlightHours), EveryLandings: i.EveryLandings,
	}
}

// Maintenance is the latest maintenance of an item of a drone.
type Maintenance struct {
	Item string    `json:"item"`
	Done DueLimits `json:"done" doc:"When it was, by the clock and the drone's counters."`
	Met  DueLimits `json:"met" doc:"The limits that it met. A limit counts again only once it is above."`
}

// DueLimits are when maintenance is due, or was done.
type DueLimits struct {
	At          Time   `json:"at,omitempty"`
	FlightHours Number `json:"flightHours,omitempty"`
	Landings    int    `json:"landings,omitempty"`
}

func maintenance(m domain.Maintenance) Maintenance {
	return Maintenance{m.Item, dueLimits(m.Done), dueLimits(m.Met)}
}

func dueLimits(l domain.DueLimits) DueLimits {
	return DueLimits{moment(l.At), Number(l.FlightHours), l.Landings}
}
