package domain

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
)

// DroneRegistration is what an operator states about a drone. Reports never change it.
type DroneRegistration struct {
	ID               DroneID
	HomeDepotID      DepotID
	TypeID           DroneTypeID // empty for none
	ShortName        string
	RegistrationMark string
	SerialNumber     string // as ANSI/CTA-2063-A has it
	RemoteID         string
	// Own are the properties of this drone. They come before those of its type.
	Own DroneProperties
}

// DroneType holds what drones of one make have in common.
type DroneType struct {
	ID DroneTypeID
	DroneProperties
}

// DroneProperties are what a drone can do and what it needs. A zero value means not given.
type DroneProperties struct {
	PayloadCapacityKg    float64
	ConsumptionPerKm     float64 // percent of a full charge per kilometre
	MaxFlightTimeMinutes int
	ConsumptionPerKmKg   float64 // what each kilogram aboard adds to it
	ChargeRate           float64 // in a charging slot, percent of a full charge a minute
	BatteryCapacityMah   int
	ColdBox              *ColdBox
	NoColdBox            bool // it has no cold box, whatever its type has
	Due                  []DueItem
	MinBatteryHealth     float64 // percent; a drone below it takes no mission
}

// ColdBox is the range of temperatures that a drone's cold box keeps.
type ColdBox struct{ MinCelsius, MaxCelsius float64 }

// DueItem is maintenance that is due at a date, a count of flight hours or a count of landings,
// whichever comes first, and then at intervals. A limit of zero means not given.
type DueItem struct {
	Item string
	DueLimits
	EveryDays        int
	EveryFlightHours float64
	EveryLandings    int
}

// DueLimits are the limits at which maintenance is due. Zero means not given.
type DueLimits struct {
	At          time.Time
	FlightHours float64
	Landings    int
}

// String lists the limits for people; "no more" if there are none.
func (l DueLimits) String() string {
	var parts []string
	if !l.At.IsZero() {
		parts = append(parts, l.At.UTC().Format(time.RFC3339))
	}
	if l.FlightHours > 0 {
		parts = append(parts, fmt.Sprintf("%.1f flight hours", l.FlightHours))
	}
	if l.Landings > 0 {
		parts = append(parts, fmt.Sprintf("%d landings", l.Landings))
	}
	if len(parts) == 0 {
		return "no more"
	}
	return strings.Join(parts, " or ")
}

// Maintenance is the latest maintenance of one item of a drone.
type Maintenance struct {
	Item string
	// Done are the time and the drone's counters then.
	Done DueLimits
	// Met are the limits that the item had then. A given limit counts again only once it is above
	// the one that was met, so applying a file again does not bring it back.
	Met DueLimits
}

// What a registration may hold at most.
const (
	MaxPayloadKg     = 1000
	MaxDueItems      = 16
	maxWholeProperty = 1_000_000
	maxRemoteIDBytes = 64
	minColdCelsius   = -100
	maxColdCelsius   = 60
)

// FieldProblem is one thing that is wrong with a field of a registration or type.
type FieldProblem struct{ Field, Text string }

// problems gathers what is wrong.
type problems []FieldProblem

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, FieldProblem{field, fmt.Sprintf(format, args...)})
}

// Check names everything that is wrong with what the registration itself says. Resolve
// checks what it needs from its type.
func (r DroneRegistration) Check() []FieldProblem {
	var p problems
	p.id("id", string(r.ID), true)
	p.id("homeDepotId", string(r.HomeDepotID), true)
	p.id("typeId", string(r.TypeID), false)
	p.id("shortName", r.ShortName, false)
	p.id("registrationMark", r.RegistrationMark, false)
	if err := CheckSerialNumber(r.SerialNumber); r.SerialNumber != "" && err != nil {
		p.add("serialNumber", "%s", err)
	}
	if text := r.RemoteID; len(text) > maxRemoteIDBytes {
		p.add("remoteId", "has %d bytes; give at most %d", len(text), maxRemoteIDBytes)
	} else if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
		p.add("remoteId", "is %q; give printable ASCII characters", text)
	}
	return append(p, r.Own.check()...)
}

// Check names everything that is wrong with a type. A type may leave out what its drones give
// themselves.
func (t DroneType) Check() []FieldProblem {
	var p problems
	p.id("id", string(t.ID), true)
	return append(p, t.check()...)
}

