package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of an overlay: the page draws all of it in every frame.
const (
	maxOverlayBytes     = 2 << 20
	maxOverlayPositions = 20_000
	maxOverlayText      = 100 // characters of a name or kind
)

// overlayColours are classes of colour; the style sheet has a variable for each.
var overlayColours = []string{"neutral", "info", "good", "caution", "danger"}

// overlayShape is a feature as the page reads it. Parts are points, lines or rings:
// longitudes and latitudes by turns.
type overlayShape struct {
	Type   string      `json:"type"`
	Name   string      `json:"name,omitempty"`
	Kind   string      `json:"kind,omitempty"`
	Colour string      `json:"colour"`
	Parts  [][]float64 `json:"parts"`
}

// ReadOverlay adds places and zones to the map, from a file of GeoJSON. Errors do not name the
// setting.
func (m *BaseMap) ReadOverlay(name string) error {
	shapes, err := readOverlay(name)
	if err != nil {
		return fmt.Errorf("is %.256q, %w", name, err)
	}
	if m.overlay, err = json.Marshal(map[string][]overlayShape{"shapes": shapes}); err != nil {
		return err
	}
	m.about.Overlay = OverlayPath
	return nil
}

func readOverlay(name string) ([]overlayShape, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("which cannot be opened: %w", errors.Unwrap(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxOverlayBytes+1))
	if err != nil {
		return nil, fmt.Errorf("which cannot be read: %w", errors.Unwrap(err))
	}
	if len(data) > maxOverlayBytes {
		return nil, errors.New("which is larger than 2 MB; leave out what dispatchers do not need, or simplify its outlines")
	}
	var file struct {
		Type     string
		Features []json.RawMessage
	}
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &file); err != nil {
		return nil, fmt.Errorf("which is not GeoJSON: %w", err)
	}
	if file.Type != "FeatureCollection" {
		return nil, fmt.Errorf("whose type is %.40q; give a FeatureCollection of GeoJSON", file.Type)
	}
	shapes, positions := []overlayShape{}, 0
	for i, feature := range file.Features {
		of, err := shapesOf(feature)
		if err != nil {
			return nil, fmt.Errorf("whose features[%d].%w", i, err)
		}
		for _, s := range of {
			for _, part := range s.Parts {
				positions += len(part) / 2
			}
		}
		shapes = append(shapes, of...)
	}
	if positions > maxOverlayPositions {
		return nil, fmt.Errorf("which has %d positions, over %d; simplify its outlines", positions, maxOverlayPositions)
	}
	return shapes, nil
}

// shapesOf checks a feature. A feature of several points becomes a shape for each.
func shapesOf(feature json.RawMessage) ([]overlayShape, error) {
	var f struct {
		Type       string
		Geometry   *struct{ Type, Coordinates json.RawMessage }
		Properties struct{ Name, Kind, Colour any }
	}
	if err := json.Unmarshal(feature, &f); err != nil || f.Type != "Feature" {
		return nil, errors.New(`type must be "Feature", with an object as its properties`)
	}
	if f.Geometry == nil {
		return nil, errors.New("geometry is missing; give a Point, LineString or Polygon, or several of one in a feature")
	}
	s := overlayShape{Colour: overlayColours[0]}
	for _, text := range []struct {
		name  string
		value any
		to    *string
	}{{"name", f.Properties.Name, &s.Name}, {"kind", f.Properties.Kind, &s.Kind}, {"colour", f.Properties.Colour, &s.Colour}} {
		if text.value == nil {
			continue
		}
		value, is := text.value.(string)
		if value = strings.TrimSpace(value); !is || utf8.RuneCountInString(value) > maxOverlayText {
			return nil, fmt.Errorf("properties.%s must be a text of at most %d characters", text.name, maxOverlayText)
		}
		*text.to = value
	}
	if !slices.Contains(overlayColours, s.Colour) {
		return nil, fmt.Errorf("properties.colour is %.40q; give one of %s", s.Colour, strings.Join(overlayColours, ", "))
	}
	var kind string
	_ = json.Unmarshal(f.Geometry.Type, &kind) // anything but a text is an unknown type, refused below
	shapes, err := geometry(s, kind, f.Geometry.Coordinates)
	if err != nil {
		return nil, fmt.Errorf("geometry.%w", err)
	}
	if shapes[0].Type == "point" && s.Name == "" {
		return nil, errors.New("properties.name is missing; points are listed by it")
	}
	return shapes, nil
}

// geometry gives a shape its parts.
func geometry(s overlayShape, kind string, coordinates json.RawMessage) ([]overlayShape, error) {
	var lines [][][]float64 // a point is a line of one position
	decode := func(to any) bool { return json.Unmarshal(coordinates, to) == nil }
	least, known, wrap := 1, true, "a list of positions: [longitude, latitude]"
	switch kind {
	case "Point":
		lines = [][][]float64{{nil}}
		known, wrap = decode(&lines[0][0]), "a position: [longitude, latitude]"
		s.Type = "point"
	case "MultiPoint":
		var points [][]float64
		known = decode(&points)
		for _, p := range points {
			lines = append(lines, [][]float64{p})
		}
		s.Type = "point"
	case "LineString":
		lines = make([][][]float64, 1)
		known, least, s.Type = decode(&lines[0]), 2, "line"
	case "MultiLineString":
		known, least, s.Type, wrap = decode(&lines), 2, "line", "a list of lines, each a list of positions"
	case "Polygon":
		known, least, s.Type, wrap = decode(&lines), 4, "area", "a list of rings, each a list of positions"
	case "MultiPolygon":
		var polygons [][][][]float64
		known, least, s.Type, wrap = decode(&polygons), 4, "area", "a list of polygons, each a list of rings"
		lines = slices.Concat(polygons...)
	default:
		return nil, fmt.Errorf("type is %.40q; give Point, LineString or Polygon, or one of these with Multi before it", kind)
	}
	if !known || len(lines) == 0 {
		return nil, errors.New("coordinates must be " + wrap)
	}
	var parts [][]float64
	for _, line := range lines {
		part, err := partOf(line, least)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if s.Type != "point" {
		s.Parts = parts
		return []overlayShape{s}, nil
	}
	var points []overlayShape
	for _, part := range parts {
		s.Parts = [][]float64{part}
		points = append(points, s)
	}
	return points, nil
}

func partOf(line [][]float64, least int) (part []float64, err error) {
	if len(line) < least {
		return nil, fmt.Errorf("coordinates have a part with %d positions; it needs at least %d", len(line), least)
	}
	for _, p := range line {
		if len(p) < 2 || math.Abs(p[0]) > 180 || math.Abs(p[1]) > 90 {
			return nil, fmt.Errorf("coordinates have the position %v; give a longitude of -180 to 180, then a latitude of -90 to 90", p)
		}
		part = append(part, p[0], p[1])
	}
	return part, nil
}

// Overlay answers with the operator's places and zones.
func (m *BaseMap) Overlay(w http.ResponseWriter, r *http.Request) {
	if m == nil || m.overlay == nil {
		http.Error(w, "no places are configured; set --map-overlay", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(m.overlay) // the client is gone
}
