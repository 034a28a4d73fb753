package main

import (
	"fmt"

	"github.com/dronefleet/dronefleet/httpapi/console"
	"github.com/dronefleet/dronefleet/internal/config"
)

// baseMap holds the flags that say what the console's map shows below the fleet.
type baseMap struct {
	MapTiles       string `help:"Raster tiles for the console's map: an address with {z}, {x} and {y}." placeholder:"URL"`
	MapMaxZoom     int    `help:"Closest zoom of map-tiles." default:"19" check:"min 0 max 24"`
	MapPMTiles     string `help:"File of raster tiles for the console's map, PMTiles version 3." placeholder:"FILE" name:"map-pmtiles"`
	MapAttribution string `help:"Attribution that the map shows; default: the one in the PMTiles file." placeholder:"TEXT"`
}

// check refuses flags that contradict each other.
func (b *baseMap) check(r *config.Refuser) {
	switch {
	case b.MapTiles != "" && b.MapPMTiles != "":
		r.Refuse("map-pmtiles", "cannot be combined with map-tiles; give only one")
	case b.MapTiles == "" && b.MapPMTiles == "" && b.MapAttribution != "":
		r.Refuse("map-attribution", "requires map-tiles or map-pmtiles; give one")
	case b.MapTiles != "":
		if _, err := console.OpenBaseMap(console.BaseMapConfig{Tiles: b.MapTiles}); err != nil {
			r.Refuse("map-tiles", "%s", err)
		}
	}
}

// open opens the map; nil for none.
func (b *baseMap) open() (*console.BaseMap, error) {
	m, err := console.OpenBaseMap(console.BaseMapConfig{Tiles: b.MapTiles, PMTiles: b.MapPMTiles, Attribution: b.MapAttribution, MaxZoom: b.MapMaxZoom})
	if err != nil {
		return nil, fmt.Errorf("--map-pmtiles %w", err)
	}
	return m, nil
}
