package console_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dronefleet/dronefleet/httpapi/console"
)

// The middle of the tests' city.
const cityLat, cityLon = 48.8566, 2.3522

// cityZooms is the last zoom of the city's file.
const cityZooms = 14

// field encodes one that holds bytes.
func field(number uint64, data []byte) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, number<<3|2), uint64(len(data))), data...)
}

// feature is one of a vector tile: lines of places, in degrees.
type feature struct {
	kind  uint64 // 1 points, 2 lines, 3 areas
	lines [][][2]float64
	has   map[string]any // texts, numbers and truth values
}

// encode writes the layers of a vector tile.
func encode(z, x, y int, layers map[string][]feature) (tile []byte) {
	const extent = 4096
	at := func(p [2]float64) (int, int) {
		n := float64(int(1) << z)
		row := (1 - math.Asinh(math.Tan(p[1]*math.Pi/180))/math.Pi) / 2
		return int(math.Round(((p[0]+180)/360*n - float64(x)) * extent)), int(math.Round((row*n - float64(y)) * extent))
	}
	for name, features := range layers {
		layer := append(field(1, []byte(name)), 15<<3, 2) // version 2
		var keys, values []byte
		numbers, count := map[string]uint64{}, map[byte]uint64{} // of keys and values, by their encoding
		number := func(encoded []byte, to *[]byte) uint64 {
			n, known := numbers[string(encoded)]
			if !known {
				n = count[encoded[0]]
				count[encoded[0]]++
				numbers[string(encoded)] = n
				*to = append(*to, encoded...)
			}
			return n
		}
		for _, f := range features {
			var tags, geometry []byte
			for key, value := range f.has {
				var encoded []byte
				switch v := value.(type) {
				case string:
					encoded = field(1, []byte(v))
				case int:
					encoded = binary.AppendUvarint([]byte{6 << 3}, uint64(v)<<1^uint64(v>>63))
				case float64:
					encoded = binary.LittleEndian.AppendUint64([]byte{3<<3 | 1}, math.Float64bits(v))
				case bool:
					encoded = []byte{7 << 3, 1}
				}
				tags = binary.AppendUvarint(binary.AppendUvarint(tags, number(field(3, []byte(key)), &keys)), number(field(4, encoded), &values))
			}
			lastX, lastY := 0, 0
			to := func(p [2]float64) {
				px, py := at(p)
				geometry = binary.AppendVarint(binary.AppendVarint(geometry, int64(px-lastX)), int64(py-lastY))
				lastX, lastY = px, py
			}
			for _, line := range f.lines {
				geometry = binary.AppendUvarint(geometry, 1<<3|1)
				to(line[0])
				if len(line) > 1 {
					geometry = binary.AppendUvarint(geometry, uint64(len(line)-1)<<3|2)
				}
				for _, p := range line[1:] {
					to(p)
				}
				if f.kind == 3 {
					geometry = binary.AppendUvarint(geometry, 1<<3|7)
				}
			}
			encoded := append(field(2, tags), 3<<3, byte(f.kind))
			layer = append(layer, field(2, append(encoded, field(4, geometry)...))...)
		}
		layer = append(append(layer, keys...), values...)
		tile = append(tile, field(3, append(layer, binary.AppendUvarint([]byte{5 << 3}, extent)...))...)
	}
	return tile
}

// square is an outline around a place; sizes are in degrees.
func square(lon, lat, size float64) [][2]float64 {
	return [][2]float64{{lon - size, lat + size}, {lon + size, lat + size}, {lon + size, lat - size}, {lon - size, lat - size}}
}

