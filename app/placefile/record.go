package placefile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/input"
)

// Problem is one thing that is wrong with a file.
type Problem struct {
	File  string // as the caller names it
	Where string // "line 4", "feature 2" or "depots 2"
	Field string // of the record; empty if the whole is meant
	Text  string // what is wrong, and the fix
}

func (p Problem) String() string {
	var parts []string
	for _, part := range []string{p.File, p.Where} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(append(parts, strings.TrimSpace(p.Field+" "+p.Text)), ": ")
}

// Problems is everything that is wrong with a file.
type Problems []Problem

// Error implements error, with one problem on each line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// value is one field of a record, and where it stands.
type value struct {
	where string
	is    any // as JSON would decode it; CSV holds strings
}

// record is one depot, warehouse, drone or type of drones as a file holds it.
type record struct {
	where  string
	fields map[string]value
}

// reader turns records into what they describe and gathers what is wrong.
type reader struct {
	file     string
	problems Problems
	text     bool                                    // values are strings, as in CSV
	types    map[domain.DroneTypeID]domain.DroneType // that the file has beside its drones
	serials  map[string]string                       // where each serial number stands
}

func (r *reader) refuse(where, field, format string, args ...any) {
	r.problems = append(r.problems, Problem{r.file, where, field, fmt.Sprintf(format, args...)})
}

// maxNameBytes bounds a place's name and each product type.
const maxNameBytes = 200

// maxCount bounds capacities and slots.
const maxCount = 1_000_000

var (
	depotFields     = []string{"id", "name", "position", "capacity", "chargingSlots", "group"}
	warehouseFields = []string{"id", "name", "position", "authorizedProductTypes", "isColdStorageCapable"}
)

func (r *reader) depot(rec record) domain.Depot {
	r.known(rec, depotFields)
	return domain.Depot{
		ID: domain.DepotID(r.id(rec)), Name: r.labelled(rec, "name"), Position: r.position(rec),
		Capacity: r.count(rec, "capacity", 0), ChargingSlots: r.count(rec, "chargingSlots", 1), Group: r.labelled(rec, "group"),
	}
}

func (r *reader) warehouse(rec record) domain.Warehouse {
	r.known(rec, warehouseFields)
	return domain.Warehouse{
		ID: domain.WarehouseID(r.id(rec)), Name: r.labelled(rec, "name"), Position: r.position(rec),
		ProductTypes: r.products(rec), ColdStorage: r.flag(rec, "isColdStorageCapable"),
	}
}

// known refuses fields that a record does not have.
func (r *reader) known(rec record, fields []string) {
	for _, name := range slices.Sorted(maps.Keys(rec.fields)) {
		if slices.Contains(fields, name) {
			continue
		}
		meant := ""
		if near := input.Nearest(name, fields); near != "" {
			meant = fmt.Sprintf("; did you mean %s?", near)
		}
		r.refuse(rec.fields[name].where, fmt.Sprintf("%.64q", name), "is not a field; the fields are %s%s", strings.Join(fields, ", "), meant)
	}
}

func (r *reader) id(rec record) string {
	v, ok := rec.fields["id"]
	if !ok {
		r.refuse(rec.where, "id", "is missing; give 1 to %d bytes", domain.MaxIDBytes)
		return ""
	}
	id, ok := v.is.(string)
	if !ok {
		r.refuse(v.where, "id", "is %v; give a text, in quotes if it looks like a number", v.is)
		return ""
	}
	if err := domain.CheckID(id); err != nil {
		r.refuse(v.where, "id", "%.64q %s", id, err)
	}
	return id
}

func (r *reader) labelled(rec record, field string) string {
	text := r.string(rec, field)
	r.label(rec.fields[field].where, field, text)
	return text
}

// string reads a text; empty if it is left out.
func (r *reader) string(rec record, field string) string {
	v, ok := rec.fields[field]
	if !ok {
		return ""
	}
	text, ok := v.is.(string)
	if !ok {
		r.refuse(v.where, field, "is %v; give a text, in quotes if it looks like a number", v.is)
	}
	return text
}

