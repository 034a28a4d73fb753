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

// MaxBytes is far more than the places of any fleet take.
const MaxBytes = 16 << 20

// Depots reads the depots of a file. Its format follows from the name's ending or, with
// another one, from the content. A YAML or GeoJSON file may hold warehouses too. The error
// is Problems.
func Depots(name string, data []byte) ([]domain.Depot, error) {
	return places(name, data, domain.PlaceDepot, (*reader).depot, func(d domain.Depot) string { return string(d.ID) })
}

// Warehouses reads the warehouses of a file as Depots reads depots.
func Warehouses(name string, data []byte) ([]domain.Warehouse, error) {
	return places(name, data, domain.PlaceWarehouse, (*reader).warehouse, func(w domain.Warehouse) string { return string(w.ID) })
}

// DepotsOf reads the depots of a decoded JSON list.
func DepotsOf(list []map[string]any) ([]domain.Depot, error) {
	return convert(&reader{}, recordsOf(domain.PlaceDepot, list), domain.PlaceDepot, (*reader).depot, func(d domain.Depot) string { return string(d.ID) })
}

// WarehousesOf reads the warehouses of a decoded JSON list.
func WarehousesOf(list []map[string]any) ([]domain.Warehouse, error) {
	return convert(&reader{}, recordsOf(domain.PlaceWarehouse, list), domain.PlaceWarehouse, (*reader).warehouse, func(w domain.Warehouse) string { return string(w.ID) })
}

func recordsOf(kind domain.PlaceKind, list []map[string]any) []record {
	records := make([]record, len(list))
	for i, fields := range list {
		records[i] = recordAt(fmt.Sprintf("%ss %d", kind, i+1), fields)
	}
	return records
}

// recordAt is a record whose fields all stand in one place.
func recordAt(where string, fields map[string]any) record {
	rec := record{where, make(map[string]value, len(fields))}
	for name, is := range fields {
		rec.fields[name] = value{where, is}
	}
	return rec
}

func places[P domain.Place](name string, data []byte, kind domain.PlaceKind, read func(*reader, record) P, id func(P) string) ([]P, error) {
	r := &reader{file: name}
	var records []record
	switch text, err := input.Text(data); {
	case err != nil:
		r.unreadable(err)
	case formatOf(name, text) == "csv":
		r.text = true
		records = r.csv(data)
	case formatOf(name, text) == "geojson":
		records = r.geoJSON(data, kind)
	default:
		records = r.yaml(data, kind)
	}
	return convert(r, records, kind, read, id)
}

// unreadable notes what package input says of the file.
func (r *reader) unreadable(err error) {
	problems, is := errors.AsType[input.Problems](err)
	if !is && err != nil {
		problems = input.Problems{{Text: err.Error()}}
	}
	for _, p := range problems {
		r.refuse(p.Where(), "", "%s", p.Text)
	}
}

func convert[P domain.Place](r *reader, records []record, kind domain.PlaceKind, read func(*reader, record) P, id func(P) string) ([]P, error) {
	if len(records) == 0 && r.problems == nil {
		r.refuse("", "", "has no %ss; give at least one", kind)
	}
	first := map[string]string{} // where an id stands
	var list []P
	for _, rec := range records {
		p := read(r, rec)
		if where, twice := first[id(p)]; twice && id(p) != "" {
			r.refuse(rec.where, "id", "%.64q is also that of %s; give each %s once", id(p), where, kind)
		}
		first[id(p)] = rec.where
		list = append(list, p)
	}
	if r.problems != nil {
		return nil, r.problems
	}
	return list, nil
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

// yaml reads the list "depots" or "warehouses" of a YAML document.
func (r *reader) yaml(data []byte, kind domain.PlaceKind) (records []record) {
	top, err := input.YAML(data)
	r.unreadable(err)
	if top == nil {
		return nil
	}
	if top.Kind != yaml.MappingNode {
		r.refuse(line(top), "", "should hold the lists depots and warehouses")
		return nil
	}
	for i := 0; i+1 < len(top.Content); i += 2 {
		switch key, list := top.Content[i], top.Content[i+1]; {
		case key.Value != "depots" && key.Value != "warehouses":
			r.refuse(line(key), fmt.Sprintf("%.64q", key.Value), "is not a list of places; give depots or warehouses")
		case list.Kind != yaml.SequenceNode:
			r.refuse(line(list), key.Value, "is not a list; begin each %s with \"- id:\"", strings.TrimSuffix(key.Value, "s"))
		case key.Value == string(kind)+"s":
			for _, item := range list.Content {
				if item.Kind != yaml.MappingNode {
					r.refuse(line(item), "", "is not a %s; give id and position", kind)
					continue
				}
				records = append(records, r.yamlRecord(item))
			}
		}
	}
	return records
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
	var document any // not a struct, to whose fields names in another case would match
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

// crs refuses the coordinate system that GeoJSON could name before RFC 7946, except the
// one that is now always meant. In others, latitude may come first.
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

// csv reads a table whose header names the fields; lat and lon stand for the position,
// and semicolons separate the product types.
func (r *reader) csv(data []byte) (records []record) {
	header, rows, err := input.CSV(data)
	r.unreadable(err)
	if slices.Contains(header, "position") {
		r.refuse("line 1", "position", "is not a column; give lat and lon")
	}
	for _, row := range rows {
		fields, position := map[string]any{}, map[string]any{}
		for i, name := range header {
			switch cell := row.Cells[i]; {
			case cell == "":
			case name == "lat" || name == "lon":
				position[name] = cell
			default:
				fields[name] = cell
			}
		}
		fields["position"] = position
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