// city is a vector map with the schema of the Protomaps basemap around cityLat and cityLon: a lake in the west, a park in
// the east, a highway from west to east, a street from south to north, blocks, a city, a hospital and a border.
func city() tileset {
	line := func(points ...[2]float64) [][][2]float64 { return [][][2]float64{points} }
	point := func(lon, lat float64) [][][2]float64 { return [][][2]float64{{{lon, lat}}} }
	layers := map[string][]feature{
		"water":   {{3, [][][2]float64{square(cityLon-0.03, cityLat, 0.015)}, map[string]any{"kind": "lake"}}, {1, point(cityLon-0.03, cityLat), map[string]any{"kind": "lake", "name": "Lac Test"}}},
		"landuse": {{3, [][][2]float64{square(cityLon+0.03, cityLat, 0.015)}, map[string]any{"kind": "park", "sort_rank": -3}}},
		"roads": {
			{2, line([2]float64{cityLon - 1, cityLat + 0.02}, [2]float64{cityLon + 1, cityLat + 0.02}), map[string]any{"kind": "highway", "name": "Autoroute de l'Est", "min_zoom": 5.0}},
			{2, line([2]float64{cityLon, cityLat - 1}, [2]float64{cityLon, cityLat + 1}), map[string]any{"kind": "major_road", "name": "Rue du Nord", "is_bridge": true}},
		},
		"places":     {{1, point(cityLon, cityLat), map[string]any{"kind": "locality", "name": "Ville", "name:en": "Testville", "population_rank": 12}}},
		"pois":       {{1, point(cityLon+0.002, cityLat-0.002), map[string]any{"kind": "hospital", "name": "Hôpital Test", "min_zoom": 13}}},
		"boundaries": {{2, line([2]float64{cityLon - 1, cityLat - 0.04}, [2]float64{cityLon + 1, cityLat - 0.04}), map[string]any{"kind": "country"}}},
	}
	for i := range 400 {
		lon, lat := cityLon-0.02+0.002*float64(i%20), cityLat-0.02+0.002*float64(i/20)
		layers["buildings"] = append(layers["buildings"], feature{3, [][][2]float64{square(lon+0.001, lat+0.001, 0.0006)}, map[string]any{"kind": "building", "height": 12}})
		if i < 20 {
			layers["roads"] = append(layers["roads"], feature{2, line([2]float64{lon, cityLat - 0.02}, [2]float64{lon, cityLat + 0.02}), map[string]any{"kind": "minor_road", "name": fmt.Sprintf("Rue %d", i)}},
				feature{2, line([2]float64{cityLon - 0.02, cityLat - 0.02 + 0.002*float64(i)}, [2]float64{cityLon + 0.02, cityLat - 0.02 + 0.002*float64(i)}), map[string]any{"kind": "minor_road"}})
		}
	}
	s := tileset{kind: 1, packed: 2, zooms: cityZooms, tiles: map[[3]int][]byte{}, metadata: `{"attribution": "© Testers", "vector_layers": [{"id": "roads", "fields": {"kind": "String"}}]}`}
	for _, z := range []int{0, 10, 11, 12, 13, cityZooms} {
		n := float64(int(1) << z)
		x, y := int((cityLon+180)/360*n), int((1-math.Asinh(math.Tan(cityLat*math.Pi/180))/math.Pi)/2*n)
		for dx := -2; dx <= 2; dx++ {
			for dy := -2; dy <= 2; dy++ {
				if x+dx >= 0 && y+dy >= 0 && x+dx < 1<<z && y+dy < 1<<z {
					s.tiles[[3]int{z, x + dx, y + dy}] = zipped(encode(z, x+dx, y+dy, layers))
				}
			}
		}
	}
	return s
}

// drawn waits until the map shows a place at a scale and has all of its tiles.
func drawn(t *testing.T, ctx context.Context, lat, lon, scale float64) {
	t.Helper()
	js[any](t, ctx, fmt.Sprintf(`fleet.map.scale = %f, fleet.map.show({lat: %f, lon: %f}), 1`, scale, lat, lon))
	await(t, ctx, `new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => { fleet.map.redraw(); requestAnimationFrame(() => requestAnimationFrame(() => r(fleet.map.below.loading === 0 && !fleet.map.due))) })))`)
}

// checkColour fails the test unless the map, at a place or next to it, has the colour of that name in the style sheet.
func checkColour(t *testing.T, ctx context.Context, where string, lat, lon float64, name string) {
	t.Helper()
	colours := js[[]string](t, ctx, fmt.Sprintf(`(() => {
		const m = fleet.map, [x, y] = m.xy(%f, %f).map((v) => Math.round(v * devicePixelRatio)), g = new OffscreenCanvas(1, 1).getContext("2d");
		const hex = (d, i) => "#" + [...d.slice(i, i + 3)].map((v) => v.toString(16).padStart(2, "0")).join("");
		g.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--%s"); g.fillRect(0, 0, 1, 1);
		const d = m.g.getImageData(x - 1, y - 1, 3, 3).data;
		return [hex(g.getImageData(0, 0, 1, 1).data, 0), ...[4, 0, 1, 2, 3, 5, 6, 7, 8].map((i) => hex(d, 4 * i))] })()`, lat, lon, name))
	if !slices.Contains(colours[1:], colours[0]) {
		t.Errorf("%s: %v, %v is %s, want the colour of %s, %s", where, lat, lon, colours[1], name, colours[0])
	}
}