// label refuses a text that lists cannot show.
func (r *reader) label(where, field, text string) {
	switch {
	case len(text) > maxNameBytes:
		r.refuse(where, field, "has %d bytes; give at most %d", len(text), maxNameBytes)
	case strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsGraphic(c) }):
		r.refuse(where, field, "is %q; give printable characters on one line", text)
	}
}

// position reads {lat, lon}.
func (r *reader) position(rec record) domain.Position {
	v, ok := rec.fields["position"]
	if !ok {
		r.refuse(rec.where, "position", "is missing; give lat and lon in degrees")
		return domain.Position{}
	}
	degrees, ok := v.is.(map[string]any)
	if !ok {
		r.refuse(v.where, "position", "is %v; give lat and lon in degrees", v.is)
		return domain.Position{}
	}
	for _, name := range slices.Sorted(maps.Keys(degrees)) {
		if name != "lat" && name != "lon" {
			r.refuse(v.where, "position", "has the field %.64q; give only lat and lon", name)
		}
	}
	return domain.Position{Lat: r.degree(v.where, "lat", degrees["lat"], 90), Lon: r.degree(v.where, "lon", degrees["lon"], 180)}
}

func (r *reader) degree(where, name string, is any, most float64) float64 {
	field := "position." + name
	if is == nil {
		r.refuse(where, field, "is missing; give %g to %g degrees", -most, most)
		return 0
	}
	degree, ok := r.number(is)
	if !ok || math.IsNaN(degree) || math.Abs(degree) > most {
		r.refuse(where, field, "is %v; give %g to %g degrees%s", is, -most, most, r.withPoint(is))
		return 0
	}
	return degree
}

// count reads a whole number of at least the given one; 0 if it is left out.
func (r *reader) count(rec record, name string, least int) int {
	v, ok := rec.fields[name]
	if !ok {
		return 0
	}
	n, ok := r.number(v.is)
	if !ok || n != math.Trunc(n) || n < float64(least) || n > maxCount {
		optional := ""
		if least > 0 {
			optional = ", or leave it out"
		}
		r.refuse(v.where, name, "is %v; give a whole number, %d to %d%s%s", v.is, least, maxCount, optional, r.withPoint(v.is))
		return 0
	}
	return int(n)
}

// number reads a number, or in CSV a text that is one.
func (r *reader) number(is any) (float64, bool) {
	switch n := is.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	case string:
		return parseNumber(n, r.text)
	}
	return 0, false
}

// withPoint is the advice for a number in CSV that has a comma.
func (r *reader) withPoint(is any) string {
	if text, isText := is.(string); isText && r.text && strings.Contains(text, ",") {
		return ", with a point for decimals and nothing between thousands"
	}
	return ""
}

func (r *reader) flag(rec record, name string) bool {
	v, ok := rec.fields[name]
	if !ok {
		return false
	}
	if b, is := v.is.(bool); is {
		return b
	}
	if text, is := v.is.(string); is && r.text && (strings.EqualFold(text, "true") || strings.EqualFold(text, "false")) {
		return strings.EqualFold(text, "true") // spreadsheets write TRUE
	}
	r.refuse(v.where, name, "is %v; give true or false", v.is)
	return false
}

func (r *reader) products(rec record) (products []string) {
	const name = "authorizedProductTypes"
	v, ok := rec.fields[name]
	if !ok {
		return nil
	}
	list, ok := v.is.([]any)
	if text, is := v.is.(string); is && r.text {
		ok = true
		for part := range strings.SplitSeq(text, ";") {
			list = append(list, strings.TrimSpace(part))
		}
	}
	if !ok {
		r.refuse(v.where, name, "is %v; give a list such as [BLOOD, MEDICINE]", v.is)
		return nil
	}
	for _, item := range list {
		product, ok := item.(string)
		switch {
		case !ok || product == "":
			r.refuse(v.where, name, "has the entry %#v; give a product type such as BLOOD", item)
		case slices.Contains(products, product):
			r.refuse(v.where, name, "lists %.64q twice; list it once", product)
		case domain.CheckForm(product) != nil: // orders name it by its bytes
			r.refuse(v.where, name, "has the entry %.64q, which %s", product, domain.CheckForm(product))
		default:
			r.label(v.where, name, product)
			products = append(products, product)
		}
	}
	return products
}
