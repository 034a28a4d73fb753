package placefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dronefleet/dronefleet/domain"
	"github.com/dronefleet/dronefleet/internal/input"
)

// MaxBytes is far above the size of any fleet's file.
const MaxBytes = 16 << 20

// form is how the records of one kind are read.
type form[P any] struct {
	kind  domain.PlaceKind
	needs string // what each has at least
	read  func(*reader, record) P
	id    func(P) string
}

var (
	depots     = form[domain.Depot]{domain.PlaceDepot, "id and position", (*reader).depot, func(d domain.Depot) string { return string(d.ID) }}
	warehouses = form[domain.Warehouse]{domain.PlaceWarehouse, "id and position", (*reader).warehouse, func(w domain.Warehouse) string { return string(w.ID) }}
	drones     = form[domain.DroneRegistration]{domain.PlaceDrone, "id and homeDepotId", (*reader).drone, func(d domain.DroneRegistration) string { return string(d.ID) }}
	hooks      = form[domain.WebhookRegistration]{domain.PlaceWebhook, "id and url", (*reader).webhook, func(w domain.WebhookRegistration) string { return string(w.ID) }}
	droneTypes = form[domain.DroneType]{domain.PlaceDroneType, "id and what its drones have", (*reader).droneType, func(t domain.DroneType) string { return string(t.ID) }}
)

// lists are the lists of a YAML file, in the order in which they are applied.
var lists = []string{"depots", "warehouses", "droneTypes", "drones", "webhooks"}

// list is the name of the list that has the records of a kind.
func list(kind domain.PlaceKind) string { return string(kind) + "s" }

// isPlace reports whether records of a kind have a position.
func isPlace(kind domain.PlaceKind) bool {
	return kind == domain.PlaceDepot || kind == domain.PlaceWarehouse
}

// Depots reads the depots of a file. Its format follows from the name's ending or, with
// another one, from the content. A YAML or GeoJSON file may hold warehouses too, and a YAML
// file drones and their types. The error is Problems.
func Depots(name string, data []byte) ([]domain.Depot, error) { return depots.of(name, data) }

// Warehouses reads the warehouses of a file as Depots reads depots.
func Warehouses(name string, data []byte) ([]domain.Warehouse, error) {
	return warehouses.of(name, data)
}

// Drones reads the drones of a file as Depots reads depots, but not from GeoJSON. A drone's type
// may be in the same file or already stored. Only the store can check the drone's depot and what a
// stored type gives.
func Drones(name string, data []byte) ([]domain.DroneRegistration, error) {
	return drones.of(name, data)
}

// DroneTypes reads the types of drones of a file as Drones reads drones.
func DroneTypes(name string, data []byte) ([]domain.DroneType, error) {
	return droneTypes.of(name, data)
}

// Webhooks reads the webhooks of a file as Drones reads drones.
func Webhooks(name string, data []byte) ([]domain.WebhookRegistration, error) {
	return hooks.of(name, data)
}

// DepotsOf reads the depots of a decoded JSON list.
func DepotsOf(list []map[string]any) ([]domain.Depot, error) { return depots.decoded(list) }

// WarehousesOf reads the warehouses of a decoded JSON list.
func WarehousesOf(list []map[string]any) ([]domain.Warehouse, error) { return warehouses.decoded(list) }

// DronesOf reads the drones of a decoded JSON list.
func DronesOf(list []map[string]any) ([]domain.DroneRegistration, error) { return drones.decoded(list) }

// DroneTypesOf reads the types of drones of a decoded JSON list.
func DroneTypesOf(list []map[string]any) ([]domain.DroneType, error) { return droneTypes.decoded(list) }

func (f form[P]) decoded(fields []map[string]any) ([]P, error) {
	records := make([]record, len(fields))
	for i, each := range fields {
		records[i] = recordAt(fmt.Sprintf("%s %d", list(f.kind), i+1), each)
	}
	return f.convert(&reader{}, records)
}

// recordAt is a record whose fields all stand in one place.
func recordAt(where string, fields map[string]any) record {
	rec := record{where, make(map[string]value, len(fields))}
	for name, is := range fields {
		rec.fields[name] = value{where, is}
	}
	return rec
}

