package placefile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/input"
)

var (
	propertyFields = []string{
		"payloadCapacityKg", "consumptionPerKm", "maxFlightTimeMinutes", "consumptionPerKmKg", "chargeRate", "batteryCapacityMah",
		"coldBox", "due", "minBatteryHealth",
	}
	droneTypeFields = append([]string{"id"}, propertyFields...)
	droneFields     = append([]string{"id", "homeDepotId", "typeId", "shortName", "registrationMark", "serialNumber", "remoteId"}, propertyFields...)
	// keptFields are written by the State Manager only.
	keptFields = []string{"registeredAt", "registeredBy", "unregistered", "retiredAt", "flightSeconds", "landings", "batteryHealth", "countsStops", "maintained"}

	coldBoxFields = []string{"minCelsius", "maxCelsius"}
	dueFields     = []string{"item", "at", "flightHours", "landings", "everyDays", "everyFlightHours", "everyLandings"}
)

func (r *reader) drone(rec record) domain.DroneRegistration {
	since := len(r.problems)
	r.registered(rec, droneFields)
	d := domain.DroneRegistration{
		ID: domain.DroneID(r.string(rec, "id")), HomeDepotID: domain.DepotID(r.string(rec, "homeDepotId")), TypeID: domain.DroneTypeID(r.string(rec, "typeId")),
		ShortName: r.string(rec, "shortName"), RegistrationMark: r.string(rec, "registrationMark"),
		SerialNumber: r.string(rec, "serialNumber"), RemoteID: r.string(rec, "remoteId"), Own: r.properties(rec),
	}
	problems := d.Check()
	t, known := r.types[d.TypeID]
	if d.TypeID == "" {
		_, missing := d.Resolve(nil)
		problems = append(problems, missing...)
	} else if known {
		_, missing := d.Resolve(&t)
		problems = append(problems, missing...)
	}
	r.adopt(rec, since, problems)
	if where, twice := r.serials[d.SerialNumber]; twice && d.SerialNumber != "" {
		r.refuse(rec.fields["serialNumber"].where, "serialNumber", "%.64q is already used in %s; give each drone its own", d.SerialNumber, where)
	}
	if r.serials == nil {
		r.serials = map[string]string{}
	}
	r.serials[d.SerialNumber] = rec.where
	return d
}

func (r *reader) droneType(rec record) domain.DroneType {
	since := len(r.problems)
	r.registered(rec, droneTypeFields)
	t := domain.DroneType{ID: domain.DroneTypeID(r.string(rec, "id")), DroneProperties: r.properties(rec)}
	r.adopt(rec, since, t.Check())
	return t
}

// registered refuses fields that drones and types do not have, and those that only the State
// Manager writes. CSV has one column for each temperature of a cold box.
func (r *reader) registered(rec record, fields []string) {
	if r.text {
		fields = slices.Concat(fields, coldBoxFields)
	}
	others := record{rec.where, maps.Clone(rec.fields)}
	for _, name := range keptFields {
		if v, given := rec.fields[name]; given {
			r.refuse(v.where, name, "is written by the State Manager only; leave it out")
			delete(others.fields, name)
		}
	}
	r.known(others, fields)
}

// adopt reports the problems that package domain found, except those of fields that could not be
// read. since is the number of problems before this record.
func (r *reader) adopt(rec record, since int, problems []domain.FieldProblem) {
	read := r.problems[since:]
	for _, p := range problems {
		if slices.ContainsFunc(read, func(q Problem) bool { return q.Field == p.Field || strings.HasPrefix(q.Field, p.Field+".") }) {
			continue
		}
		where := rec.where
		name, _, _ := strings.Cut(p.Field, "[")
		if v, given := rec.fields[name]; given {
			where = v.where
		}
		r.refuse(where, p.Field, "%s", p.Text)
	}
}

func (r *reader) properties(rec record) domain.DroneProperties {
	p := domain.DroneProperties{
		PayloadCapacityKg: r.amount(rec, "payloadCapacityKg"), ConsumptionPerKm: r.amount(rec, "consumptionPerKm"),
		MaxFlightTimeMinutes: r.count(rec, "maxFlightTimeMinutes", 1), ConsumptionPerKmKg: r.amount(rec, "consumptionPerKmKg"),
		ChargeRate: r.amount(rec, "chargeRate"), BatteryCapacityMah: r.count(rec, "batteryCapacityMah", 1),
	}
	p.ColdBox, p.NoColdBox = r.coldBox(rec)
	p.Due, p.MinBatteryHealth = r.due(rec), r.amount(rec, "minBatteryHealth")
	return p
}

// amount reads a number above 0; 0 if it is left out. Package domain knows how large it may be.
func (r *reader) amount(rec record, name string) float64 {
	v, ok := rec.fields[name]
	if !ok {
		return 0
	}
	return r.above0(v.where, name, v.is)
}

func (r *reader) above0(where, field string, is any) float64 {
	n, ok := r.number(is)
	if !ok || !(n > 0) { // or NaN
		r.refuse(where, field, "is %v; give a number above 0%s", is, r.withPoint(is))
		return 0
	}
	return n
}

// noColdBox is the coldBox of a drone that has none although its type has one.
const noColdBox = "none"

