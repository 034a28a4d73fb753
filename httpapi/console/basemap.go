package console

import (
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// BaseMapConfig says what an operator wants below the fleet on the map.
type BaseMapConfig struct {
	// Tiles is the URL of raster tiles with {z}, {x} and {y}: of another site, or a path
	// of this one.
	Tiles string
	// PMTiles is a file of tiles, PMTiles version 3: raster tiles, or vector tiles with the
	// schema of the Protomaps basemap, version 4.
	PMTiles string
	// Attribution is what the map must say about its source; "" for what a PMTiles file
	// says itself.
	Attribution string
	// MaxZoom is the closest zoom of Tiles.
	MaxZoom int
}

// BaseMap is a map below the fleet. The zero value is none: the page draws coasts, a grid and
// rings around depots.
type BaseMap struct {
	about   aboutMap
	overlay []byte // as the page reads it; nil for none
	origin  string // of tiles of another site
	archive *os.File
	tag     string // of the archive
	size    int64
	changed time.Time // of the archive, last
}

// aboutMap tells the page what to draw.
type aboutMap struct {
	Tiles       string `json:"tiles,omitempty"`
	PMTiles     string `json:"pmtiles,omitempty"`
	Vector      bool   `json:"vector,omitempty"` // the tiles of PMTiles; then with its zooms
	Attribution string `json:"attribution,omitempty"`
	MinZoom     int    `json:"minZoom,omitempty"`
	MaxZoom     int    `json:"maxZoom,omitempty"`
	Overlay     string `json:"overlay,omitempty"`
}

// MapPath is where the page asks what to draw, PMTilesPath is where it reads a PMTiles file,
// in parts, and OverlayPath is where it reads the operator's places.
const (
	MapPath     = "/console/map.json"
	PMTilesPath = "/console/map.pmtiles"
	OverlayPath = "/console/overlay.json"
)

// OpenBaseMap checks the configured map and opens its file, if there is one. Errors do not name
// the setting.
func OpenBaseMap(cfg BaseMapConfig) (*BaseMap, error) {
	m := &BaseMap{}
	switch {
	case cfg.PMTiles != "":
		m.about = aboutMap{PMTiles: PMTilesPath, Attribution: cfg.Attribution}
		if err := m.open(cfg.PMTiles); err != nil {
			return nil, fmt.Errorf("is %.256q, %w", cfg.PMTiles, err)
		}
	case cfg.Tiles != "":
		origin, err := originOf(cfg.Tiles)
		if err != nil {
			return nil, err
		}
		m.origin, m.about = origin, aboutMap{Tiles: cfg.Tiles, Attribution: cfg.Attribution, MaxZoom: cfg.MaxZoom}
	}
	return m, nil
}

// Close closes the file.
func (m *BaseMap) Close() error {
	if m == nil || m.archive == nil {
		return nil
	}
	return m.archive.Close()
}

// hostPort is what may stand in a Content-Security-Policy.
var hostPort = regexp.MustCompile(`^([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:[0-9]+)?$`)

// originOf checks a template of tiles and returns the site that it names; "" for this one.
func originOf(template string) (string, error) {
	for _, part := range []string{"{z}", "{x}", "{y}"} {
		if strings.Count(template, part) != 1 {
			return "", fmt.Errorf("is %.256q, which must contain %s once; give for example https://tiles.example.org/{z}/{x}/{y}.png", template, part)
		}
	}
	u, err := url.Parse(strings.NewReplacer("{z}", "0", "{x}", "0", "{y}", "0").Replace(template))
	switch {
	case err != nil || u.Opaque != "" || u.User != nil || u.Host != "" && !hostPort.MatchString(u.Host) || strings.ContainsAny(u.Host, "{}"):
		return "", fmt.Errorf("is %.256q, which is not a tile URL; give for example https://tiles.example.org/{z}/{x}/{y}.png", template)
	case u.Scheme == "" && u.Host == "" && strings.HasPrefix(u.Path, "/"):
		return "", nil
	case u.Scheme == "https" && u.Host != "", u.Scheme == "http" && isLoopback(u.Hostname()):
		return u.Scheme + "://" + u.Host, nil
	}
	return "", fmt.Errorf("is %.256q; give an address with https://, or a path such as /tiles/{z}/{x}/{y}.png: browsers refuse others", template)
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// The header of a PMTiles archive: https://github.com/protomaps/PMTiles/blob/main/spec/v3/spec.md
const (
	pmHeader      = 127
	pmNone        = 1 // compressions
	pmGzip        = 2
	pmVector      = 1 // types of tiles; then PNG, JPEG, WebP and AVIF
	pmAVIF        = 5
	pmMaxMetadata = 1 << 20
)

// open checks that the page can read an archive.
func (m *BaseMap) open(name string) (err error) {
	if m.archive, err = os.Open(name); err != nil {
		return fmt.Errorf("which cannot be opened: %w", errors.Unwrap(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.archive.Close())
		}
	}()
	info, err := m.archive.Stat()
	if err != nil {
		return fmt.Errorf("which cannot be read: %w", err)
	}
	if !info.Mode().IsRegular() {
		return errors.New("which is not a file; give a file of PMTiles version 3")
	}
	m.size, m.changed = info.Size(), info.ModTime()
	h := make([]byte, pmHeader)
	if _, err := m.archive.ReadAt(h, 0); err != nil || string(h[:7]) != "PMTiles" || h[7] != 3 {
		return errors.New("which is not PMTiles version 3; convert it with the command pmtiles")
	}
	vector := h[99] == pmVector
	switch {
	case h[99] < pmVector || h[99] > pmAVIF:
		return fmt.Errorf("whose tiles are of the unknown type %d; give a file of vector tiles (MVT), PNG, JPEG, WebP or AVIF", h[99])
	case h[97] != pmNone && h[97] != pmGzip:
		return fmt.Errorf("whose directories are compressed by method %d; give a file with gzip (2) or none (1)", h[97])
	case vector && h[98] != pmNone && h[98] != pmGzip:
		return fmt.Errorf("whose tiles are compressed by method %d; give a file with gzip (2) or none (1)", h[98])
	case !vector && h[98] > pmNone:
		return errors.New("whose tiles are compressed inside the archive; give a file of uncompressed raster tiles")
	}
	for at := 8; at < 72; at += 16 {
		offset, length := binary.LittleEndian.Uint64(h[at:]), binary.LittleEndian.Uint64(h[at+8:])
		if offset > uint64(m.size) || length > uint64(m.size)-offset {
			return errors.New("which is shorter than its header says; copy it again")
		}
	}
	m.tag = fmt.Sprintf(`"%x-%x"`, m.size, info.ModTime().UnixNano())
	says, known := m.metadata(h)
	if vector {
		if known && !says.drawable() {
			return errors.New("whose layers are not those of the Protomaps basemap, version 4; make the file with: pmtiles extract https://build.protomaps.com/DATE.pmtiles FILE --bbox=WEST,SOUTH,EAST,NORTH")
		}
		m.about.Vector, m.about.MinZoom, m.about.MaxZoom = true, int(h[100]), int(h[101])
	}
	if m.about.Attribution == "" {
		m.about.Attribution = html.UnescapeString(markup.ReplaceAllString(says.Attribution, ""))
	}
	return nil
}

var markup = regexp.MustCompile(`<[^>]*>`)

// pmMetadata is what an archive says about itself.
type pmMetadata struct {
	Attribution string
	Layers      []struct {
		ID     string
		Fields map[string]any
	} `json:"vector_layers"`
}

// drawable reports whether the page knows one of the layers.
func (m pmMetadata) drawable() bool {
	for _, l := range m.Layers {
		if _, has := l.Fields["kind"]; has && slices.Contains([]string{"earth", "water", "landuse", "roads", "places"}, l.ID) {
			return true
		}
	}
	return false
}

// metadata is what the archive says; false if it is not readable.
func (m *BaseMap) metadata(h []byte) (says pmMetadata, known bool) {
	var from io.Reader = io.NewSectionReader(m.archive, int64(binary.LittleEndian.Uint64(h[24:])), int64(binary.LittleEndian.Uint64(h[32:]))) // checked against the size
	if h[97] == pmGzip {
		z, err := gzip.NewReader(from)
		if err != nil {
			return says, false
		}
		from = z
	}
	err := json.NewDecoder(io.LimitReader(from, pmMaxMetadata)).Decode(&says)
	return says, err == nil
}

// About answers with what the page is to draw.
func (m *BaseMap) About(w http.ResponseWriter, r *http.Request) {
	var about aboutMap
	if m != nil {
		about = m.about
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(about) // the client is gone
}

// Archive answers with parts of the PMTiles file.
func (m *BaseMap) Archive(w http.ResponseWriter, r *http.Request) {
	if m == nil || m.archive == nil {
		http.Error(w, "no file of map tiles is configured; set --map-pmtiles", http.StatusNotFound)
		return
	}
	if err := m.intact(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/vnd.pmtiles")
	h.Set("Cache-Control", "private, max-age=86400")
	h.Set("ETag", m.tag)
	http.ServeContent(w, r, "", time.Time{}, io.NewSectionReader(m.archive, 0, m.size))
}

// intact returns an error if the archive was written to since the start. One that was moved,
// deleted or replaced by a rename stays readable.
func (m *BaseMap) intact() error {
	info, err := m.archive.Stat()
	if err == nil {
		_, err = m.archive.ReadAt(make([]byte, 1), 0)
	}
	switch {
	case err != nil:
		return fmt.Errorf("the file of map tiles cannot be read: %w; check --map-pmtiles and restart the State Manager", err)
	case info.Size() != m.size || !info.ModTime().Equal(m.changed):
		return errors.New("the file of map tiles was written to after the start; restart the State Manager when it is complete")
	}
	return nil
}

// imageSources are the sites that the page may load pictures from, beside its own.
func (m *BaseMap) imageSources() string {
	if m == nil || m.origin == "" {
		return ""
	}
	return " " + m.origin
}