func (f form[P]) of(name string, data []byte) ([]P, error) {
	r := &reader{file: name}
	var records []record
	switch text, err := input.Text(data); {
	case err != nil:
		r.unreadable(err)
	case formatOf(name, text) == "csv":
		r.text = true
		records = r.csv(data, f.kind)
	case formatOf(name, text) == "geojson" && !isPlace(f.kind):
		r.refuse("", "", "is GeoJSON, which holds places only; give %s as YAML or CSV", list(f.kind))
	case formatOf(name, text) == "geojson":
		records = r.geoJSON(data, f.kind)
	default:
		records = r.yaml(data, f.kind, f.needs)
	}
	return f.convert(r, records)
}

// unreadable reports what package input says is wrong with the file.
func (r *reader) unreadable(err error) {
	problems, is := errors.AsType[input.Problems](err)
	if !is && err != nil {
		problems = input.Problems{{Text: err.Error()}}
	}
	for _, p := range problems {
		r.refuse(p.Where(), "", "%s", p.Text)
	}
}

func (f form[P]) convert(r *reader, records []record) ([]P, error) {
	if len(records) == 0 && r.problems == nil {
		r.refuse("", "", "has no %s; give at least one", list(f.kind))
	}
	first := map[string]string{} // where an id stands
	var all []P
	for _, rec := range records {
		p := f.read(r, rec)
		id := f.id(p)
		if where, twice := first[id]; twice && id != "" {
			r.refuse(rec.where, "id", "%.64q is already used in %s; give each %s once", id, where, f.kind)
		}
		first[id] = rec.where
		all = append(all, p)
	}
	if r.problems != nil {
		return nil, r.problems
	}
	return all, nil
}

func formatOf(name string, data []byte) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".yaml", ".yml":
		return "yaml"
	case ".json", ".geojson":
		return "geojson"
	case ".csv":
		return "csv"
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0 || line[0] == '#':
			continue
		case line[0] == '{':
			return "geojson"
		case bytes.ContainsAny(line, ",;\t") && !bytes.Contains(line, []byte(":")):
			return "csv"
		}
		return "yaml"
	}
	return "yaml"
}

// yaml reads the list of one kind of a YAML document.
func (r *reader) yaml(data []byte, kind domain.PlaceKind, needs string) (records []record) {
	top, err := input.YAML(data)
	r.unreadable(err)
	if top == nil {
		return nil
	}
	if top.Kind != yaml.MappingNode {
		r.refuse(line(top), "", "should hold the lists %s", oneOf("and", lists))
		return nil
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		switch key, items := top.Content[i], top.Content[i+1]; {
		case !slices.Contains(lists, key.Value):
			r.refuse(line(key), fmt.Sprintf("%.64q", key.Value), "is not a list of the fleet; give %s", oneOf("or", lists))
		case items.Kind != yaml.SequenceNode:
			r.refuse(line(items), key.Value, "is not a list; begin each %s with \"- id:\"", strings.TrimSuffix(key.Value, "s"))
		case key.Value == list(domain.PlaceDroneType) && kind == domain.PlaceDrone:
			r.types = r.typesOf(items)
		case key.Value == list(kind):
			for _, item := range items.Content {
				if item.Kind != yaml.MappingNode {
					r.refuse(line(item), "", "is not a %s; give %s", kind, needs)
					continue
				}
				records = append(records, r.yamlRecord(item))
			}
		}
	}
	return records
}

// typesOf are the drone types in the same file as the drones. Their problems are reported when the
// types are read.
func (r *reader) typesOf(items *yaml.Node) map[domain.DroneTypeID]domain.DroneType {
	types := map[domain.DroneTypeID]domain.DroneType{}
	for _, item := range items.Content {
		alone := &reader{}
		if item.Kind != yaml.MappingNode {
			continue
		}
		if t := alone.droneType(alone.yamlRecord(item)); alone.problems == nil {
			types[t.ID] = t
		}
	}
	return types
}

// oneOf lists names, with a word before the last one.
func oneOf(word string, names []string) string {
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}

func line(n *yaml.Node) string { return fmt.Sprintf("line %d", n.Line) }

func (r *reader) yamlRecord(item *yaml.Node) record {
	rec := record{line(item), map[string]value{}}
	for i := 0; i+1 < len(item.Content); i += 2 {
		key, node := item.Content[i], item.Content[i+1]
		var is any
		if err := node.Decode(&is); err != nil {
			r.refuse(line(node), key.Value, "cannot be read: %s", strings.TrimPrefix(err.Error(), "yaml: "))
			continue
		}
		if is == nil {
			continue
		}
		rec.fields[key.Value] = value{line(key), is}
	}
	return rec
}