// F-UI-02: a file of vector tiles, as pmtiles extract makes them, is drawn in the page's colours, with names, and beyond its
// last zoom.
func TestConsole_DrawsVectorTiles(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900))
	plain := city()
	plain.packed, plain.scattered = 1, true
	for at, data := range plain.tiles {
		plain.tiles[at] = unzipped(t, data)
	}
	looks := func(name string, zoom int) {
		t.Helper()
		scale := 512 / 360.0 * float64(int(1)<<zoom) // tiles in their own size
		drawn(t, ctx, cityLat, cityLon, scale)
		for _, p := range []struct {
			east, north float64
			from        int
			name        string
		}{{-0.03, 0.004, 12, "water"}, {0.03, 0.004, 12, "green"}, {0.06, 0.004, 12, "ground"}, {0.025, 0.02, 13, "highway"}, {-0.003, 0.001, 16, "building"}} {
			if zoom >= p.from && math.Abs(p.east)*scale < 380 {
				checkColour(t, ctx, name, cityLat+p.north, cityLon+p.east, p.name)
			}
		}
	}
	for name, s := range map[string]tileset{"clustered": city(), "scattered": plain} {
		do(t, ctx, chromedp.Navigate(mapped(t, console.BaseMapConfig{PMTiles: s.write(t, func([]byte) {})})))
		await(t, ctx, `document.getElementById("attribution").textContent === "© Testers"`)
		looks(name, 12)
	}
	names := `fleet.map.below.labels.placed.map((p) => p.label.text).join()`
	looks("closer", 13)
	if got := js[string](t, ctx, names); !strings.Contains(got, "Testville") || !strings.Contains(got, "Autoroute de l'Est") || !strings.Contains(got, "Lac Test") {
		t.Errorf("names %s", got)
	}
	shoot(t, ctx, "Map-vector-light")
	looks("beyond the last zoom", 16)
	if got := js[string](t, ctx, names); !strings.Contains(got, "Hôpital Test") {
		t.Errorf("names %s", got)
	}
	shoot(t, ctx, "Map-vector-close")
	js[any](t, ctx, `fleet.theme("dark"), 1`)
	await(t, ctx, `new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(fleet.map.below.loading === 0 && !fleet.map.due && fleet.map.below.cache.size > 0))))`)
	looks("dark", 16)
	looks("dark", 13)
	shoot(t, ctx, "Map-vector-dark")
	// Memory is bounded, wherever the map goes.
	js[any](t, ctx, `(async () => { for (let i = 0; i < 40; i++) { fleet.map.scale = 12000 * 1.2 ** i % 50000 + 3000; fleet.map.redraw(); await new Promise((r) => setTimeout(r, 20)); } })(), 1`)
	await(t, ctx, `fleet.map.below.loading === 0 && !fleet.map.due && fleet.map.below.cache.size <= 80`)

	broken := city()
	for at := range broken.tiles {
		broken.tiles[at] = zipped([]byte{3<<3 | 2, 200, 1, 1})
	}
	do(t, ctx, chromedp.Navigate(mapped(t, console.BaseMapConfig{PMTiles: broken.write(t, func([]byte) {})})))
	await(t, ctx, `document.getElementById("attribution").textContent.includes("cannot be loaded: a tile of the map is damaged")`)
}

