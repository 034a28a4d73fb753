package httpapi

import (
	"fmt"

	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/internal/config"
)

// MapFlags say what the console's map shows below the fleet.
type MapFlags struct {
	MapTiles       string `help:"Raster tiles for the console's map: an address with {z}, {x} and {y}." placeholder:"URL"`
	MapMaxZoom     int    `help:"Closest zoom of map-tiles." default:"19" check:"min 0 max 24"`
	MapPMTiles     string `help:"File of map tiles for the console's map, PMTiles version 3: vector tiles as pmtiles extract makes them, or raster tiles. See docs/console.md." placeholder:"FILE" name:"map-pmtiles" type:"path"`
	MapAttribution string `help:"Attribution that the map shows; default: the one in the PMTiles file." placeholder:"TEXT"`
	MapOverlay     string `help:"File of hospitals, helipads and zones that the console's map shows and lists, as GeoJSON. See docs/console.md." placeholder:"FILE" type:"path"`
}

// CheckMap refuses flags that contradict each other.
func (f *MapFlags) CheckMap(r *config.Refuser) {
	switch {
	case f.MapTiles != "" && f.MapPMTiles != "":
		r.Refuse("map-pmtiles", "cannot be combined with map-tiles; give only one")
	case f.MapTiles == "" && f.MapPMTiles == "" && f.MapAttribution != "":
		r.Refuse("map-attribution", "requires map-tiles or map-pmtiles; give one")
	case f.MapTiles != "":
		if _, err := console.OpenBaseMap(console.BaseMapConfig{Tiles: f.MapTiles}); err != nil {
			r.Refuse("map-tiles", "%s", err)
		}
	}
}

// OpenMap opens the map's files.
func (f *MapFlags) OpenMap() (*console.BaseMap, error) {
	m, err := console.OpenBaseMap(console.BaseMapConfig{Tiles: f.MapTiles, PMTiles: f.MapPMTiles, Attribution: f.MapAttribution, MaxZoom: f.MapMaxZoom})
	if err != nil {
		return nil, fmt.Errorf("--map-pmtiles %w", err)
	}
	if f.MapOverlay != "" {
		if err := m.ReadOverlay(f.MapOverlay); err != nil {
			_ = m.Close() // it was only read
			return nil, fmt.Errorf("--map-overlay %w", err)
		}
	}
	return m, nil
}
