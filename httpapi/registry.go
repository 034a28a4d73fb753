package httpapi

import (
	"context"
	"log/slog"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/app/operator"
	"github.com/dronefleet/dronefleet/app/placefile"
	"github.com/dronefleet/dronefleet/domain"
)

// registryEndpoints register drones and keep their types.
func (a *API) registryEndpoints() []endpoint {
	return []endpoint{
		{method: post, path: "/api/v1/drones/apply", role: oper, summary: "Register drones and change registrations.", answer: operates(a, applyDrones)},
		{method: post, path: "/api/v1/drones/{id}/delete", role: oper, summary: "Retire a drone; its document stays.", answer: deletes(a, operator.Commands.RetireDrone)},
		{method: post, path: "/api/v1/drones/{id}/maintain", role: oper, summary: "Record that an item of a drone was maintained.", answer: operates(a, maintainDrone)},
		{method: get, path: "/api/v1/drone-types", role: viewer, summary: "List types of drones.", parameters: listed("droneTypes"), answer: list("droneTypes", a.droneTypes, entity.OfDroneType)},
		{method: post, path: "/api/v1/drone-types/apply", role: oper, summary: "Create and change types of drones; their drones change with them.", answer: operates(a, applyDroneTypes)},
		{method: post, path: "/api/v1/drone-types/{id}/delete", role: oper, summary: "Delete a type that no drone in service has.", answer: deletes(a, operator.Commands.DeleteDroneType)},
	}
}

func (a *API) droneTypes(ctx context.Context, r *request) (firestoretx.Listing[domain.DroneType], error) {
	return a.store.ListDroneTypes(ctx, r.page())
}

// dronesRequest is the body of a command that registers drones.
type dronesRequest struct {
	deleteRequest
	Drones []droneFields `json:"drones" doc:"Fields that are left out are those of the drone's type, or empty." example:"[{\"id\": \"D7\", \"homeDepotId\": \"DEPOT-1\", \"payloadCapacityKg\": 5, \"consumptionPerKm\": 1.5, \"maxFlightTimeMinutes\": 45, \"coldBox\": {\"minCelsius\": 2, \"maxCelsius\": 8}, \"due\": [{\"item\": \"propellers\", \"everyFlightHours\": 100}]}]"`
	drones []domain.DroneRegistration
}

func (d *dronesRequest) check(bad *problems) {
	d.changeRequest.check(bad)
	d.drones = checkPlaces(bad, "drones", d.Drones, placefile.DronesOf)
}

// droneTypesRequest is the body of a command that creates and changes types of drones.
type droneTypesRequest struct {
	deleteRequest
	DroneTypes []droneTypeFields `json:"droneTypes" doc:"Fields that are left out are empty." example:"[{\"id\": \"M30\", \"payloadCapacityKg\": 5, \"consumptionPerKm\": 1.5, \"maxFlightTimeMinutes\": 45}]"`
	types      []domain.DroneType
}

func (d *droneTypesRequest) check(bad *problems) {
	d.changeRequest.check(bad)
	d.types = checkPlaces(bad, "droneTypes", d.DroneTypes, placefile.DroneTypesOf)
}

// droneFields is a drone as package placefile reads it; see depotFields.
type droneFields map[string]any

func (droneFields) schema(s *schemas) schema { return s.closed(typeOf[droneForm]()) }

type droneForm struct {
	ID               string `json:"id"`
	HomeDepotID      string `json:"homeDepotId"`
	TypeID           string `json:"typeId,omitempty"`
	ShortName        string `json:"shortName,omitempty"`
	RegistrationMark string `json:"registrationMark,omitempty"`
	SerialNumber     string `json:"serialNumber,omitempty" doc:"By ANSI/CTA-2063-A."`
	RemoteID         string `json:"remoteId,omitempty"`
	propertyForm
}

type droneTypeFields map[string]any

func (droneTypeFields) schema(s *schemas) schema { return s.closed(typeOf[droneTypeForm]()) }