// F-MAP-01: without a file the map has coasts and borders far out, and close by a grid, rings around depots, names, and where
// the fleet has flown.
func TestConsole_DrawsAnyPlaceWithoutAMap(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(mapped(t, console.BaseMapConfig{})))
	await(t, ctx, `fleet.map.below.bare?.names.length > 100`)
	drawn(t, ctx, 5, 20, 8)
	for _, p := range []struct {
		lat, lon float64
		name     string
	}{{3, -25, "water"}, {23, 12, "ground"}, {-10, 60, "water"}} {
		checkColour(t, ctx, "the world", p.lat, p.lon, p.name)
	}
	if names := js[string](t, ctx, `fleet.map.below.labels.placed.map((p) => p.label.text).join()`); !strings.Contains(names, "Algeria") || !strings.Contains(names, "Dem. Rep. Congo") {
		t.Errorf("names %s", names)
	}
	shoot(t, ctx, "Map-world")
	js[any](t, ctx, `(() => {
		const s = fleet.store, at = new Date().toISOString(), put = (kind, id, entity) => s.upsert({kind, id, entity: {id, ...entity}});
		put("depot", "KGL", {name: "Kigali hub", position: {lat: -1.9536, lon: 30.0606}});
		put("order", "O1", {status: "PENDING", requesterId: "CHUK", deliveryLocation: {lat: -1.9706, lon: 30.0560}});
		put("order", "O2", {status: "PENDING", requesterId: "Masaka", deliveryLocation: {lat: -1.9950, lon: 30.1250}});
		for (let i = 0; i < 8; i++) put("drone", "D" + i, {status: "MOVING", batteryPercentage: 80, position: {lat: -1.9536, lon: 30.0606}, lastUpdate: at});
		s.tell(at);
		fleet.map.redraw();
		for (let step = 1; step < 30; step++) {
			for (let i = 0; i < 8; i++) s.position(["D" + i, -1.9536 + 0.002 * step * Math.sin(i), 30.0606 + 0.002 * step * Math.cos(i), 80, "MOVING", Date.parse(at) + step]);
			fleet.map.draw();
		}
		fleet.map.fit();
		return 1 })()`)
	await(t, ctx, `fleet.map.below.bare.trace.cells.size > 300 && fleet.map.below.labels.drawn >= 2`)
	shoot(t, ctx, "Map-kigali")
	if n := js[int](t, ctx, `(() => { const d = fleet.map.g.getImageData(0, 0, fleet.map.canvas.width, fleet.map.canvas.height).data, ground = d[0] << 16 | d[1] << 8 | d[2]; let n = 0;
		for (let i = 0; i < d.length; i += 4) if ((d[i] << 16 | d[i + 1] << 8 | d[i + 2]) !== ground) n++; return n })()`); n < 5000 {
		t.Errorf("%d pixels of the map are not ground: it is empty", n)
	}
	// The trace is bounded.
	js[any](t, ctx, `(() => { const trace = fleet.map.below.bare.trace; for (let i = 0; i < 300; i++) { trace.fly([-2 + i / 100, 30], [-2 + i / 100, 30.04]); } fleet.map.draw(); return 1 })()`)
	if n := js[int](t, ctx, `fleet.map.below.bare.trace.cells.size`); n != 6000 {
		t.Errorf("the trace has %d cells, want 6000", n)
	}
}

func overlayFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "overlay.geojson")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// F-MAP-02: an operator's file of places and zones is drawn and listed; selecting one shows it.
func TestConsole_ShowsAnOverlay(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	file := overlayFile(t, `{"type": "FeatureCollection", "features": [
		{"type": "Feature", "properties": {"name": "CHUK <b>", "kind": "hospital", "colour": "danger"}, "geometry": {"type": "Point", "coordinates": [30.056, -1.9706]}},
		{"type": "Feature", "properties": {"name": "King Faisal helipad", "kind": "helipad", "colour": "info"}, "geometry": {"type": "Point", "coordinates": [30.0917, -1.9437]}},
		{"type": "Feature", "properties": {"name": "Airport, no flights", "kind": "zone", "colour": "danger"}, "geometry": {"type": "Polygon", "coordinates": [[[30.12, -1.98], [30.16, -1.98], [30.16, -1.95], [30.12, -1.95], [30.12, -1.98]]]}},
		{"type": "Feature", "properties": {"name": "Corridor", "colour": "good"}, "geometry": {"type": "LineString", "coordinates": [[30.05, -1.99], [30.1, -1.9]]}}]}`)
	do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(mapped(t, console.BaseMapConfig{}, file)))
	await(t, ctx, `document.querySelector("#places summary")?.textContent === "Places 4"`)
	js[any](t, ctx, `document.querySelector("#places").open = true, 1`)
	if got := js[string](t, ctx, `[...document.querySelectorAll("#places li")].map((li) => li.textContent).join("; ")`); got != "Airport, no flightszone; CHUK <b>hospital; Corridor; King Faisal helipadhelipad" {
		t.Errorf("the list is %s", got)
	}
	js[any](t, ctx, `fleet.map.scale = 6000, document.querySelector("#places button").click(), 1`)
	await(t, ctx, `document.querySelector("#places button").getAttribute("aria-pressed") === "true" && Math.abs(fleet.map.lat + 1.965) < 1e-6 && Math.abs(fleet.map.lon - 30.14) < 1e-6`)
	drawn(t, ctx, -1.965, 30.10, 8000)
	js[any](t, ctx, `document.documentElement.style.setProperty("--zone", "#e6cacc"), 1`) // danger, thinly on the ground
	checkColour(t, ctx, "the zone", -1.955, 30.125, "zone")
	if got := js[string](t, ctx, `fleet.map.below.labels.placed.map((p) => p.label.text).join()`); !strings.Contains(got, "King Faisal helipad") || !strings.Contains(got, "CHUK <b>") {
		t.Errorf("names %s", got)
	}
	accessible(t, ctx, "places")
	shoot(t, ctx, "Map-overlay")
}