// Resolve returns the drone's own properties, completed by those of its type t, which is nil if it
// has none. It also names what is still missing.
func (r DroneRegistration) Resolve(t *DroneType) (DroneProperties, []FieldProblem) {
	all, missing := r.Own, "is missing; give it"
	if t != nil {
		all, missing = r.Own.over(t.DroneProperties), fmt.Sprintf("is missing from the drone and from type %s; give it in one of them", t.ID)
	}
	var p problems
	for _, needed := range []struct {
		field string
		given bool
	}{
		{"payloadCapacityKg", all.PayloadCapacityKg > 0},
		{"consumptionPerKm", all.ConsumptionPerKm > 0},
		{"maxFlightTimeMinutes", all.MaxFlightTimeMinutes > 0},
	} {
		if !needed.given {
			p.add(needed.field, "%s", missing)
		}
	}
	return all, p
}

// property is one of DroneProperties: take copies it.
type property struct {
	name  string
	given func(DroneProperties) bool
	take  func(to *DroneProperties, from DroneProperties)
}

func propertyOf[V any](name string, at func(*DroneProperties) *V, given func(V) bool) property {
	return property{name,
		func(p DroneProperties) bool { return given(*at(&p)) },
		func(to *DroneProperties, from DroneProperties) { *at(to) = *at(&from) }}
}

func nonzero[V comparable](v V) bool { return v != *new(V) }

const coldBoxProperty = "coldBox"

// properties are all of DroneProperties, by the names of their fields in documents and files.
var properties = []property{
	propertyOf("payloadCapacityKg", func(p *DroneProperties) *float64 { return &p.PayloadCapacityKg }, nonzero),
	propertyOf("consumptionPerKm", func(p *DroneProperties) *float64 { return &p.ConsumptionPerKm }, nonzero),
	propertyOf("maxFlightTimeMinutes", func(p *DroneProperties) *int { return &p.MaxFlightTimeMinutes }, nonzero),
	propertyOf("consumptionPerKmKg", func(p *DroneProperties) *float64 { return &p.ConsumptionPerKmKg }, nonzero),
	propertyOf("chargeRate", func(p *DroneProperties) *float64 { return &p.ChargeRate }, nonzero),
	propertyOf("batteryCapacityMah", func(p *DroneProperties) *int { return &p.BatteryCapacityMah }, nonzero),
	{coldBoxProperty,
		func(p DroneProperties) bool { return p.ColdBox != nil || p.NoColdBox },
		func(to *DroneProperties, from DroneProperties) {
			to.ColdBox, to.NoColdBox = from.ColdBox, from.NoColdBox
		}},
	propertyOf("due", func(p *DroneProperties) *[]DueItem { return &p.Due }, func(due []DueItem) bool { return len(due) > 0 }),
	propertyOf("minBatteryHealth", func(p *DroneProperties) *float64 { return &p.MinBatteryHealth }, nonzero),
}

// over is p, completed by the properties of below. A list of due items is one property: the drone's
// own replaces that of its type.
func (p DroneProperties) over(below DroneProperties) DroneProperties {
	for _, each := range properties {
		if each.given(p) {
			each.take(&below, p)
		}
	}
	return below
}

// Given names the properties that are given. A drone's document keeps the names of its own,
// so that a changed type does not overwrite them.
func (p DroneProperties) Given() (names []string) {
	for _, each := range properties {
		if each.given(p) {
			names = append(names, each.name)
		}
	}
	return names
}

// Only is p with the named properties alone.
func (p DroneProperties) Only(names []string) (only DroneProperties) {
	for _, each := range properties {
		if slices.Contains(names, each.name) {
			each.take(&only, p)
		}
	}
	return only
}

func (p DroneProperties) check() []FieldProblem {
	var bad problems
	bad.amount("payloadCapacityKg", p.PayloadCapacityKg, MaxPayloadKg)
	bad.amount("consumptionPerKm", p.ConsumptionPerKm, 0)
	bad.count("maxFlightTimeMinutes", p.MaxFlightTimeMinutes)
	bad.amount("consumptionPerKmKg", p.ConsumptionPerKmKg, 0)
	bad.amount("chargeRate", p.ChargeRate, 0)
	bad.count("batteryCapacityMah", p.BatteryCapacityMah)
	bad.coldBox(p.ColdBox)
	bad.due(p.Due)
	bad.amount("minBatteryHealth", p.MinBatteryHealth, 100)
	return bad
}

func (p *problems) id(field, id string, needed bool) {
	if id == "" {
		if needed {
			p.add(field, "is missing; give 1 to %d bytes", MaxIDBytes)
		}
	} else if err := CheckID(id); err != nil {
		p.add(field, "%.64q %s", id, err)
	}
}