type droneTypeForm struct {
	ID string `json:"id"`
	propertyForm
}

// propertyForm is what a drone has of its own or takes from its type.
type propertyForm struct {
	PayloadCapacityKg    float64      `json:"payloadCapacityKg,omitempty" doc:"The drone or its type has it." max:"1000"`
	ConsumptionPerKm     float64      `json:"consumptionPerKm,omitempty" doc:"Percent of a full charge; the drone or its type has it."`
	MaxFlightTimeMinutes int          `json:"maxFlightTimeMinutes,omitempty" doc:"The drone or its type has it." min:"1" max:"1000000"`
	ConsumptionPerKmKg   float64      `json:"consumptionPerKmKg,omitempty" doc:"What each kilogram aboard adds to it."`
	ChargeRate           float64      `json:"chargeRate,omitempty" doc:"Percent of a full charge a minute."`
	BatteryCapacityMah   int          `json:"batteryCapacityMah,omitempty" min:"1" max:"1000000"`
	ColdBox              *coldBoxForm `json:"coldBox,omitempty" doc:"none for a drone that has none although its type has one."`
	Due                  []dueForm    `json:"due,omitempty" doc:"At most 16 items, each with at least one limit."`
	MinBatteryHealth     float64      `json:"minBatteryHealth,omitempty" doc:"Percent; a drone below it takes no mission." max:"100"`
}

type coldBoxForm struct{}

func (*coldBoxForm) schema(s *schemas) schema {
	return schema{"oneOf": []schema{s.closed(typeOf[temperaturesForm]()), {"type": "string", "enum": []string{"none"}}}}
}

type temperaturesForm struct {
	MinCelsius float64 `json:"minCelsius" min:"-100" max:"60"`
	MaxCelsius float64 `json:"maxCelsius" min:"-100" max:"60"`
}

type dueForm struct {
	Item             string  `json:"item"`
	At               string  `json:"at,omitempty" doc:"A day or a time."`
	FlightHours      float64 `json:"flightHours,omitempty"`
	Landings         int     `json:"landings,omitempty" min:"1" max:"1000000"`
	EveryDays        int     `json:"everyDays,omitempty" min:"1" max:"1000000"`
	EveryFlightHours float64 `json:"everyFlightHours,omitempty"`
	EveryLandings    int     `json:"everyLandings,omitempty" min:"1" max:"1000000"`
}

// applyDrones answers POST /api/v1/drones/apply with what changed.
func applyDrones(ctx context.Context, c *command, req *dronesRequest) (operator.PlaceChanges, error) {
	done, err := c.ApplyDrones(ctx, req.drones, req.Reason, req.DryRun)
	return applied(c, req.deleteRequest, done, err)
}

// applyDroneTypes answers POST /api/v1/drone-types/apply with what changed.
func applyDroneTypes(ctx context.Context, c *command, req *droneTypesRequest) (operator.PlaceChanges, error) {
	done, err := c.ApplyDroneTypes(ctx, req.types, req.Reason, req.DryRun)
	return applied(c, req.deleteRequest, done, err)
}

// maintainRequest is the body of a command that records maintenance.
type maintainRequest struct {
	deleteRequest
	Item string `json:"item" doc:"What was maintained, one of the drone's due items." example:"propellers"`
}

func (m *maintainRequest) check(bad *problems) {
	m.changeRequest.check(bad)
	bad.addError("item", domain.CheckID(m.Item))
}

// maintainDrone answers POST /api/v1/drones/{id}/maintain with what changed.
func maintainDrone(ctx context.Context, c *command, req *maintainRequest) (entity.PlaceChange, error) {
	done, err := c.MaintainDrone(ctx, domain.DroneID(c.id), req.Item, req.Reason, req.DryRun)
	c.note(slog.String("id", c.id), slog.String("item", req.Item), slog.String("reason", req.Reason), slog.Bool("dryRun", req.DryRun))
	return entity.OfPlaceChange(done), err
}
