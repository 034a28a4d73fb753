package console_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/dronefleet/dronefleet/httpapi"
	"github.com/dronefleet/dronefleet/httpapi/console"
)

// deepest is the closest zoom of the tests' maps.
const deepest = 3

// tileColour tells tiles apart.
func tileColour(z, x, y int) color.NRGBA {
	return color.NRGBA{uint8(30 + 25*x), uint8(30 + 25*y), uint8(60 * z), 255}
}

// tile is a picture of one colour.
func tile(t *testing.T, z, x, y int) []byte {
	t.Helper()
	picture := image.NewPaletted(image.Rect(0, 0, 16, 16), color.Palette{tileColour(z, x, y)})
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tileID is the number of a tile: zooms in turn, each along a Hilbert curve.
func tileID(z, x, y int) (id uint64) {
	id = (1<<(2*z) - 1) / 3
	for s := 1 << z / 2; s > 0; s /= 2 {
		rx, ry := min(x&s, 1), min(y&s, 1)
		id += uint64(s * s * (3*rx ^ ry))
		if ry == 0 {
			if rx == 1 {
				x, y = s-1-x&(s-1), s-1-y&(s-1)
			}
			x, y = y, x
		}
	}
	return id
}

type pmEntry struct{ id, offset, length, run uint64 }

// directory encodes entries, whose offsets it writes out.
func directory(entries []pmEntry) []byte {
	raw := binary.AppendUvarint(nil, uint64(len(entries)))
	last := uint64(0)
	for _, e := range entries {
		raw = binary.AppendUvarint(raw, e.id-last)
		last = e.id
	}
	for _, e := range entries {
		raw = binary.AppendUvarint(raw, e.run)
	}
	for _, e := range entries {
		raw = binary.AppendUvarint(raw, e.length)
	}
	for i, e := range entries {
		if i > 0 && e.offset == entries[i-1].offset+entries[i-1].length {
			raw = binary.AppendUvarint(raw, 0)
			continue
		}
		raw = binary.AppendUvarint(raw, e.offset+1)
	}
	return zipped(raw)
}

func zipped(raw []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(raw) // to memory
	_ = z.Close()
	return out.Bytes()
}

func unzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// tileset is what a PMTiles file of the tests holds.
type tileset struct {
	kind, packed byte // the type of tiles, and how they are compressed
	zooms        int  // the last
	tiles        map[[3]int][]byte
	metadata     string
	scattered    bool // tiles lie in another order than their numbers
}

// raster is a map of the whole world in colours.
func raster(t *testing.T) tileset {
	s := tileset{kind: 2, packed: 1, zooms: deepest, tiles: map[[3]int][]byte{}, metadata: `{"attribution": "<a href=\"https://example.org\">&copy; Cartographers</a>"}`}
	for z := range deepest + 1 {
		for i := range 1 << (2 * z) {
			x, y := i>>z, i&(1<<z-1)
			s.tiles[[3]int{z, x, y}] = tile(t, z, x, y)
		}
	}
	return s
}

// write writes the file. The root directory holds the first tile, a leaf the others. change may
// spoil the header.
func (s tileset) write(t *testing.T, change func(header []byte)) string {
	t.Helper()
	var entries []pmEntry
	for at, data := range s.tiles {
		entries = append(entries, pmEntry{tileID(at[0], at[1], at[2]), 0, uint64(len(data)), 1})
	}
	byID := func(a, b pmEntry) int { return cmp.Compare(a.id, b.id) }
	slices.SortFunc(entries, byID)
	if s.scattered {
		slices.Reverse(entries)
	}
	at := map[uint64][]byte{}
	for place, data := range s.tiles {
		at[tileID(place[0], place[1], place[2])] = data
	}
	var tiles []byte
	for i := range entries {
		entries[i].offset = uint64(len(tiles))
		tiles = append(tiles, at[entries[i].id]...)
	}
	slices.SortFunc(entries, byID)
	leaves := directory(entries[1:])
	root := directory([]pmEntry{entries[0], {entries[1].id, 0, uint64(len(leaves)), 0}})
	metadata := zipped([]byte(s.metadata))
	header := append([]byte("PMTiles\x03"), make([]byte, 119)...)
	offset := uint64(len(header))
	for i, part := range [][]byte{root, metadata, leaves, tiles} {
		binary.LittleEndian.PutUint64(header[8+16*i:], offset)
		binary.LittleEndian.PutUint64(header[16+16*i:], uint64(len(part)))
		offset += uint64(len(part))
	}
	header[97], header[98], header[99], header[101] = 2, s.packed, s.kind, byte(s.zooms)
	change(header)
	name := filepath.Join(t.TempDir(), "world.pmtiles")
	if err := os.WriteFile(name, bytes.Join([][]byte{header, root, metadata, leaves, tiles}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// archive writes a PMTiles file of raster tiles.
func archive(t *testing.T, change func(header []byte)) string { return raster(t).write(t, change) }

// mapped serves the page over a map, without a fleet.
func mapped(t *testing.T, cfg console.BaseMapConfig, overlay ...string) string {
	t.Helper()
	m, err := console.OpenBaseMap(cfg)
	for _, name := range overlay {
		err = cmp.Or(err, m.ReadOverlay(name))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	server := httptest.NewServer(httpapi.New(httpapi.Config{BaseMap: m, Log: slog.New(slog.DiscardHandler)}))
	t.Cleanup(server.Close)
	return server.URL
}

// F-UI-02: an operator's map lies below the fleet: a PMTiles file, or tiles of another
// site, with its attribution.
func TestConsole_DrawsAnOperatorsMap(t *testing.T) {
	t.Parallel()
	ctx := page(t)
	tiles := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var z, x, y int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d/%d/%d.png", &z, &x, &y); err != nil || r.Referer() != "" {
			t.Errorf("the tile server is asked for %s, from %q", r.URL, r.Referer())
		}
		_, _ = w.Write(tile(t, z, x, y))
	}))
	defer tiles.Close()
	for name, cfg := range map[string]console.BaseMapConfig{
		"file":  {PMTiles: archive(t, func([]byte) {})},
		"tiles": {Tiles: tiles.URL + "/{z}/{x}/{y}.png", MaxZoom: deepest, Attribution: "© Cartographers"},
	} {
		do(t, ctx, chromedp.EmulateViewport(1440, 900), chromedp.Navigate(mapped(t, cfg)))
		await(t, ctx, `document.getElementById("attribution").textContent === "© Cartographers"`)
		for _, at := range []struct {
			zoom     int
			lat, lon float64
		}{{3, 48.85, 2.35}, {3, -33.9, 151.2}, {2, 40.7, -74}, {1, -20, 30}, {5, 48.85, 2.35}} {
			js[any](t, ctx, fmt.Sprintf(`fleet.map.scale = 256 / 360 * 2 ** %d, fleet.map.show({lat: %f, lon: %f}), 1`, at.zoom, at.lat, at.lon))
			await(t, ctx, `new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(fleet.map.below.loading === 0 && !fleet.map.due && fleet.map.below.cache.size > 0))))`)
			middle := js[[]float64](t, ctx, `(() => { const b = document.getElementById("canvas").getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2] })()`)
			shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			picture, err := png.Decode(bytes.NewReader(shot))
			if err != nil {
				t.Fatal(err)
			}
			z := min(at.zoom, deepest)
			n := float64(int(1) << z)
			y := (1 - math.Asinh(math.Tan(at.lat*math.Pi/180))/math.Pi) / 2 * n
			want := tileColour(z, int((at.lon+180)/360*n), int(y))
			got := color.NRGBAModel.Convert(picture.At(int(middle[0])+3, int(middle[1])+3)).(color.NRGBA)
			// Tiles are dimmed: three quarters of their colour on the ground's #eef1f3.
			for i, channel := range [][3]uint8{{got.R, want.R, 0xee}, {got.G, want.G, 0xf1}, {got.B, want.B, 0xf3}} {
				if mixed := 0.75*float64(channel[1]) + 0.25*float64(channel[2]); math.Abs(mixed-float64(channel[0])) > 4 {
					t.Errorf("%s, zoom %d at %v,%v: channel %d is %d, want %.0f", name, at.zoom, at.lat, at.lon, i, channel[0], mixed)
				}
			}
		}
		shoot(t, ctx, "Map-"+name)
	}
	name := archive(t, func([]byte) {})
	url := mapped(t, console.BaseMapConfig{PMTiles: name})
	if err := os.Truncate(name, 200); err != nil {
		t.Fatal(err)
	}
	do(t, ctx, chromedp.Navigate(url))
	await(t, ctx, `document.getElementById("attribution").textContent.includes("cannot be loaded: the file of map tiles was written to after the start; restart")`)
}

// F-UI-02: what cannot be drawn is refused at the start, and the page may use the tiles'
// site and no other.
func TestOpenBaseMap(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("not a map ", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	spoilt := func(at int, value byte) string { return archive(t, func(h []byte) { h[at] = value }) }
	for _, tt := range []struct {
		cfg  console.BaseMapConfig
		want string // in the error; "" for none
	}{
		{console.BaseMapConfig{}, ""},
		{console.BaseMapConfig{Tiles: "https://tiles.example.org/{z}/{x}/{y}.png?key=1"}, ""},
		{console.BaseMapConfig{Tiles: "http://localhost:9000/{z}/{x}/{y}.png"}, ""},
		{console.BaseMapConfig{Tiles: "/tiles/{z}/{x}/{y}.webp"}, ""},
		{console.BaseMapConfig{Tiles: "https://tiles.example.org/{z}/{x}.png"}, "must contain {y} once"},
		{console.BaseMapConfig{Tiles: "http://tiles.example.org/{z}/{x}/{y}.png"}, "https://"},
		{console.BaseMapConfig{Tiles: "//tiles.example.org/{z}/{x}/{y}.png"}, "https://"},
		{console.BaseMapConfig{Tiles: "javascript:{z}{x}{y}"}, "not a tile URL"},
		{console.BaseMapConfig{Tiles: "https://ann:pw@tiles.example.org/{z}/{x}/{y}.png"}, "not a tile URL"},
		{console.BaseMapConfig{Tiles: "https://a;script-src *{z}/{x}/{y}"}, "not a tile URL"},
		{console.BaseMapConfig{PMTiles: archive(t, func([]byte) {})}, ""},
		{console.BaseMapConfig{PMTiles: text}, "not PMTiles version 3"},
		{console.BaseMapConfig{PMTiles: text + "-none"}, "cannot be opened: no such file"},
		{console.BaseMapConfig{PMTiles: t.TempDir()}, "not a file"},
		{console.BaseMapConfig{PMTiles: spoilt(7, 2)}, "not PMTiles version 3"},
		{console.BaseMapConfig{PMTiles: spoilt(99, 1)}, "not those of the Protomaps basemap"},
		{console.BaseMapConfig{PMTiles: spoilt(99, 9)}, "unknown type 9"},
		{console.BaseMapConfig{PMTiles: city().write(t, func([]byte) {})}, ""},
		{console.BaseMapConfig{PMTiles: city().write(t, func(h []byte) { h[98] = 3 })}, "tiles are compressed by method 3"},
		{console.BaseMapConfig{PMTiles: spoilt(97, 3)}, "method 3"},
		{console.BaseMapConfig{PMTiles: spoilt(98, 2)}, "compressed inside the archive"},
		{console.BaseMapConfig{PMTiles: spoilt(70, 1)}, "shorter than its header says"},
	} {
		m, err := console.OpenBaseMap(tt.cfg)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%+v: %v, want %q", tt.cfg, err, tt.want)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	for tiles, pictures := range map[string]string{"": "'self' data:", "/t/{z}/{x}/{y}": "'self' data:", "https://t.example.org/{z}/{x}/{y}?key=1": "'self' data: https://t.example.org"} {
		resp, err := http.Get(mapped(t, console.BaseMapConfig{Tiles: tiles}))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "; img-src "+pictures+";") || strings.Count(policy, "https:") != strings.Count(pictures, "https:") {
			t.Errorf("%q: policy %s", tiles, policy)
		}
	}
}

// F-UI-02: the file is served in parts, also after it is moved. One that was written to is
// refused with the fix.
func TestBaseMap_Archive(t *testing.T) {
	ask := func(url string) (status int, body string) {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, url+console.PMTilesPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Range", "bytes=0-6")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(text)
	}
	name := archive(t, func([]byte) {})
	url := mapped(t, console.BaseMapConfig{PMTiles: name})
	moved := name + ".moved"
	for _, change := range []func() error{func() error { return nil }, func() error { return os.Rename(name, moved) }} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if status, body := ask(url); status != http.StatusPartialContent || body != "PMTiles" {
			t.Errorf("%d %q", status, body)
		}
	}
	if err := os.Truncate(moved, 0); err != nil {
		t.Fatal(err)
	}
	if status, body := ask(url); status != http.StatusServiceUnavailable || !strings.Contains(body, "check --map-pmtiles and restart") {
		t.Errorf("an empty file: %d %q", status, body)
	}
	if err := os.WriteFile(moved, []byte("PMTiles, but another file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, body := ask(url); status != http.StatusServiceUnavailable || !strings.Contains(body, "was written to after the start; restart") {
		t.Errorf("another file: %d %q", status, body)
	}
	if status, body := ask(mapped(t, console.BaseMapConfig{})); status != http.StatusNotFound || !strings.Contains(body, "set --map-pmtiles") {
		t.Errorf("without a file: %d %q", status, body)
	}
}