// amount refuses a value that is not a number above 0. A most of 0 means no upper limit.
func (p *problems) amount(field string, n, most float64) {
	switch {
	case n == 0: // not given
	case most > 0 && !(n > 0 && n <= most): // or NaN
		p.add(field, "is %v; give a number above 0 and at most %v", n, most)
	case !(n > 0) || math.IsInf(n, 0):
		p.add(field, "is %v; give a number above 0", n)
	}
}

func (p *problems) count(field string, n int) {
	if n < 0 || n > maxWholeProperty {
		p.add(field, "is %d; give a whole number, 1 to %d", n, maxWholeProperty)
	}
}

func (p *problems) coldBox(box *ColdBox) {
	if box == nil {
		return
	}
	within := func(n float64) bool { return n >= minColdCelsius && n <= maxColdCelsius } // false for NaN
	if !within(box.MinCelsius) || !within(box.MaxCelsius) {
		p.add("coldBox", "is %v to %v °C; give temperatures from %d to %d °C", box.MinCelsius, box.MaxCelsius, minColdCelsius, maxColdCelsius)
	} else if box.MinCelsius >= box.MaxCelsius {
		p.add("coldBox", "has minCelsius %v and maxCelsius %v; give a minimum below the maximum", box.MinCelsius, box.MaxCelsius)
	}
}

func (p *problems) due(items []DueItem) {
	if len(items) > MaxDueItems {
		p.add("due", "has %d items; give at most %d", len(items), MaxDueItems)
	}
	seen := map[string]bool{}
	for i, item := range items {
		field := func(name string) string { return fmt.Sprintf("due[%d].%s", i, name) }
		p.id(field("item"), item.Item, true)
		if seen[item.Item] && item.Item != "" {
			p.add(field("item"), "%.64q is given twice; give each item once", item.Item)
		}
		seen[item.Item] = true
		p.amount(field("flightHours"), item.FlightHours, 0)
		p.count(field("landings"), item.Landings)
		p.count(field("everyDays"), item.EveryDays)
		p.amount(field("everyFlightHours"), item.EveryFlightHours, 0)
		p.count(field("everyLandings"), item.EveryLandings)
		if item == (DueItem{Item: item.Item}) {
			p.add(fmt.Sprintf("due[%d]", i), "has no limit; give at least one of at, flightHours, landings, everyDays, everyFlightHours, everyLandings")
		}
	}
}

// Next returns the limits at which the item is due next. last is its latest maintenance; nil if
// there was none. Intervals count from there or, before the first maintenance, from 0 and from the
// registration, unless a first limit is given.
func (i DueItem) Next(registeredAt time.Time, last *Maintenance) DueLimits {
	if last == nil {
		last = &Maintenance{Done: DueLimits{At: registeredAt}}
		if !i.At.IsZero() {
			i.EveryDays = 0
		}
		if i.FlightHours > 0 {
			i.EveryFlightHours = 0
		}
		if i.Landings > 0 {
			i.EveryLandings = 0
		}
	}
	var next DueLimits
	if i.At.After(last.Met.At) {
		next.At = i.At
	}
	if again := last.Done.At.AddDate(0, 0, i.EveryDays); i.EveryDays > 0 && (next.At.IsZero() || again.Before(next.At)) {
		next.At = again
	}
	next.FlightHours = earlier(i.FlightHours, last.Met.FlightHours, last.Done.FlightHours, i.EveryFlightHours)
	next.Landings = earlier(i.Landings, last.Met.Landings, last.Done.Landings, i.EveryLandings)
	return next
}

// earlier is the lower one of the given limit, unless it was met, and the next limit by the
// interval. It is 0 if there is neither.
func earlier[N int | float64](limit, met, done, every N) N {
	if limit <= met {
		limit = 0
	}
	if again := done + every; every > 0 && (limit == 0 || again < limit) {
		return again
	}
	return limit
}

// serial matches a maker's code, the length of the rest, and the rest. O and I are left out because
// they look like digits.
var serial = regexp.MustCompile(`^[0-9A-HJ-NP-Z]{4}[1-9A-F][0-9A-HJ-NP-Z]{1,15}$`)

// CheckSerialNumber reports why a text is not a serial number by ANSI/CTA-2063-A.
func CheckSerialNumber(text string) error {
	const form = "give 4 letters or digits of the maker, a length as one of 1 to 9 or A to F, and that many letters or digits, as in 1596A1234567890; capitals, without O and I"
	if !serial.MatchString(text) {
		return fmt.Errorf("is %.64q; %s", text, form)
	}
	if length, rest := strings.IndexByte("0123456789ABCDEF", text[4]), len(text)-5; length != rest {
		return fmt.Errorf("is %q; its fifth character announces %d more, but %d follow; %s", text, length, rest, form)
	}
	return nil
}
