package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
)

// Reasons against changes of the registry of drones.
const (
	ReasonDroneTypeUnknown       Reason = "DRONE_TYPE_UNKNOWN"
	ReasonRegistrationIncomplete Reason = "REGISTRATION_INCOMPLETE" // neither the drone nor its type says what is needed
	ReasonSerialNumberTaken      Reason = "SERIAL_NUMBER_TAKEN"
	ReasonItemUnknown            Reason = "ITEM_UNKNOWN" // the drone has no such due item
)

// Register creates a drone, or changes what its reports do not carry. t is the type that the
// registration names; nil if it names none. A known drone keeps its state. An unregistered or
// retired one is planned from now on. A new one is UNKNOWN until its first fresh IDLE. The error,
// if any, is a Rejection.
func Register(existing *domain.Drone, reg domain.DroneRegistration, t *domain.DroneType, by, why string, now time.Time) (Change, error) {
	properties, missing := reg.Resolve(t)
	if len(missing) > 0 {
		texts := make([]string, len(missing))
		for i, m := range missing {
			texts[i] = m.Field + " " + m.Text
		}
		return Change{}, reject(ReasonRegistrationIncomplete, string(reg.ID), "%s", strings.Join(texts, "; "))
	}
	before := domain.Drone{}
	d := domain.Drone{ID: reg.ID, Status: domain.DroneUnknown}
	if existing != nil {
		before, d = *existing, *existing
	}
	if d.RegisteredAt.IsZero() || d.Retired() {
		d.RegisteredAt, d.RegisteredBy = now, by
	}
	d.Unregistered, d.RetiredAt = false, time.Time{}
	d.HomeDepotID, d.TypeID, d.ShortName, d.RegistrationMark = reg.HomeDepotID, reg.TypeID, reg.ShortName, reg.RegistrationMark
	d.SerialNumber, d.RemoteID = reg.SerialNumber, reg.RemoteID
	d.SetProperties(properties)
	d.OwnProperties = reg.Own.Given()
	r := &recorder{now: now, cause: domain.CauseOperator}
	r.drone(&before, &d, d.CurrentMissionID, why)
	return r.change, nil
}

// Retire takes a drone out of service. users are the entities that need it, as in "order O1"; a
// bound drone's mission needs it too. A retired drone stays as it is.
func Retire(drone *domain.Drone, id domain.DroneID, users []string, why string, now time.Time) (Change, error) {
	if drone != nil && drone.Retired() {
		return Change{}, nil
	}
	return commandDrone(drone, id, why, now, func(d *domain.Drone) error {
		if d.Bound() {
			users = append([]string{"mission " + string(d.CurrentMissionID)}, users...)
		}
		if err := CheckUnused(domain.PlaceDrone, string(id), users); err != nil {
			return err
		}
		d.Unregistered, d.RetiredAt = false, now
		return nil
	})
}

// Maintain records the maintenance of a drone's item. The item's next limits count from then.
func Maintain(drone *domain.Drone, id domain.DroneID, item, why string, now time.Time) (Change, error) {
	return commandDrone(drone, id, why, now, func(d *domain.Drone) error {
		var names []string
		for _, due := range d.Due {
			names = append(names, due.Item)
		}
		i := slices.Index(names, item)
		if i < 0 {
			return reject(ReasonItemUnknown, string(id), "the drone has no due item %q; its items are: %s", item, strings.Join(names, ", "))
		}
		given, met := d.Due[i].DueLimits, d.Limits(d.Due[i])
		done := domain.Maintenance{
			Item: item,
			Done: domain.DueLimits{At: now, FlightHours: flightHours(*d), Landings: d.Landings},
			Met:  domain.DueLimits{At: later(given.At, met.At), FlightHours: max(given.FlightHours, met.FlightHours), Landings: max(given.Landings, met.Landings)},
		}
		rest := slices.DeleteFunc(slices.Clone(d.Maintained), func(m domain.Maintenance) bool {
			return m.Item == item || !slices.Contains(names, m.Item)
		})
		d.Maintained = append(rest, done)
		return nil
	})
}

func flightHours(d domain.Drone) float64 { return float64(d.FlightSeconds) / 3600 }

// Due says which item of a drone is due, or that its battery is too weak; "" if neither.
func Due(d domain.Drone, now time.Time) string {
	for _, item := range d.Due {
		if why := dueBy(d, item, d.Limits(item), now); why != "" {
			return why
		}
	}
	if health := d.BatteryHealth; health != nil && !(*health >= d.MinBatteryHealth) { // or NaN
		return fmt.Sprintf("battery health is %g %%, below %g %%", *health, d.MinBatteryHealth)
	}
	return ""
}

// DueSoon says which item of a drone that is not due yet is due within 24 hours, or within
// 10 % of its flight hours or landings; "" if none is.
func DueSoon(d domain.Drone, now time.Time) string {
	for _, item := range d.Due {
		limits := d.Limits(item)
		early := limits
		if !early.At.IsZero() {
			early.At = early.At.Add(-24 * time.Hour)
		}
		early.FlightHours -= share(item.EveryFlightHours, limits.FlightHours)
		early.Landings -= int(share(float64(item.EveryLandings), float64(limits.Landings)))
		if dueBy(d, item, limits, now) == "" && dueBy(d, item, early, now) != "" {
			return fmt.Sprintf("item %s is due at %s", item.Item, limits)
		}
	}
	return ""
}

// share is a tenth of the interval, or of the limit of an item that does not repeat.
func share(every, limit float64) float64 {
	if every > 0 {
		return every / 10
	}
	return limit / 10
}

func dueBy(d domain.Drone, item domain.DueItem, limits domain.DueLimits, now time.Time) string {
	due := !limits.At.IsZero() && !now.Before(limits.At) ||
		limits.FlightHours > 0 && flightHours(d) >= limits.FlightHours ||
		limits.Landings > 0 && d.Landings >= limits.Landings
	if !due {
		return ""
	}
	return fmt.Sprintf("item %s was due at %s; the drone has %.1f flight hours and %d landings", item.Item, limits, flightHours(d), d.Landings)
}

// SetupDrone writes a drone of a test or simulated fleet with every property as given. It registers
// nothing: the drone is as earlier versions left it.
func SetupDrone(existing *domain.Drone, d domain.Drone, now time.Time) Change {
	r := &recorder{now: now, cause: domain.CauseSetup}
	if existing == nil {
		d.Status = domain.DroneUnknown
		r.drone(&domain.Drone{}, &d, "", "introduced")
		return r.change
	}
	known := *existing
	known.Unregistered, known.HomeDepotID, known.ShortName = false, d.HomeDepotID, d.ShortName
	known.SetProperties(d.Properties())
	r.drone(existing, &known, "", "")
	return r.change
}