// geoJSON reads the points of a FeatureCollection (RFC 7946). A feature whose property
// kind names the other kind of place is left out.
func (r *reader) geoJSON(data []byte, kind domain.PlaceKind) (records []record) {
	text, err := input.JSON(data)
	if err != nil {
		r.unreadable(err)
		return nil
	}
	var document any // not a struct, whose fields match names in any case
	if err := json.Unmarshal(text, &document); err != nil {
		r.refuse("", "", "is not valid GeoJSON: %s", strings.TrimPrefix(err.Error(), "json: "))
		return nil
	}
	collection, _ := document.(map[string]any)
	features, isList := collection["features"].([]any)
	switch {
	case collection["type"] != "FeatureCollection":
		r.refuse("", "type", "is %s; give FeatureCollection", given(collection["type"]))
		return nil
	case !isList:
		r.refuse("", "features", "is %s; give a list of points", given(collection["features"]))
		return nil
	}
	r.crs("", collection)
	for i, member := range features {
		where := fmt.Sprintf("feature %d", i+1)
		feature, isFeature := member.(map[string]any)
		if !isFeature {
			r.refuse(where, "", "is %s; give a Feature", given(member))
			continue
		}
		properties, _ := feature["properties"].(map[string]any)
		fields := maps.Clone(properties)
		if fields == nil {
			fields = map[string]any{}
		}
		maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil })
		if named, is := fields["kind"]; is {
			if named != string(domain.PlaceDepot) && named != string(domain.PlaceWarehouse) {
				r.refuse(where, "kind", "is %s; give depot or warehouse", given(named))
			}
			if named != string(kind) {
				continue
			}
			delete(fields, "kind")
		}
		if id := feature["id"]; id != nil {
			if property, both := fields["id"]; both && !reflect.DeepEqual(property, id) {
				r.refuse(where, "id", "is %s, and %s in the properties; give it once", given(id), given(property))
			}
			fields["id"] = id
		}
		geometry, _ := feature["geometry"].(map[string]any)
		r.crs(where, feature)
		r.crs(where, geometry)
		at, _ := geometry["coordinates"].([]any)
		if geometry["type"] != "Point" || len(at) < 2 {
			r.refuse(where, "geometry", "is not a Point with longitude and latitude")
			at = []any{0.0, 0.0}
		}
		if _, also := fields["position"]; also {
			r.refuse(where, "position", "is a property; give the geometry only")
		}
		fields["position"] = map[string]any{"lat": at[1], "lon": at[0]}
		records = append(records, recordAt(where, fields))
	}
	return records
}

// crs refuses the coordinate system that GeoJSON could name before RFC 7946, except the only one
// that RFC allows. In others, latitude may come first.
func (r *reader) crs(where string, object map[string]any) {
	crs := object["crs"]
	named, _ := crs.(map[string]any)
	properties, _ := named["properties"].(map[string]any)
	name, _ := properties["name"].(string)
	if crs == nil || strings.HasSuffix(strings.ToUpper(name), ":CRS84") {
		return
	}
	if name != "" {
		crs = name
	}
	r.refuse(where, "crs", "is %s; give coordinates as WGS 84 longitude, latitude (RFC 7946) and leave crs out", given(crs))
}

// given shows a value of a file.
func given(v any) string {
	if v == nil {
		return "missing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		text = []byte(fmt.Sprint(v))
	}
	if len(text) > 64 {
		return strings.ToValidUTF8(string(text[:64]), "") + "…"
	}
	return string(text)
}

// csv reads a table whose header names the fields. For places, lat and lon stand for the position.
// Semicolons separate the entries of lists.
func (r *reader) csv(data []byte, kind domain.PlaceKind) (records []record) {
	header, rows, err := input.CSV(data)
	r.unreadable(err)
	if slices.Contains(header, "position") && isPlace(kind) {
		r.refuse("line 1", "position", "is not a column; give lat and lon")
	}
	for _, row := range rows {
		fields, position := map[string]any{}, map[string]any{}
		for i, name := range header {
			switch cell := row.Cells[i]; {
			case cell == "":
			case isPlace(kind) && (name == "lat" || name == "lon"):
				position[name] = cell
			default:
				fields[name] = cell
			}
		}
		if isPlace(kind) {
			fields["position"] = position
		}
		records = append(records, recordAt(fmt.Sprintf("line %d", row.Line), fields))
	}
	return records
}

// parseNumber reads a number from text, where text may hold one.
func parseNumber(text string, allowed bool) (float64, bool) {
	if !allowed {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}