// F-MAP-02: what the page could not draw is refused at the start, with the field and the fix.
func TestBaseMap_ReadOverlay(t *testing.T) {
	feature := func(properties, geometry string) string {
		return `{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": ` + properties + `, "geometry": ` + geometry + `}]}`
	}
	const point = `{"type": "Point", "coordinates": [30.1, -1.9]}`
	for _, tt := range []struct{ text, want string }{
		{feature(`{"name": "A", "kind": "hospital", "beds": 40}`, point), ""},
		{feature(`{"name": "A"}`, `{"type": "MultiPoint", "coordinates": [[30.1, -1.9], [30.2, -1.9, 1500]]}`), ""},
		{feature(`{}`, `{"type": "MultiPolygon", "coordinates": [[[[30, -2], [31, -2], [31, -1], [30, -2]]]]}`), ""},
		{feature(`null`, `{"type": "MultiLineString", "coordinates": [[[30, -2], [31, -2]]]}`), ""},
		{"\ufeff" + `{"type": "FeatureCollection", "features": []}`, ""},
		{`{"type": "Feature"}`, `whose type is "Feature"; give a FeatureCollection`},
		{`[]`, "which is not GeoJSON: "},
		{feature(`{"kind": "hospital"}`, point), "whose features[0].properties.name is missing"},
		{feature(`{"name": 7}`, point), "whose features[0].properties.name must be a text"},
		{feature(`{"name": "A", "colour": "pink"}`, point), `whose features[0].properties.colour is "pink"; give one of neutral, info, good, caution, danger`},
		{feature(`{"name": "`+strings.Repeat("x", 101)+`"}`, point), "properties.name must be a text of at most 100"},
		{feature(`{"name": "A"}`, `null`), "whose features[0].geometry is missing"},
		{feature(`{"name": "A"}`, `{"type": "Circle", "coordinates": [1, 2]}`), `whose features[0].geometry.type is "Circle"`},
		{feature(`{"name": "A"}`, `{"type": "Point", "coordinates": [[1, 2]]}`), "whose features[0].geometry.coordinates must be a position"},
		{feature(`{"name": "A"}`, `{"type": "Point", "coordinates": [1]}`), "whose features[0].geometry.coordinates have the position [1]"},
		{feature(`{"name": "A"}`, `{"type": "Point", "coordinates": [-1.9, 130.1]}`), "give a longitude of -180 to 180, then a latitude"},
		{feature(`{"name": "A"}`, `{"type": "LineString", "coordinates": [[1, 2]]}`), "a part with 1 positions; it needs at least 2"},
		{feature(`{"name": "A"}`, `{"type": "Polygon", "coordinates": [[[1, 2], [2, 2], [1, 2]]]}`), "it needs at least 4"},
		{feature(`{"name": "A"}`, `{"type": "Polygon", "coordinates": []}`), "coordinates must be a list of rings"},
		{feature(`{}`, `{"type": "LineString", "coordinates": [`+strings.Repeat("[1,2],", 20_000)+`[1,2]]}`), "which has 20001 positions, over 20000"},
		{strings.Repeat(" ", 2<<20+1), "which is larger than 2 MB"},
	} {
		m, err := console.OpenBaseMap(console.BaseMapConfig{})
		if err != nil {
			t.Fatal(err)
		}
		err = m.ReadOverlay(overlayFile(t, tt.text))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%.120s: %v, want %q", tt.text, err, tt.want)
		}
	}
	m, err := console.OpenBaseMap(console.BaseMapConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"/none.geojson": "cannot be opened: no such file", t.TempDir(): "cannot be read: is a directory"} {
		if err := m.ReadOverlay(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