// coldBox reads {minCelsius, maxCelsius}, or in CSV these two columns. without says that it reads
// noColdBox.
func (r *reader) coldBox(rec record) (box *domain.ColdBox, without bool) {
	const field = "coldBox"
	v, ok := rec.fields[field]
	where := v.where
	limits, isMap := v.is.(map[string]any)
	if r.text {
		where, limits = rec.where, map[string]any{}
		for _, name := range coldBoxFields {
			if column, given := rec.fields[name]; given {
				limits[name] = column.is
			}
		}
		isMap = !ok
		ok = ok || len(limits) > 0
	}
	if !ok {
		return nil, false
	}
	if v.is == noColdBox && (!r.text || len(limits) == 0) {
		return nil, true
	}
	if !isMap {
		fix := "give minCelsius and maxCelsius, as in {minCelsius: 2, maxCelsius: 8}, or none"
		if r.text {
			fix = "give the columns minCelsius and maxCelsius, or none here"
		}
		r.refuse(where, field, "is %v; %s", v.is, fix)
		return nil, false
	}
	r.only(where, field, limits, coldBoxFields)
	box, bad := &domain.ColdBox{}, false
	for _, limit := range []struct {
		name string
		to   *float64
	}{{"minCelsius", &box.MinCelsius}, {"maxCelsius", &box.MaxCelsius}} {
		is, given := limits[limit.name]
		n, isNumber := r.number(is)
		switch {
		case !given || is == nil:
			r.refuse(where, field, "has no %s; give both limits", limit.name)
		case !isNumber:
			r.refuse(where, field, "has %s %v; give degrees Celsius%s", limit.name, is, r.withPoint(is))
		}
		*limit.to, bad = n, bad || !isNumber
	}
	if bad {
		return nil, false
	}
	return box, false
}

// only refuses the unknown fields of a map.
func (r *reader) only(where, field string, fields map[string]any, known []string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			r.refuse(where, field, "has the field %.64q; give only %s", name, oneOf("and", known))
		}
	}
}

// due reads a list of maps. In CSV, semicolons separate the items, each with its limits as
// name=value, as in "propellers everyFlightHours=100; check at=2027-01-31 everyDays=365".
func (r *reader) due(rec record) (items []domain.DueItem) {
	const field = "due"
	v, ok := rec.fields[field]
	if !ok {
		return nil
	}
	list, isList := v.is.([]any)
	if text, is := v.is.(string); is && r.text {
		list, isList = dueCells(text), true
	}
	if !isList {
		r.refuse(v.where, field, "is %v; give a list such as [{item: propellers, everyFlightHours: 100}]", v.is)
		return nil
	}
	for i, entry := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		limits, isMap := entry.(map[string]any)
		if !isMap {
			r.refuse(v.where, at, "is %v; give an item such as {item: propellers, everyFlightHours: 100}", entry)
			items = append(items, domain.DueItem{Item: at, EveryDays: 1}) // the others keep their numbers
			continue
		}
		r.only(v.where, at, limits, dueFields)
		items = append(items, r.dueItem(record{v.where, recordAt(v.where, limits).fields}, at+"."))
	}
	return items
}

// dueCells are the items of a cell, as YAML would have them.
func dueCells(text string) (list []any) {
	for part := range strings.SplitSeq(text, ";") {
		limits, item := map[string]any{}, []string{}
		for _, word := range strings.Fields(part) {
			if name, is, limit := strings.Cut(word, "="); limit {
				limits[name] = is
			} else {
				item = append(item, word)
			}
		}
		limits["item"] = strings.Join(item, " ")
		list = append(list, limits)
	}
	return list
}

func (r *reader) dueItem(rec record, field string) domain.DueItem {
	named := record{rec.where, map[string]value{}} // problems name the field with its item
	for name, v := range rec.fields {
		if v.is != nil {
			named.fields[field+name] = v
		}
	}
	item := domain.DueItem{
		Item: r.string(named, field+"item"), EveryDays: r.count(named, field+"everyDays", 1),
		EveryFlightHours: r.amount(named, field+"everyFlightHours"), EveryLandings: r.count(named, field+"everyLandings", 1),
	}
	item.At, item.FlightHours, item.Landings = r.time(named, field+"at"), r.amount(named, field+"flightHours"), r.count(named, field+"landings", 1)
	return item
}

// time reads a time, or a day that begins in UTC; zero if it is left out.
func (r *reader) time(rec record, name string) time.Time {
	v, ok := rec.fields[name]
	if !ok {
		return time.Time{}
	}
	at, isTime := v.is.(time.Time) // YAML reads both
	if text, isText := v.is.(string); isText {
		parsed, err := input.Time(text)
		if err != nil {
			parsed, err = time.Parse(time.DateOnly, text)
		}
		at, isTime = parsed, err == nil
	}
	if !isTime || at.Year() < 1 || at.Year() > 9999 {
		r.refuse(v.where, name, "is %v; give a day such as 2027-01-31 or a time such as 2027-01-31T08:00:00Z", v.is)
		return time.Time{}
	}
	return at.UTC().Truncate(time.Microsecond) // as documents keep it
}
