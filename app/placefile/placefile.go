package placefile

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dronefleet/dronefleet/domain"
)

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
	switch formatOf(name, data) {
	case "csv":
		r.text = true
		records = r.csv(data)
	case "geojson":
		records = r.geoJSON(data, kind)
	default:
		records = r.yaml(data, kind)
	}
	return convert(r, records, kind, read, id)
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
	line, _, _ := bytes.Cut(bytes.TrimSpace(data), []byte("\n"))
	switch {
	case bytes.HasPrefix(line, []byte("{")):
		return "geojson"
	case bytes.Contains(line, []byte(",")) && !bytes.Contains(line, []byte(":")):
		return "csv"
	}
	return "yaml"
}

// yaml reads the list "depots" or "warehouses" of a YAML document.
func (r *reader) yaml(data []byte, kind domain.PlaceKind) (records []record) {
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		r.refuse("", "", "is not valid YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		r.refuse("", "", "holds more than one YAML document; put all places into one")
		return nil
	}
	top := document.Content[0]
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
		if _, twice := rec.fields[key.Value]; twice {
			r.refuse(line(key), key.Value, "is given twice; give it once")
		}
		rec.fields[key.Value] = value{line(key), is}
	}
	return rec
}

// geoJSON reads the points of a FeatureCollection (RFC 7946). A feature whose property
// kind names the other kind of place is left out.
func (r *reader) geoJSON(data []byte, kind domain.PlaceKind) (records []record) {
	var collection struct {
		Type     string `json:"type"`
		Features []struct {
			ID       any `json:"id"`
			Geometry struct {
				Type        string `json:"type"`
				Coordinates any    `json:"coordinates"`
			} `json:"geometry"`
			Properties map[string]any `json:"properties"`
		} `json:"features"`
	}
	if err := json.Unmarshal(data, &collection); err != nil {
		r.refuse("", "", "is not valid GeoJSON: %s", strings.TrimPrefix(err.Error(), "json: "))
		return nil
	}
	if collection.Type != "FeatureCollection" {
		r.refuse("", "type", "is %.64q; give FeatureCollection", collection.Type)
		return nil
	}
	for i, feature := range collection.Features {
		where := fmt.Sprintf("feature %d", i+1)
		fields := map[string]any{}
		maps.Copy(fields, feature.Properties)
		maps.DeleteFunc(fields, func(_ string, v any) bool { return v == nil })
		if named, is := fields["kind"]; is {
			if named != string(domain.PlaceDepot) && named != string(domain.PlaceWarehouse) {
				r.refuse(where, "kind", "is %v; give depot or warehouse", named)
			}
			if named != string(kind) {
				continue
			}
			delete(fields, "kind")
		}
		if feature.ID != nil {
			fields["id"] = feature.ID
		}
		delete(fields, "position")
		at, _ := feature.Geometry.Coordinates.([]any)
		if feature.Geometry.Type != "Point" || len(at) < 2 {
			r.refuse(where, "geometry", "is not a Point with longitude and latitude")
			at = []any{0.0, 0.0}
		}
		fields["position"] = map[string]any{"lat": at[1], "lon": at[0]}
		records = append(records, recordAt(where, fields))
	}
	return records
}

// csv reads a table whose header names the fields; lat and lon stand for the position,
// and semicolons part the product types.
func (r *reader) csv(data []byte) (records []record) {
	table := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	table.TrimLeadingSpace = true
	header, err := table.Read()
	if errors.Is(err, io.EOF) {
		return nil
	}
	for err == nil {
		var cells []string
		if cells, err = table.Read(); err != nil {
			break
		}
		at, _ := table.FieldPos(0)
		where := fmt.Sprintf("line %d", at)
		fields, position := map[string]any{}, map[string]any{}
		for i, name := range header {
			cell := strings.TrimSpace(cells[i])
			switch name = strings.TrimSpace(name); {
			case cell == "":
			case name == "lat" || name == "lon":
				position[name] = cell
			default:
				fields[name] = cell
			}
		}
		if slices.Contains(header, "position") {
			r.refuse(where, "position", "is not a column; give lat and lon")
		}
		fields["position"] = position
		records = append(records, recordAt(where, fields))
	}
	if !errors.Is(err, io.EOF) {
		r.refuse("", "", "is not valid CSV: %s", err)
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
