package operator

import (
	"context"
	"fmt"
	"strings"

	"github.com/dronefleet/dronefleet/adapters/entity"
	"github.com/dronefleet/dronefleet/adapters/firestoretx"
	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/policy"
)

// ApplyDrones registers drones and changes registrations, as ApplyDepots does with depots.
//
// Cost: see firestoretx.Store.ApplyDrone for each.
func (c Commands) ApplyDrones(ctx context.Context, drones []domain.DroneRegistration, reason string, dryRun bool) ([]domain.PlaceChange, error) {
	return applyAll(ctx, c, drones, reason, dryRun, c.Store.ApplyDrone, func(d domain.DroneRegistration) string { return string(d.ID) })
}

// ApplyDroneTypes creates and changes types of drones, as ApplyDepots does with depots. The
// drones of a type change with it.
//
// Cost: see firestoretx.Store.ApplyDroneType for each.
func (c Commands) ApplyDroneTypes(ctx context.Context, types []domain.DroneType, reason string, dryRun bool) ([]domain.PlaceChange, error) {
	return applyAll(ctx, c, types, reason, dryRun, c.Store.ApplyDroneType, func(t domain.DroneType) string { return string(t.ID) })
}

// RetireDrone takes a drone out of service and records it; its document stays. It is rejected while
// the drone has a mission or an open order is pinned to it. A retired drone stays as it is.
//
// Cost: see firestoretx.Store.RetireDrone.
func (c Commands) RetireDrone(ctx context.Context, id domain.DroneID, reason string, dryRun bool) (domain.PlaceChange, error) {
	return deletePlace(ctx, c, domain.PlaceDrone, id, reason, dryRun, c.Store.RetireDrone)
}

// DeleteDroneType deletes a type that no drone in service has, and records it.
//
// Cost: see firestoretx.Store.DeleteDroneType.
func (c Commands) DeleteDroneType(ctx context.Context, id domain.DroneTypeID, reason string, dryRun bool) (domain.PlaceChange, error) {
	return deletePlace(ctx, c, domain.PlaceDroneType, id, reason, dryRun, c.Store.DeleteDroneType)
}

// MaintainDrone records that an item of a drone was maintained now. The item's next limits count
// from now.
//
// Cost: see firestoretx.Store.MaintainDrone.
func (c Commands) MaintainDrone(ctx context.Context, id domain.DroneID, item, reason string, dryRun bool) (domain.PlaceChange, error) {
	if err := ofField("item", domain.CheckID(item)); err != nil {
		return domain.PlaceChange{}, err
	}
	return deletePlace(ctx, c, domain.PlaceDrone, id, reason, dryRun, func(ctx context.Context, id domain.DroneID, change firestoretx.Change) (domain.PlaceChange, error) {
		return c.Store.MaintainDrone(ctx, id, item, change)
	})
}

// ListDroneTypes prints one page of types of drones.
func (d *Desk) ListDroneTypes(ctx context.Context, page firestoretx.Page) error {
	l, err := d.Store.ListDroneTypes(ctx, page)
	if err != nil {
		return err
	}
	header := []string{"TYPE", "PAYLOAD", "RANGE", "FLIGHT TIME", "COLD BOX", "DUE"}
	return printPage(d, "droneTypes", noPlaces("drone-types"), l, entity.OfDroneType, header, func(x domain.DroneType) []string {
		return []string{string(x.ID), kilograms(x.PayloadCapacityKg), kilometres(x.ConsumptionPerKm), minutes(x.MaxFlightTimeMinutes), coldBoxText(x.ColdBox), itemsText(x.Due)}
	})
}

// ShowDrone prints what the registry says of a drone, and what it has flown.
func (d *Desk) ShowDrone(ctx context.Context, id domain.DroneID) error {
	drone, err := d.Store.Drone(ctx, id)
	if err != nil {
		return err
	}
	if d.JSON {
		return d.printJSON(entity.OfDrone(drone))
	}
	lines := [][2]string{
		{"drone", string(drone.ID) + ", " + standing(drone)}, {"status", string(drone.Status)}, {"home depot", string(drone.HomeDepotID)},
		{"type", string(drone.TypeID)}, {"short name", drone.ShortName}, {"registration mark", drone.RegistrationMark},
		{"serial number", serialText(drone)}, {"remote id", drone.RemoteID},
		{"payload", kilograms(drone.PayloadCapacityKg)}, {"flight time", minutes(drone.MaxFlightTimeMinutes)},
		{"consumption", consumptionText(drone)}, {"cold box", coldBoxText(drone.ColdBox)},
		{"its own, not its type's", ownText(drone)}, {"flown", fmt.Sprintf("%.1f h, %d landings", float64(drone.FlightSeconds)/3600, drone.Landings)},
		{"battery health", healthText(drone)}, {"due now", policy.Due(drone, d.Now())},
	}
	for _, item := range drone.Due {
		lines = append(lines, [2]string{"next " + item.Item, drone.Limits(item).String()})
	}
	for _, line := range lines {
		if line[1] != "" {
			d.say("%-24s %s", line[0]+":", line[1])
		}
	}
	return nil
}

// standing says whether a drone is registered.
func standing(d domain.Drone) string {
	switch {
	case d.Retired():
		return "retired " + stamp(d.RetiredAt)
	case d.Unregistered:
		return "not registered; register it with \"drones apply\""
	case d.Legacy():
		return "of an earlier version; register it with \"drones apply\""
	}
	return "registered " + stamp(d.RegisteredAt) + " by " + d.RegisteredBy
}

func serialText(d domain.Drone) string {
	if d.OtherIdentity() {
		return d.SerialNumber + ", but it reports " + d.ReportedSerial
	}
	return d.SerialNumber
}

func consumptionText(d domain.Drone) string {
	if d.ConsumptionPerKm <= 0 {
		return ""
	}
	text := fmt.Sprintf("%g %% a km", d.ConsumptionPerKm)
	if d.ConsumptionPerKmKg > 0 {
		text += fmt.Sprintf(", and %g %% for each kg aboard", d.ConsumptionPerKmKg)
	}
	return text
}

func ownText(d domain.Drone) string {
	if d.TypeID == "" {
		return ""
	}
	return strings.Join(d.OwnProperties, ", ")
}

func healthText(d domain.Drone) string {
	if d.BatteryHealth == nil {
		return ""
	}
	return fmt.Sprintf("%.0f %%", *d.BatteryHealth)
}

func kilograms(kg float64) string {
	if kg <= 0 {
		return ""
	}
	return fmt.Sprintf("%g kg", kg)
}

// kilometres is how far a full charge lasts.
func kilometres(consumption float64) string {
	if consumption <= 0 {
		return ""
	}
	return fmt.Sprintf("%.0f km", 100/consumption)
}

func minutes(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%d min", n)
}

func coldBoxText(box *domain.ColdBox) string {
	if box == nil {
		return ""
	}
	return fmt.Sprintf("%g to %g °C", box.MinCelsius, box.MaxCelsius)
}

func itemsText(items []domain.DueItem) string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = item.Item
	}
	return strings.Join(names, ", ")
}
